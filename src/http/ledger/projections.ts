import type { ProjectionStatus, ReadModels } from '../../projections/read-models.ts';
import { ApiError } from '../errors.ts';
import type { Positions } from '../positions.ts';
import type { ActServices } from './acts.ts';
import { fieldsOf, readBody } from './forms.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';
import { REBUILD_BODY, type Projection, type RebuildLine } from './upkeep-operations.ts';

/** Read models of the instance that answers: state, digest, rebuild, parked streams. */
export type ProjectionServices = ActServices & {
  readonly readModels: Pick<ReadModels, 'status' | 'rebuild' | 'digest' | 'retryParked'>;
  readonly positions: Positions;
};

export const projectionRoutes = (services: ProjectionServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'projections',
    handler: () => ({
      json: { items: services.readModels.status().map((status) => shown(status, services)) },
    }),
  },
  {
    verb: 'GET',
    path: 'projections/{name}',
    handler: (call) => ({ json: shown(find(call, services), services) }),
  },
  {
    verb: 'GET',
    path: 'projections/{name}/digest',
    handler: async (call) => {
      const { name } = find(call, services);
      const { position, digest, rows } = await services.readModels.digest(name);
      return { json: { ...positionOf(position, services), digest, rows } };
    },
  },
  {
    verb: 'POST',
    path: 'projections/{name}/rebuild',
    fields: fieldsOf(REBUILD_BODY),
    handler: async (call) => {
      const { name } = find(call, services);
      const { force } = readBody(call.body, REBUILD_BODY);
      await services.recordAct(call, { act: 'projections/rebuild', on: name });
      return { lines: rebuild(name, force, services, call.signal) };
    },
  },
  {
    verb: 'POST',
    path: 'projections/{name}/parked/{stream}/retry',
    handler: async (call) => {
      const { name, parkedStreams } = find(call, services);
      const stream = call.path['stream'] ?? '';
      if (!parkedStreams.some((parked) => parked.stream === stream))
        throw new ApiError('NOT_FOUND', `projection '${name}' has not parked a stream '${stream}'`);
      await services.recordAct(call, { act: 'projections/retry', on: `${name} ${stream}` });
      return { json: { stream, applied: await services.readModels.retryParked(name, stream) } };
    },
  },
];

const find = ({ path }: LedgerCall, { readModels }: ProjectionServices): ProjectionStatus => {
  const name = path['name'] ?? '';
  const status = readModels.status().find((candidate) => candidate.name === name);
  if (status === undefined) throw new ApiError('NOT_FOUND', `projection '${name}' not found`);
  return status;
};

const positionOf = (
  position: string | undefined,
  { positions }: ProjectionServices,
): { readonly position?: string } => (position === undefined ? {} : { position: positions.format(position) });

/** As `ProjectionStatus`, with positions as HTTP carries them. */
const shown = (status: ProjectionStatus, services: ProjectionServices): Projection => {
  const { position, parkedStreams, rebuild: running, ...rest } = status;
  return {
    ...rest,
    ...positionOf(position, services),
    parkedStreams: parkedStreams.map((parked) => ({ ...parked, ...positionOf(parked.position, services) })),
    rebuild: running && {
      events: running.events,
      ...positionOf(running.position, services),
      target: positionOf(running.target, services).position,
    },
  };
};

/** Progress lines `{"events":n}`, then `{"report":…}`; ends with `{"error":…}` when it failed. */
async function* rebuild(
  name: string,
  force: boolean,
  services: ProjectionServices,
  signal: AbortSignal,
): AsyncGenerator<RebuildLine> {
  let latest = 0;
  let told = 0;
  let wake = (): void => undefined;
  let done = false;
  const running = services.readModels
    .rebuild(name, {
      signal,
      force,
      onProgress: (events) => {
        latest = events;
        wake();
      },
    })
    .finally(() => {
      done = true;
      wake();
    });
  // Its failure is read from `running` below; here it only must not count as unhandled meanwhile.
  running.catch(() => undefined);
  while (!done) {
    if (latest > told) {
      told = latest;
      yield { events: told };
      continue;
    }
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (done || latest > told) resolve();
    });
  }
  const { position, ...report } = await running;
  yield { report: { ...report, ...positionOf(position, services) } };
}
