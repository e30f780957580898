import { eventsOf } from '../event-source.ts';
import type { EventStore, RecordedEvent } from '../../event-store.ts';
import { parseCheckpoint } from '../merkle/checkpoint.ts';
import type { Trust } from '../merkle/key-chain.ts';
import { splitNote } from '../merkle/note.ts';
import type { TenantsTree } from '../merkle/tenants.ts';
import type { TenantProof } from '../proofs.ts';
import type { TreeHead } from '../tree-heads.ts';
import type { AuditLeaf, AuditTree } from '../tree.ts';
import type { BundleLine, BundleScope } from './format.ts';
import { BundleInconsistent, type BundleContent } from './writer.ts';

export type CollectOptions = {
  readonly tree: AuditTree;
  readonly log: Pick<EventStore, 'readAll' | 'readStream'>;
  /** Signed head that proves the export. */
  readonly head: TreeHead;
  readonly trust: Trust;
  readonly scope: BundleScope;
  /** Tenant bundles: the proof of the tenant's tree at that head (`AuditProofs.tenantProof`). */
  readonly tenant?: TenantProof;
  /** Sizes of the tree of the scope; default: all that the head covers. */
  readonly range?: { readonly from: number; readonly to: number };
  /** How an event is shown to the reader: `fullLine`, `redactedLine` or `withheldLine`. */
  readonly show: (leaf: AuditLeaf, event: RecordedEvent) => BundleLine | Promise<BundleLine>;
  readonly filter: BundleContent['filter'];
  readonly asOf: BundleContent['asOf'];
  readonly createdAt: string;
  readonly sign: BundleContent['sign'];
  readonly pins?: readonly number[];
  readonly schemas?: NonNullable<BundleContent['schemas']>;
  readonly signal?: AbortSignal;
};

/**
 * What `writeBundle` needs, from the audit tree of this instance and the log: read page by page as it is written.
 * Throws RangeError for a tenant of whom the head knows nothing.
 */
export const collectBundle = (options: CollectOptions): BundleContent => {
  const { tree, head, trust, scope, tenant, pins, schemas, filter, asOf, createdAt, sign } = options;
  const own = scope.kind === 'log' ? undefined : tree.tenantTree(scope.tenant);
  if (own !== undefined && tenant === undefined)
    throw new RangeError('the checkpoint knows no tree of this tenant: there is nothing to export yet');
  const range = options.range ?? { from: 0, to: tenant?.tree.size ?? head.size };
  return {
    scope,
    range,
    checkpoint: parseCheckpoint(splitNote(head.note).text),
    note: head.note,
    trust,
    hashAt: tree.hashAt,
    ...(own === undefined || tenant === undefined
      ? {}
      : { tenant: { hashAt: own.hashAt, size: tenant.tree.size, tenants: tenantsOf(tenant) } }),
    ...(pins === undefined ? {} : { pins }),
    lines: linesOf(leavesOf(own ?? tree, range, options.signal), { ...options, range }),
    ...(schemas === undefined ? {} : { schemas }),
    filter,
    asOf,
    createdAt,
    sign,
  };
};

const tenantsOf = ({ tenant, head, count, index, path }: TenantProof): TenantsTree => ({
  count,
  root: Buffer.from(head.tenantsRoot, 'base64'),
  proofOf: (asked) => (asked === tenant ? { index, path } : undefined),
});

const LEAVES_AT_ONCE = 200;
/** Events of one look into the log. */
const EVENTS_AT_ONCE = 2000;

async function* leavesOf(
  tree: Pick<AuditTree, 'leaves'>,
  { from, to }: { readonly from: number; readonly to: number },
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly AuditLeaf[]> {
  for (let at = from; at < to; ) {
    const leaves = tree.leaves(at, Math.min(LEAVES_AT_ONCE, to - at));
    if (leaves.length === 0) throw new BundleInconsistent(`the audit tree lacks its leaf ${at}`);
    yield leaves;
    at += leaves.length;
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }
}

type Ranged = CollectOptions & { readonly range: { readonly from: number; readonly to: number } };

async function* linesOf(
  pages: AsyncIterable<readonly AuditLeaf[]>,
  options: Ranged,
): AsyncGenerator<BundleLine> {
  const events = options.scope.kind === 'log' ? inLogOrder(options) : ofTheirStreams(options);
  try {
    for await (const leaves of pages) {
      const found = await events.of(leaves);
      for (const [at, leaf] of leaves.entries()) yield await options.show(leaf, eventAt(leaf, found[at]));
    }
  } finally {
    await events.close();
  }
}

const eventAt = (leaf: AuditLeaf, event: RecordedEvent | undefined): RecordedEvent => {
  if (event !== undefined && event.position === leaf.position) return event;
  const { stream, revision } = leaf.record;
  throw new BundleInconsistent(
    `the log does not hold ${stream}@${revision}, which is leaf ${leaf.index} of the audit tree`,
  );
};

type Events = {
  readonly of: (leaves: readonly AuditLeaf[]) => Promise<readonly (RecordedEvent | undefined)[]>;
  readonly close: () => Promise<void>;
};

/** The events of one tenant lie anywhere in the log: they are read from their streams. */
const ofTheirStreams = ({ log, signal }: Ranged): Events => ({
  of: (leaves) => eventsOf(log, leaves, signal),
  close: () => Promise.resolve(),
});

/** All events: the log is read once, beside the leaves, which are in the same order. */
const inLogOrder = ({ log, tree, range, signal }: Ranged): Events => {
  const events = allBehind(log, range.from === 0 ? undefined : tree.leaf(range.from - 1)?.position, signal);
  let next: RecordedEvent | undefined;
  const findAt = async (position: string): Promise<RecordedEvent | undefined> => {
    while (next === undefined || next.position < position) {
      const read = await events.next();
      if (read.done === true) return undefined;
      next = read.value;
    }
    return next;
  };
  return {
    of: async (leaves) => {
      const found: (RecordedEvent | undefined)[] = [];
      for (const { position } of leaves) found.push(await findAt(position));
      return found;
    },
    close: async () => {
      await events.return(undefined);
    },
  };
};

async function* allBehind(
  log: Pick<EventStore, 'readAll'>,
  position: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<RecordedEvent, undefined> {
  let after = position;
  for (let more = true; more; ) {
    more = false;
    const page = {
      limit: EVENTS_AT_ONCE,
      ...(after === undefined ? {} : { after }),
      ...(signal && { signal }),
    };
    for await (const event of log.readAll(page)) {
      after = event.position;
      more = true;
      yield event;
    }
  }
  return undefined;
}
