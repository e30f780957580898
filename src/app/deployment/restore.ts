import type { LeaseData } from '../../domain/bookkeeping/events.ts';
import type { ActingKind } from '../../domain/acting-kind.ts';
import { actingKinds } from '../../domain/acting-kinds.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { kindOf } from '../../domain/kinds.ts';
import { eventTypes } from '../../domain/registry.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import { ACT_CATEGORY } from '../audit/access-journal.ts';
import { createDayJournal, dayStream } from '../audit/day-journal.ts';
import { readDeployment, rebindDeployment, type Deployment } from './deployment.ts';
import { createEventCodec } from '../log/event-codec.ts';
import type { EventStore, Position } from '../log/event-store.ts';
import { eventId } from '../log/identifiers.ts';
import { commandMetadata, systemContext } from '../log/metadata.ts';
import { leaseStream } from './ownership.ts';
import type { Clock, Ids } from '../ports.ts';

/** What a log that is about to be restored holds: a person decides by it whether this is the right one. */
export type LogSurvey = {
  readonly deployment: Deployment;
  readonly events: number;
  readonly last: { readonly position: Position; readonly recordedAt: string };
  /** Registered in it. */
  readonly hubs: number;
  /** Neither READY, nor FAILED, nor deleted. */
  readonly ordersUnderWay: number;
};

type Reading = Pick<EventStore, 'readAll' | 'readStream'>;

/** Reads the whole log once. Throws where no service has ever started on it. */
export const surveyLog = async (store: Reading): Promise<LogSurvey> => {
  const deployment = await readDeployment(store);
  if (deployment === undefined) throw new NotRestored('no service has ever started on this event log');
  const codec = createEventCodec(eventTypes);
  const folded = new Map(
    [...actingKinds.map(({ kind }) => kind), 'hub'].map((kind) => [kind, new Map<string, unknown>()]),
  );
  let events = 0;
  let last = { position: '', recordedAt: '' };
  for await (const event of store.readAll({ limit: Number.POSITIVE_INFINITY })) {
    events += 1;
    last = { position: event.position, recordedAt: event.recordedAt };
    const { category } = parseStreamName(event.stream);
    const states = folded.get(category);
    const decider = kindOf(category)?.decider;
    if (states === undefined || decider === undefined) continue;
    const before = states.get(event.stream) ?? decider.initialState();
    states.set(event.stream, decider.evolve(before, codec.decode(event) as never));
  }
  const statesOf = (kind: string): unknown[] => [...(folded.get(kind)?.values() ?? [])];
  return {
    deployment,
    events,
    last,
    hubs: statesOf('hub').filter(isRegistered).length,
    ordersUnderWay: actingKinds.flatMap((kind) => statesOf(kind.kind).filter(isUnderWay(kind))).length,
  };
};

const isRegistered = (state: unknown): boolean => {
  const view = kindOf('hub')?.view(state);
  return view?.exists === true && !view.archived;
};

const isUnderWay =
  ({ view, order: { prefix } }: ActingKind) =>
  (state: unknown): boolean => {
    const seen = view(state);
    if (!seen.exists || seen.archived) return false;
    const shown = stringAt(seen.document['status'], 'state');
    return ![`${prefix}_STATE_READY`, `${prefix}_STATE_FAILED`].includes(shown);
  };

/**
 * Puts a log under a new deployment id. That stands in the provider's audit history, written before it is done; who did it
 * does not: nobody has said so with a token.
 */
export const putUnderNewId = async (
  store: EventStore,
  { deployment, last }: LogSurvey,
  { clock, ids, instance }: { readonly clock: Clock; readonly ids: Ids; readonly instance: string },
): Promise<Deployment> => {
  const at = clock.now();
  const deploymentId = ids.uuidv7();
  const commandId = ids.uuidv7();
  const stream = dayStream(ACT_CATEGORY, '', at);
  const data = {
    at,
    formerId: deployment.deploymentId,
    deploymentId,
    lastPosition: last.position,
    lastEventAt: last.recordedAt,
  };
  const metadata = commandMetadata(systemContext(commandId, 'cli'), 'RestoreLog', at, instance);
  const event = createEventCodec(eventTypes).encode(
    { type: 'LogRestored', data },
    eventId(commandId, stream, 0),
    metadata,
  );
  await createDayJournal(store).append(stream, [event]);
  return rebindDeployment(store, { clock, ids, instance, deploymentId });
};

/** A lease that nobody has given back. */
export type OpenLease = {
  readonly name: string;
  readonly holder: string;
  /** Where it and the lease that it rests on stand: another one later means that its holder is at work. */
  readonly at: string;
  readonly ttlMs: number;
};

/** Leases that were not given back: of a service that is at work, or of one that died or was copied while it was. */
export const openLeases = async (
  store: Pick<EventStore, 'readStream' | 'currentRevision'>,
  names: readonly string[],
): Promise<readonly OpenLease[]> => {
  const open: OpenLease[] = [];
  for (const name of names)
    for await (const { type, revision, data } of store.readStream(leaseStream(name), {
      direction: 'backward',
      limit: 1,
    })) {
      const { holder, ttlMs, process } = data as unknown as LeaseData;
      if (type === 'LeaseReleased') continue;
      const renewed = process === undefined ? 'no_stream' : await store.currentRevision(process.stream);
      open.push({ name, holder, at: `${revision} ${renewed}`, ttlMs });
    }
  return open;
};

/** It was not restored; the message says why, and nothing was changed. */
export class NotRestored extends Error {
  override readonly name = 'NotRestored';
}
