import { createAuditKeys, type AuditKeyFiles } from '../../../src/app/audit/audit-keys.ts';
import { originOf } from '../../../src/app/audit/merkle/checkpoint.ts';
import { createAuditProofs } from '../../../src/app/audit/proofs.ts';
import { createAuditSigner, type SignerPorts, type SignerSettings } from '../../../src/app/audit/signer.ts';
import { createAuditHeads } from '../../../src/app/audit/tree-heads.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Clock, Logger, Timers } from '../../../src/app/ports.ts';
import { memoryAuditKeyFiles } from '../../../src/adapters/keys/audit-keys.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import type { AuditReader } from '../../../src/projections/audit/audit-reader.ts';
import { auditView } from '../../../src/projections/audit/audit-view.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { eventually } from '../eventually.ts';
import { silentLogger } from '../loggers.ts';

/** The audit view alone, in memory. */
export const openAuditView = (store: EventStore, dir?: string): Promise<ReadModels> =>
  openReadModels({ dir, views: [auditView()], source: { kind: 'inline', reader: store } });

export const audit = ({ audit: reader }: ReadModels): AuditReader => {
  if (reader === undefined) throw new Error('there is no audit view');
  return reader;
};

/** Waits until the view has applied everything that the log holds now. */
export const followed = async (models: ReadModels, store: EventStore): Promise<void> => {
  const last = await store.lastPosition();
  if (last !== undefined && !(await models.waitFor('audit', last, { timeoutMs: 40_000 })))
    throw new Error(`audit did not reach ${last}: ${JSON.stringify(models.status())}`);
  await eventually('audit is live', () => models.status().every(({ state }) => state !== 'rebuilding'));
};

/** Signer, heads, keys and proofs of one instance over a tree. */
export const openSigning = ({
  store,
  tree,
  clock,
  timers,
  instance = 'one',
  files = memoryAuditKeyFiles(originOf(store.storeId)),
  ownership,
  settings,
  caughtUp = () => true,
  logger = silentLogger,
  reaches = () => Promise.resolve(true),
}: {
  store: EventStore;
  tree: AuditTree;
  clock: Clock;
  timers: Timers;
  instance?: string;
  files?: AuditKeyFiles;
  ownership?: Ownership;
  settings?: Partial<SignerSettings>;
  caughtUp?: () => boolean;
  reaches?: SignerPorts['reaches'];
  logger?: Logger;
}) => {
  const origin = originOf(store.storeId);
  let count = 0;
  const ids = {
    uuidv7: () => {
      count += 1;
      return `${instance}-${count}`;
    },
  };
  const heads = createAuditHeads(store);
  const keys = createAuditKeys({ store, files, origin, clock, ids, instance, treeSize: () => tree.size() });
  const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const signer = createAuditSigner({
    store,
    tree,
    heads,
    keys,
    origin,
    clock,
    timers,
    ids,
    instance,
    logger,
    rest,
    caughtUp,
    reaches,
    ownership:
      ownership ??
      createLeases({
        store,
        instance,
        directory: instance,
        clock,
        timers,
        logger,
      })('auditor'),
    ...(settings === undefined ? {} : { settings }),
  });
  return { origin, heads, keys, signer, proofs: createAuditProofs({ tree, heads, keys, origin, rest }) };
};
