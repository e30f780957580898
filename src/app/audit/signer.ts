import type { TreeHeadData } from '../../domain/bookkeeping/events.ts';
import { createBookkeeping } from '../log/bookkeeping.ts';
import {
  LogDamaged,
  type DamagedAt,
  StoreUnavailable,
  WrongExpectedRevision,
  type EventStore,
  type Position,
} from '../log/event-store.ts';
import type { Lease, Ownership } from '../deployment/ownership.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { AuditKeys } from './audit-keys.ts';
import { createLeafSample } from './leaf-sample.ts';
import { checkpointText } from './merkle/checkpoint.ts';
import { rootAt } from './merkle/compact-range.ts';
import { signNote } from './merkle/note.ts';
import { whatIsWrong } from './changed-events.ts';
import { createTenantHeads, type Rest } from './tenant-heads.ts';
import { MOST_HEADS, TREE_HEADS_STREAM, type AuditHeads, type TreeHead } from './tree-heads.ts';
import type { AuditTree } from './tree.ts';

export type SignerStatus = {
  /**
   * `standby`: another instance signs; `catching-up`: the tree of this instance is not as far as the last head;
   * `mismatch`: it is another one than was signed, or the log holds another event than it was made of, or one that is
   * damaged, so nothing is signed any more; `failing`: signing does not succeed.
   */
  readonly state: 'standby' | 'catching-up' | 'signing' | 'mismatch' | 'failing';
  /** Attempts that failed since the start. */
  readonly failures: number;
  readonly error?: string;
  /** `mismatch`: the event that is another one, or damaged, where it is known. */
  readonly at?: DamagedAt;
};

export type AuditSigner = {
  /**
   * Signs while this instance holds the lease. Returns after the signal was aborted, and what was not signed yet was signed
   * where that takes less than `lastMs`: to be aborted when nothing more is appended.
   */
  run(signal: AbortSignal): Promise<void>;
  status(): SignerStatus;
  /** A read has found that the event of this leaf is another one: the next look begins with it. */
  suspect(index: number): void;
};

export type SignerSettings = {
  /** Milliseconds after a head until the next one, if anything is new by then. Default 10,000. */
  readonly everyMs: number;
  /** New leaves that do not wait for it. Default 1,000. */
  readonly everyLeaves: number;
  /** Milliseconds between two looks at the tree. Default 500. */
  readonly lookMs: number;
  /** Milliseconds at least between two looks at leaves, each of which takes some of the thread. Default 10,000. */
  readonly sampleMs: number;
  /** Milliseconds that the last head may take when the service stops. Default 2,000. */
  readonly lastMs: number;
};

export type SignerPorts = {
  readonly store: EventStore;
  readonly tree: AuditTree;
  /** Whether the tree holds everything that the log holds. */
  readonly caughtUp: () => boolean;
  /** Resolves true when the tree holds what the log holds up to a position, false after `timeoutMs`. */
  readonly reaches: (
    position: Position,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ) => Promise<boolean>;
  readonly heads: AuditHeads;
  readonly keys: AuditKeys;
  readonly origin: string;
  readonly ownership: Ownership;
  readonly rest: Rest;
  readonly settings?: Partial<SignerSettings>;
} & Runtime;

/** The tree at a size that was signed is not the tree of which that head was. Nothing may be signed over it. */
export class TreeMismatch extends Error {
  override readonly name = 'TreeMismatch';
  readonly size: number;
  constructor(size: number, what: string) {
    super(
      `the tree at size ${size}, which was signed, ${what}: the history below this size is not what it was when it was signed`,
    );
    this.size = size;
  }
}

/** What somebody reads who waits for the end of a trouble. */
const OVER = {
  mismatch:
    'the log and the tree over it are what was recorded and signed again: tree heads are signed again',
  failing: 'the tree is signed again',
} as const;

/** What somebody reads whom the alarm has woken. */
const WHAT_TO_DO =
  'nothing is signed any more: keep a copy of the store as it is, and follow ops/runbooks/LedgerAuditTreeMismatch.md';

const DEFAULTS: SignerSettings = {
  everyMs: 10_000,
  everyLeaves: 1000,
  lookMs: 500,
  sampleMs: 10_000,
  lastMs: 2000,
};

/** Two signers at once, for the moment of a takeover, break nothing: heads are appended at the expected revision. */
export const createAuditSigner = (ports: SignerPorts): AuditSigner => {
  const { store, tree, heads, clock, timers, ownership, logger, rest } = ports;
  const settings = { ...DEFAULTS, ...ports.settings };
  const sample = createLeafSample(ports);
  let suspected = false;
  let status: SignerStatus = { state: 'standby', failures: 0 };
  /** What was logged, and has not been said to be over. */
  let trouble: keyof typeof OVER | undefined;
  const became = (state: SignerStatus['state'], error?: string, failed = 0): void => {
    status = { state, failures: status.failures + failed, ...(error !== undefined && { error }) };
  };

  /** Returns whether it has to be logged. */
  const beginning = (which: keyof typeof OVER): boolean => {
    const isNew = trouble !== which;
    trouble = which;
    return isNew;
  };
  const over = (): void => {
    if (trouble !== undefined) logger.info({}, OVER[trouble]);
    trouble = undefined;
  };

  const fail = (error: unknown): void => {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof TreeMismatch) {
      if (beginning('mismatch')) logger.error({ size: error.size }, `${text}; ${WHAT_TO_DO}`);
      return became('mismatch', text, 1);
    }
    if (error instanceof LogDamaged) {
      const says = `${whatIsWrong(error)}; ${WHAT_TO_DO}`;
      if (beginning('mismatch')) logger.error({ ...error.at }, says);
      became('mismatch', says, 1);
      if (error.at !== undefined) status = { ...status, at: error.at };
      return;
    }
    if (beginning('failing')) logger.warn({ err: error }, 'tree not signed; retrying');
    became('failing', text, 1);
  };

  const whileOwner = async ({ signal: held, isHeld }: Lease, stop: AbortSignal): Promise<void> => {
    let tenants = createTenantHeads(tree, rest);
    let last = undefined as TreeHead | undefined;
    let loaded = false;
    let tailLooked = false;
    let signedAt = Number.NEGATIVE_INFINITY;
    let checkedAt = Number.NEGATIVE_INFINITY;
    let sampledAt = Number.NEGATIVE_INFINITY;

    const look = async (signal: AbortSignal, atOnce = false): Promise<void> => {
      if (!loaded) last = await heads.latest(signal);
      loaded = true;
      // Until then it may also be the tree of a log that went further, before a crash took the end of it.
      if (!ports.caughtUp()) return became('catching-up');
      const size = tree.size();
      if (last !== undefined && size < last.size) {
        // Another instance signed what comes to this one in a moment.
        if (await isOnItsWay(ports, size, last)) return became('catching-up');
        throw new TreeMismatch(last.size, `is gone: the log has only ${size} leaves`);
      }
      if (last !== undefined && tenants.mainSize() === 0) await checkTenants(tenants, last);
      // What was left unsigned, by a crash say, could be changed since without a trace: the tree may know it from before.
      if (!tailLooked) await sample.tail(last?.size ?? 0, size, signal);
      tailLooked = true;
      const fresh = size - (last?.size ?? 0);
      const now = clock.monotonicMs();
      const due =
        fresh > 0 && (atOnce || fresh >= settings.everyLeaves || now - signedAt >= settings.everyMs);
      // Whether there is anything to sign or not: a tree that is not right is noticed, and one that is right again.
      if (due || suspected || now - checkedAt >= settings.everyMs) {
        if (last !== undefined) checkRoot(tree, last);
        if (suspected || now - sampledAt >= settings.sampleMs) {
          suspected = false;
          await sample.look(size, signal);
          sampledAt = now;
        }
        checkedAt = now;
        became('signing');
      }
      if (due) {
        await tenants.advance(size);
        last = await sign(ports, size, { count: tenants.count(), root: await tenants.root() }, last);
        signedAt = now;
        logger.debug({ size, keyId: last.keyId }, 'tree head signed');
      }
      if (status.state === 'mismatch') return;
      became('signing');
      over();
    };

    /** What nobody has signed when the service stops would stay so until it is started again. */
    const signLast = async (signal: AbortSignal): Promise<void> => {
      try {
        const position = await store.lastPosition();
        if (position === undefined) return;
        if (await ports.reaches(position, { timeoutMs: settings.lastMs, signal })) await look(signal, true);
      } catch (error) {
        if (error instanceof TreeMismatch || error instanceof LogDamaged) fail(error);
        else if (!(error instanceof WrongExpectedRevision) && !signal.aborted)
          logger.warn({ err: error }, 'tree head not signed at shutdown; the next start signs it');
      }
    };

    became('signing');
    while (!held.aborted) {
      let wait = settings.lookMs;
      try {
        await look(held);
      } catch (error) {
        if (held.aborted) break;
        // What was known of heads and tenants may be wrong: both are read again.
        loaded = false;
        tenants = createTenantHeads(tree, rest);
        // The instance that took over has signed: not a failure.
        if (!(error instanceof WrongExpectedRevision)) fail(error);
        sampledAt = Number.NEGATIVE_INFINITY;
        if (error instanceof TreeMismatch || error instanceof LogDamaged) wait = settings.everyMs;
        if (error instanceof StoreUnavailable) wait = Math.max(wait, error.retryAfterMs);
      }
      await pause(timers, wait, held);
    }
    // A lease that was lost is another instance's: that one signs.
    if (!stop.aborted || status.state !== 'signing' || isHeld?.() === false) return;
    const ended = new AbortController();
    await Promise.race([signLast(ended.signal), pause(timers, settings.lastMs, ended.signal)]);
    ended.abort();
  };

  return {
    run: (signal) =>
      ownership.hold(signal, async (lease) => {
        await whileOwner(lease, signal);
        became('standby');
        // Of what another instance signs this one knows nothing.
        trouble = undefined;
      }),
    status: () => status,
    suspect: (index) => {
      sample.suspect(index);
      suspected = true;
    },
  };
};

/** True when the log holds the position of a head, and a tree of that many leaves is not there yet. */
const isOnItsWay = async (
  { store, tree }: Pick<SignerPorts, 'store' | 'tree'>,
  size: number,
  head: TreeHead,
): Promise<boolean> => {
  const applied = tree.leaf(size - 1)?.position ?? '';
  return applied < head.position && ((await store.lastPosition()) ?? '') >= head.position;
};

/** Throws TreeMismatch. */
const checkRoot = (tree: AuditTree, { size, root }: TreeHead): void => {
  if (rootAt(size, tree.hashAt).toString('base64') !== root)
    throw new TreeMismatch(size, 'has another root now');
};

/** The tenants of the last head, from which the next ones go on. Throws TreeMismatch. */
const checkTenants = async (
  tenants: ReturnType<typeof createTenantHeads>,
  { size, tenants: count, tenantsRoot }: TreeHead,
): Promise<void> => {
  await tenants.advance(size);
  if (tenants.count() !== count || (await tenants.root()).toString('base64') !== tenantsRoot)
    throw new TreeMismatch(size, 'has other trees of tenants now');
};

/**
 * A head is never signed with an earlier time than the one before it, whatever the clocks of instances say: so a smaller tree
 * with a later time shows that history was taken back.
 */
const laterOf = (now: string, before = now): string => (Date.parse(before) > Date.parse(now) ? before : now);

const sign = async (
  { store, tree, keys, origin, clock, ids, instance }: SignerPorts,
  size: number,
  tenants: { readonly count: number; readonly root: Buffer },
  last: TreeHead | undefined,
): Promise<TreeHead> => {
  const key = await keys.current();
  const at = laterOf(clock.now(), last?.at);
  const root = rootAt(size, tree.hashAt);
  const position = tree.leaf(size - 1)?.position ?? '-';
  const text = checkpointText({ origin, size, root, tenants, position, time: at });
  const data: TreeHeadData = {
    at,
    size,
    position,
    root: root.toString('base64'),
    tenantsRoot: tenants.root.toString('base64'),
    tenants: tenants.count,
    note: signNote(text, { name: origin, privateKey: key.privateKey }),
    keyId: key.keyId,
  };
  if (last === undefined) await store.setMaxCount(TREE_HEADS_STREAM, MOST_HEADS);
  const event = createBookkeeping(instance)(
    TREE_HEADS_STREAM,
    { type: 'TreeHeadSigned', data },
    'SignTreeHead',
    ids.uuidv7(),
  );
  const { revision } = await store.append(TREE_HEADS_STREAM, last?.revision ?? 'no_stream', [event]);
  return { ...data, revision };
};
