import type { Metrics } from '../adapters/metrics/metrics.ts';
import { createAuditKeys, type AuditKeyFiles, type AuditKeys } from '../app/audit/audit-keys.ts';
import { originOf } from '../app/audit/merkle/checkpoint.ts';
import { createAuditProofs, type AuditProofs } from '../app/audit/proofs.ts';
import { createAuditSigner, type SignerSettings, type SignerStatus } from '../app/audit/signer.ts';
import { createAuditHeads, type AuditHalt, type AuditHeads } from '../app/audit/tree-heads.ts';
import { whatIsWrong, WHAT_TO_DO, type Suspects } from '../app/audit/changed-events.ts';
import { LogDamaged, type EventStore } from '../app/log/event-store.ts';
import { defined } from '../domain/json-tools.ts';
import type { Ownership } from '../app/deployment/ownership.ts';
import type { Runtime } from '../app/ports.ts';
import type { AuditReader } from '../projections/audit/audit-reader.ts';
import type { ReadModels } from '../projections/read-models.ts';

/** What the role `auditor` needs beside what every system has. */
export type AuditorPorts = {
  readonly keyFiles: AuditKeyFiles;
  readonly ownership: Ownership;
  readonly settings?: Partial<SignerSettings>;
};

/** The part of a system that makes the history provable (role `auditor`). */
export type Auditing = {
  /** `fulfillment-ledger/<store id>`: names the log in checkpoints, and the keys that sign them. */
  readonly origin: string;
  readonly reader: AuditReader;
  readonly heads: AuditHeads;
  readonly keys: AuditKeys;
  readonly proofs: AuditProofs;
  /**
   * Signs tree heads while this instance holds the lease. Returns soon after the signal was aborted; what was not signed yet
   * is signed then.
   */
  run(signal: AbortSignal): Promise<void>;
  status(): SignerStatus;
  /** A read has found this event (`<stream>@<revision>`) damaged: the signer looks at it within seconds, and raises the alarm. */
  suspect(event: string): void;
  /**
   * Why no head will come until somebody has mended the store, as far as this instance can tell: the log is another one than was
   * recorded (`at`: the event, where it is known), or the tree. Undefined: heads come, or another instance signs.
   */
  halted(): AuditHalt | undefined;
  /** How far the signatures are behind the tree, whichever instance signs. */
  progress(): Promise<AuditProgress>;
};

export type AuditProgress = {
  /** Leaves under the last signed head. */
  readonly signedSize: number;
  readonly unsignedLeaves: number;
  /** Seconds since the last head was signed; while there is none, since the first event. */
  readonly headAgeSeconds: number;
  /** The tree holds everything that the log holds: otherwise more may be unsigned. */
  readonly caughtUp: boolean;
};

export const createAuditing = (
  readModels: Pick<ReadModels, 'audit' | 'status' | 'waitFor'>,
  ports: {
    readonly store: EventStore;
    readonly auditor: AuditorPorts;
  } & Runtime,
): Auditing => {
  const { store, clock, timers, logger, auditor } = ports;
  const reader = readModels.audit;
  if (reader === undefined) throw new TypeError('the role auditor needs the read model audit');
  const origin = originOf(store.storeId);
  const heads = createAuditHeads(store);
  const keys = createAuditKeys({
    ...ports,
    files: auditor.keyFiles,
    origin,
    treeSize: () => reader.size(),
  });
  const rest = (): Promise<void> => new Promise((resolve) => void timers.after(0, resolve));
  const caughtUp = (): boolean =>
    readModels.status().some(({ name, caughtUp: isThere }) => name === 'audit' && isThere);
  const signer = createAuditSigner({
    ...ports,
    tree: reader,
    reaches: (position, options) => readModels.waitFor('audit', position, options),
    caughtUp,
    heads,
    keys,
    origin,
    ownership: auditor.ownership,
    logger: logger.child({ component: 'auditor' }),
    rest,
    ...defined({ settings: auditor.settings }),
  });
  /** A tree that has stopped in front of a damaged event, or of one that does not follow, never holds what the log holds. */
  const stoppedAt = () => readModels.status().find(({ name }) => name === 'audit')?.damaged;
  return {
    origin,
    reader,
    heads,
    keys,
    proofs: createAuditProofs({ tree: reader, heads, keys, origin, rest }),
    run: signer.run,
    status: () => statusWith(signer.status(), stoppedAt()),
    suspect: (event) => {
      const at = event.lastIndexOf('@');
      const index = reader.indexOf(event.slice(0, at), Number(event.slice(at + 1)));
      if (index !== undefined) signer.suspect(index);
    },
    halted: () => {
      const { state, at } = signer.status();
      if (state === 'mismatch') return { at };
      if (state === 'standby') return undefined;
      return stoppedAt();
    },
    progress: async () => {
      const head = await heads.latest();
      const signedSize = head?.size ?? 0;
      const since = head?.at ?? reader.leaf(0)?.recordedAt ?? clock.now();
      const ageMs = Date.parse(clock.now()) - Date.parse(since);
      return {
        signedSize,
        unsignedLeaves: Math.max(0, reader.size() - signedSize),
        headAgeSeconds: Math.max(0, ageMs / 1000),
        caughtUp: caughtUp(),
      };
    },
  };
};

/** The tree is what nothing is signed over, whichever instance signs: one that cannot go on says so as the signer would. */
const statusWith = (status: SignerStatus, damaged: Pick<LogDamaged, 'at'> | undefined): SignerStatus => {
  if (damaged === undefined || status.state === 'mismatch') return status;
  const error = whatIsWrong(
    new LogDamaged('the event log of this service is damaged: no tree can be made of it', damaged.at),
  );
  return {
    ...status,
    state: 'mismatch',
    error: `${error}; nothing is signed any more: ${WHAT_TO_DO}`,
    ...(damaged.at !== undefined && { at: damaged.at }),
  };
};

/** Told of events that reads find changed, also where another instance signs: its status says of them what is wrong. */
export const watchfulOf = <Part extends Pick<Auditing, 'status' | 'suspect'>>(
  auditing: Part,
  suspects: Pick<Suspects, 'suspect' | 'status'>,
): Part => ({
  ...auditing,
  suspect: (event) => {
    suspects.suspect(event);
    auditing.suspect(event);
  },
  status: () => {
    const status = auditing.status();
    const error = status.error ?? suspects.status();
    return error === undefined ? status : { ...status, error };
  },
});

/** Every instance tells of what it has found itself: of a tree that is not what was signed, and of events that were changed. */
export const measureDamage = (
  metrics: Pick<Metrics, 'onScrape' | 'auditMismatch'>,
  suspects: Pick<Suspects, 'status'>,
  auditing: Pick<Auditing, 'status'> | undefined,
): void => {
  metrics.onScrape(async () => {
    const damaged = auditing?.status().state === 'mismatch' || suspects.status() !== undefined;
    metrics.auditMismatch.set(damaged ? 1 : 0);
  });
};

/** Read when Prometheus asks. While the store does not answer, the last figures stand: another alert tells of that. */
export const measureAuditing = (
  metrics: Pick<Metrics, 'onScrape' | 'auditSignedSize' | 'auditUnsigned' | 'auditHeadAge' | 'auditFailures'>,
  { status, progress }: Pick<Auditing, 'status' | 'progress'>,
): void => {
  let counted = 0;
  metrics.onScrape(async () => {
    const { failures } = status();
    metrics.auditFailures.inc(failures - counted);
    counted = failures;
    const known = await progress().catch(() => undefined);
    if (known === undefined) return;
    metrics.auditSignedSize.set(known.signedSize);
    metrics.auditUnsigned.set(known.unsignedLeaves);
    metrics.auditHeadAge.set(known.headAgeSeconds);
  });
};
