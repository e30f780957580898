import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openExportFiles } from '../../../src/adapters/audit/export-files.ts';
import { openAuditKeyFiles } from '../../../src/adapters/keys/audit-keys.ts';
import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createErasures } from '../../../src/app/audit/erasure.ts';
import { originOf } from '../../../src/app/audit/merkle/checkpoint.ts';
import { createAuditApi, type AuditApi, type AuditApiPorts } from '../../../src/composition/audit-api.ts';
import { createAuditing, type Auditing } from '../../../src/composition/auditing.ts';
import type { KeyStore } from '../../../src/app/ports.ts';
import type { PersonalMetadata } from '../../../src/app/tenancy/subjects.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';

export type AuditPart = {
  readonly auditing: Auditing;
  readonly api: AuditApi;
  /** Where exports lie. */
  readonly directory: string;
  /** What a service that starts after a crash has: it knows nothing but the log and the directory. */
  restarted(): Promise<AuditApi>;
  close(): Promise<void>;
};

export type AuditPartPorts = Omit<
  AuditApiPorts,
  'auditing' | 'erasures' | 'files' | 'timers' | 'productVersion' | 'readModels'
> & {
  readonly readModels: ReadModels;
  readonly erase: PersonalMetadata['erase'];
  readonly hasKey: KeyStore['has'];
  /** False: nothing is signed. */
  readonly signs?: boolean;
  /** False: exports wait. */
  readonly exports?: boolean;
  /** Milliseconds at least between two looks at leaves. Default: that of the service. */
  readonly sampleMs?: number;
};

/** The role `auditor` of a service in memory: heads are signed within milliseconds, exports lie in a directory. */
export const startAuditPart = async ({ signs = true, ...ports }: AuditPartPorts): Promise<AuditPart> => {
  const { store, clock, ids, logger, runner } = ports;
  const timers = systemTimers();
  const directory = await mkdtemp(join(tmpdir(), 'ledger-audit-'));
  const auditing = createAuditing(ports.readModels, {
    store,
    clock,
    timers,
    ids,
    instance: 'test',
    logger,
    auditor: {
      keyFiles: await openAuditKeyFiles({
        directory: join(directory, 'keys'),
        kek: randomBytes(32),
        origin: originOf(store.storeId),
      }),
      ownership: { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) },
      settings: {
        everyMs: 20,
        lookMs: 10,
        ...(ports.sampleMs === undefined ? {} : { sampleMs: ports.sampleMs }),
      },
    },
  });
  const createApi = async (): Promise<AuditApi> =>
    createAuditApi({
      ...ports,
      auditing,
      timers,
      erasures: createErasures({ runner, keys: { destroy: ports.erase, has: ports.hasKey }, clock, logger }),
      files: await openExportFiles(join(directory, 'exports')),
      productVersion: '0.0.0',
    });
  const api = await createApi();
  const stopping = new AbortController();
  const running = [
    ...(signs ? [auditing.run(stopping.signal)] : []),
    ...(ports.exports === false ? [] : [api.exports.run(stopping.signal)]),
  ];
  return {
    auditing,
    api,
    directory: join(directory, 'exports'),
    restarted: async () => {
      const next = await createApi();
      running.push(next.exports.run(stopping.signal));
      return next;
    },
    close: async () => {
      stopping.abort();
      await Promise.all(running);
      await rm(directory, { recursive: true, force: true });
    },
  };
};
