import type { RefusalRecorder } from '../app/audit/refusal-recorder.ts';
import type { Suspects } from '../app/audit/changed-events.ts';
import type { HubRegistry } from '../app/hubs/hub-registry.ts';
import type { Logger } from '../app/ports.ts';
import type { Publisher } from '../app/publisher/publisher.ts';
import type { Config, Role } from '../config.ts';
import type { AuditApi } from './audit-api.ts';
import type { System } from './system.ts';

export type Background = {
  /** All but the signer of the audit tree. */
  readonly ended: Promise<unknown>;
  /** Ends the signer, whose last head covers what was appended by then: to be called when nobody appends any more. */
  endSigning(): Promise<unknown>;
  readonly broken: Promise<never>;
};

/** Parts that follow the log for as long as the service runs. One that ends by itself takes the service down. */
export const runInBackground = (
  {
    system,
    publisher,
    refusals,
    suspects,
    auditApi,
  }: {
    readonly system: System;
    readonly publisher: Publisher | undefined;
    readonly refusals: RefusalRecorder;
    readonly suspects: Pick<Suspects, 'run'>;
    readonly auditApi: AuditApi | undefined;
  },
  roles: readonly Role[],
  signal: AbortSignal,
  logger: Logger,
): Background => {
  const signing = new AbortController();
  const signer =
    system.auditing === undefined ? [] : [{ name: 'auditor', ended: system.auditing.run(signing.signal) }];
  const others = [
    { name: 'registries of hubs and pools', ended: system.runRegistries(signal) },
    { name: 'record of refusals', ended: refusals.run(signal) },
    { name: 'changed events', ended: suspects.run(signal) },
    ...(roles.includes('processes') ? [{ name: 'processes', ended: system.runProcesses(signal) }] : []),
    ...(auditApi === undefined ? [] : [{ name: 'exports', ended: auditApi.exports.run(signal) }]),
    ...(roles.includes('publisher') && publisher !== undefined
      ? [{ name: 'publisher', ended: publisher.run(signal) }]
      : []),
  ];
  const broken = new Promise<never>((_, reject) => {
    for (const { name, ended } of [...others, ...signer]) {
      ended.then(
        () => signal.aborted || reject(new Error(`${name} ended by itself`)),
        (error: unknown) => {
          logger.error({ err: error, part: name }, 'part of the service broke down');
          reject(new Error(`${name} broke down`, { cause: error }));
        },
      );
    }
  });
  broken.catch(() => undefined);
  const endOf = (parts: typeof others) => Promise.allSettled(parts.map(({ ended }) => ended));
  return {
    ended: endOf(others),
    endSigning: () => {
      signing.abort();
      return endOf(signer);
    },
    broken,
  };
};

/** Names the simulated hubs that are registered and take no orders here, once they are known. Rejects on abort. */
export const warnOfSimulatedHubs = async (
  hubs: HubRegistry,
  { refusesSimulated, logger }: { readonly refusesSimulated: boolean; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> => {
  if (!refusesSimulated) return;
  await hubs.ready(signal);
  const simulated = hubs.hubs().filter(({ facts }) => facts.simulated);
  if (simulated.length === 0) return;
  logger.warn(
    { hubs: simulated.map(({ facts }) => facts.id) },
    'simulated hubs take no orders in production: deregister them, or set LEDGER_SIMULATED_HUBS=allowed',
  );
};

/** Roles that were asked for and have nothing to do say so: a silent idle part would look like a working one. */
export const sayWhatIdles = (config: Config, logger: Logger): void => {
  if (config.roles.includes('publisher') && config.kafkaBrokers.length === 0)
    logger.info({ role: 'publisher' }, 'role publisher idles: no LEDGER_KAFKA_BROKERS are set');
};
