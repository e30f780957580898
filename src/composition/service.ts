import type { Logger } from '../app/ports.ts';
import type { Failpoint } from '../app/process-runner/types.ts';
import type { Config } from '../config.ts';
import { runInBackground, sayWhatIdles, warnOfSimulatedHubs, type Background } from './background.ts';
import { loadCatalog } from './catalog-loader.ts';
import { createClosers, stopped, within } from './closers.ts';
import { openPorts, openSystem, thisProcess, type Opened } from './opening.ts';
import { createServed, serve, type Served } from './serving.ts';
import { startUpkeep, type Upkeep } from './upkeep.ts';

export { StartStopped } from './closers.ts';

export type ServiceOptions = {
  readonly logger: Logger;
  readonly nodeEnv: string | undefined;
  /** Writes the one line that names the bound addresses, whatever the log level: scripts wait for it. */
  readonly announce: (fields: object, message: string) => void;
  /** Fires when the service is told to stop; a start that is under way is then taken back, and throws StartStopped. */
  readonly stop?: AbortSignal;
  /** Tests only: called at the named points of the process runner. */
  readonly failpoint?: Failpoint;
};

export type Service = {
  readonly http: string;
  readonly metrics: string;
  /** `host:port` of the gRPC listener. Absent: there is none. */
  readonly grpc?: string;
  /** Stops in order: no new requests, running ones finish, processes stop, stores close. */
  stop(): Promise<void>;
  /** Rejects when a part that must run has broken down for good. */
  readonly broken: Promise<never>;
};

/** Builds the whole service from its settings and starts it. Throws with a sentence for the operator when it cannot. */
export const startService = async (
  config: Config,
  { logger, announce, nodeEnv, stop, failpoint }: ServiceOptions,
): Promise<Service> => {
  const ports = thisProcess(logger, nodeEnv);
  const closers = createClosers();
  try {
    const opened = await openPorts(config, ports, closers);
    const { store, measured } = opened;
    const system = await openSystem(config, opened, failpoint, closers);

    const running = new AbortController();
    const background: { parts?: Background; upkeep?: Upkeep } = {};
    closers.push(async () => {
      running.abort();
      try {
        await background.parts?.ended;
        await background.upkeep?.ended;
        await system.idle();
      } finally {
        await background.parts?.endSigning();
      }
    });

    const { readModels } = system;
    const hooks = { published: measured.published };
    const publishing = { ...ports, store, hooks, readModels, leases: opened.leases };
    // Loaded here: a service without Kafka need not load its client, nor what publishes.
    const publisher =
      config.kafkaBrokers.length === 0
        ? undefined
        : (await import('./publishing.ts')).openPublisher(config, publishing);
    if (publisher !== undefined && config.roles.includes('publisher')) measured.followPublisher(publisher);
    const served = await createServed(config, opened, system);
    const listening = await serve(
      config,
      opened,
      { system, served, publisher, running: running.signal },
      closers,
    );

    // Only now, so that a start which is refused for its addresses has taken no lease and touched no hub.
    const parts = runInBackground(
      { system, publisher, refusals: opened.refusals, suspects: served.suspects, auditApi: served.auditApi },
      config.roles,
      running.signal,
      logger,
    );
    background.parts = parts;
    const { http, metrics, gate, readiness } = listening;
    const grpc = listening.grpc === undefined ? {} : { grpc: listening.grpc };
    const { instance, holder } = ports;
    announce(
      { http, ...grpc, metrics, store: store.kind, roles: config.roles, instance, holder },
      'listening',
    );
    sayWhatIdles(config, logger);
    // Nothing waits for it: it fails only when the service stops.
    warnOfSimulatedHubs(system.hubs, opened, running.signal).catch(() => undefined);
    const finish = async (): Promise<void> => {
      await gate.passed;
      background.upkeep = startUpkeep(upkeepOf(opened, served), running.signal);
      await background.upkeep.first;
      await loadCatalogue(opened, served, running.signal);
    };
    await Promise.race([finish(), parts.broken, stopped(stop)]);
    readiness.started();
    return { http, ...grpc, metrics, stop: closers.closeAll, broken: parts.broken };
  } catch (error) {
    // Why it cannot start matters more than how well it was taken down, and must be said even if that hangs.
    await within(CLOSE_MS, ports.timers, closers.closeAll()).catch((problem: unknown) =>
      logger.error({ err: problem }, 'not closed in order'),
    );
    throw error;
  }
};

/** Milliseconds that the parts of a start that failed get to close. */
const CLOSE_MS = 5_000;

const upkeepOf = (
  { timers, logger, metrics }: Opened,
  { services, erasures, positions }: Served,
): Parameters<typeof startUpkeep>[0] => ({
  ...services,
  erasures,
  timers,
  logger,
  applied: positions.applied,
  onDangling: (total) => metrics.danglingReferences.set(total),
});

/** The catalogue's references are looked up in the read model, so that has to know the log first. */
const loadCatalogue = async (
  { catalog, logger }: Opened,
  { services, surfaces, positions }: Served,
  signal: AbortSignal,
): Promise<void> => {
  const privateSurface = surfaces.find(({ surface }) => surface === 'private');
  if (catalog === undefined || privateSurface === undefined) return;
  await loadCatalog(catalog, { ...services, privateSurface, positions, logger, signal });
};
