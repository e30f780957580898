import { createErasureLog } from '../app/audit/erasure-log.ts';
import type { Erasures } from '../app/audit/erasure.ts';
import { createAuditExports, type AuditExports } from '../app/audit/exports/exports.ts';
import type { ExportFiles, MakePages } from '../app/audit/exports/ports.ts';
import { createAuditGrants } from '../app/audit/grants.ts';
import type { EventCodec } from '../app/log/event-codec.ts';
import type { EventStore } from '../app/log/event-store.ts';
import type { Clock, Runtime } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import type { JsonObject } from '../domain/json.ts';
import type { OpenPersonal } from '../domain/personal.ts';
import type { Registry } from '../domain/registry.ts';
import { eventDataSchema } from '../http/asyncapi/event-schema.ts';
import { auditRoutes } from '../http/audit/routes.ts';
import { createNameSearches } from '../http/audit/name-searches.ts';
import type { AuditServices } from '../http/audit/services.ts';
import type { LedgerRoute } from '../http/ledger/serve.ts';
import type { ReadModels } from '../projections/read-models.ts';
import type { Auditing } from './auditing.ts';
import { defined } from '../domain/json-tools.ts';

/** `/api/audit/v1` and the exports behind it. */
export type AuditApi = { readonly routes: readonly LedgerRoute[]; readonly exports: AuditExports };

export type AuditApiPorts = Pick<
  AuditServices,
  'runner' | 'resources' | 'requestHash' | 'personal' | 'conceal' | 'access' | 'past' | 'positions'
> & {
  readonly auditing: Pick<Auditing, 'reader' | 'heads' | 'proofs' | 'keys' | 'halted' | 'suspect'>;
  readonly store: EventStore;
  readonly codec: EventCodec;
  readonly registry: Registry;
  readonly open: OpenPersonal;
  readonly erasures: Erasures;
  readonly readModels: Pick<ReadModels, 'waitFor'>;
  readonly files: ExportFiles;
  /** Makes lines and proofs of exports on other threads; absent: they are made on this one, in slices. */
  readonly makePages?: MakePages;
  readonly productVersion: string;
  /** Milliseconds that files of exports are kept. */
  readonly keepMs?: number;
  /** Finished exports that are kept of each tenant. */
  readonly exportsKept?: number;
} & Pick<Runtime, 'clock' | 'timers' | 'ids' | 'logger'>;

export const createAuditApi = (ports: AuditApiPorts): AuditApi => {
  const { auditing, store, codec, registry, open, runner, clock, timers } = ports;
  const { reader, heads, proofs, keys } = auditing;
  const rest = (): Promise<void> => pause(timers, 0, new AbortController().signal);
  const words = { codec, registry, open };
  const shared = { store, find: reader.find, rest };
  const exports = createAuditExports({
    source: {
      store,
      tree: reader,
      proofs,
      words,
      schemas: schemasInSteps(registry, clock, rest),
      productVersion: ports.productVersion,
      keys,
      ...defined({ makePages: ports.makePages }),
    },
    heads,
    find: reader.find,
    files: ports.files,
    runner,
    clock,
    timers,
    logger: ports.logger.child({ component: 'exports' }),
    rest,
    halted: auditing.halted,
    suspect: auditing.suspect,
    ...defined({ keepMs: ports.keepMs, keptOfTenant: ports.exportsKept }),
  });
  const services: AuditServices = {
    ...ports,
    reader,
    proofs,
    words,
    waitFor: ports.readModels.waitFor,
    grants: createAuditGrants({
      ...shared,
      runner,
      clock,
      logger: ports.logger.child({ component: 'grants' }),
    }),
    exports,
    erasureLog: createErasureLog(shared),
    searches: createNameSearches(),
    halted: auditing.halted,
  };
  return { routes: auditRoutes(services), exports };
};

/** Milliseconds that schemas are made in one go; one of them takes up to four. */
const SCHEMAS_MS = 2;

/** Schemas of all event types, made once: each takes some of the thread, all together too much at once. */
const schemasInSteps = (
  { types }: Pick<Registry, 'types'>,
  clock: Pick<Clock, 'monotonicMs'>,
  rest: () => Promise<void>,
): (() => Promise<{ readonly [type: string]: JsonObject }>) => {
  let made: Promise<{ readonly [type: string]: JsonObject }> | undefined;
  const make = async (): Promise<{ readonly [type: string]: JsonObject }> => {
    const schemas: (readonly [string, JsonObject])[] = [];
    let since = clock.monotonicMs();
    for (const type of types) {
      schemas.push([type.type, eventDataSchema(type)]);
      if (clock.monotonicMs() - since < SCHEMAS_MS) continue;
      await rest();
      since = clock.monotonicMs();
    }
    return Object.fromEntries(schemas);
  };
  return () => (made ??= make());
};
