import fc from 'fast-check';
import { v5 } from 'uuid';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import { isLeafStream } from '../../../src/app/audit/merkle/leaf.ts';
import { sha256 } from '../../../src/app/audit/merkle/hashing.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { pointerOf } from '../../../src/domain/document-places.ts';

/** One append of a random history. */
export type Step = {
  readonly stream: string;
  readonly tenant: string;
  readonly subject: string;
  readonly types: readonly string[];
  readonly data: JsonObject;
  /** Whether the first field of the data is hidden from tenants. */
  readonly hiding?: boolean;
};

export const TENANTS = ['', 'acme', 'globex', 'shared', '__proto__'] as const;
const NAMESPACE = '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11';

/** Appends to a few streams of documents, runs and bookkeeping, of a few tenants. */
export const histories = (most: number): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.record({
      stream: fc.constantFrom(
        'cluster-c1',
        'cluster-c2',
        'clusterOrder-c1',
        'tenant-acme',
        'name-n1',
        'sys-lease-x',
      ),
      tenant: fc.constantFrom(...TENANTS),
      subject: fc.constantFrom('alice', 'bob', 'system'),
      types: fc.array(fc.constantFrom('ClusterLabelled', 'ClusterBecameReady', 'NotKnownYet'), {
        minLength: 1,
        maxLength: 4,
      }),
      data: fc.dictionary(fc.string({ maxLength: 5, unit: 'grapheme' }), fc.jsonValue({ maxDepth: 2 }), {
        maxKeys: 3,
      }) as fc.Arbitrary<JsonObject>,
      hiding: fc.boolean(),
    }),
    { minLength: 1, maxLength: most },
  );

/** Writes histories, keeping track of revisions. */
export const createHistoryWriter = (store: EventStore, seed: string) => {
  const revisions = new Map<string, number>();
  let count = 0;
  return async (steps: readonly Step[]): Promise<void> => {
    for (const { stream, tenant, subject, types, data, hiding } of steps) {
      const paths = Object.keys(data)
        .slice(0, 1)
        .map((key) => pointerOf(['data', key]));
      const events = types.map((type) => {
        count += 1;
        return {
          id: v5(`${seed}-${count}`, NAMESPACE),
          type,
          data: JSON.stringify(data),
          metadata: JSON.stringify({
            tenant,
            actor: { subjectId: subject },
            occurredAt: '2026-01-01T00:00:00.000Z',
            ...(hiding === true && {
              hidden: { paths, salt: sha256(`${seed}-${count}`).toString('hex', 0, 16) },
            }),
          }),
        };
      });
      const appended = await store.append(stream, revisions.get(stream) ?? 'no_stream', events);
      revisions.set(stream, appended.revision);
    }
  };
};

/** The events that are leaves, in log order: what the tree has to be of. */
export const leavesOf = async (store: EventStore): Promise<RecordedEvent[]> => {
  const events: RecordedEvent[] = [];
  for await (const event of store.readAll({ limit: 1_000_000 }))
    if (isLeafStream(event.stream)) events.push(event);
  return events;
};
