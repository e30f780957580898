import type { LaneStatus, ProcessRunner } from '../../app/process-runner/types.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError } from '../errors.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

/**
 * Lanes of the instance that answers: each carries the effects on one far side (`hub:<id>`, `scheduler`). A pause holds
 * until it is ended or the processes start anew.
 */
export type LaneServices = {
  readonly lanes?: Pick<ProcessRunner, 'status' | 'pauseLane' | 'resumeLane'>;
};

export const laneRoutes = (services: LaneServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'lanes',
    handler: () => ({ json: { items: owner(services).status().lanes.map(shown) } }),
  },
  {
    verb: 'POST',
    path: 'lanes/{lane}/pause',
    handler: (call) => {
      owner(services).pauseLane(nameOf(call));
      return { json: stateOf(call, services) };
    },
  },
  {
    verb: 'POST',
    path: 'lanes/{lane}/resume',
    handler: (call) => {
      owner(services).resumeLane(nameOf(call));
      return { json: stateOf(call, services) };
    },
  },
];

/** Only the instance that runs the processes has lanes; another one would pause nothing. Throws ApiError. */
const owner = ({ lanes }: LaneServices): NonNullable<LaneServices['lanes']> => {
  if (lanes?.status().epoch === undefined)
    throw new ApiError('FAILED_PRECONDITION', 'this instance does not run the processes at the moment', {
      reason: 'NOT_THE_OWNER',
    });
  return lanes;
};

const nameOf = ({ path }: LedgerCall): string => {
  const name = path['lane'] ?? '';
  if (name !== 'scheduler' && !name.startsWith('hub:'))
    throw new ApiError('NOT_FOUND', `there is no lane '${name}'; lanes are scheduler and hub:<id>`);
  return name;
};

/** An idle lane is not kept: it has no trouble and nothing to do. */
const stateOf = (call: LedgerCall, services: LaneServices): JsonObject => {
  const name = nameOf(call);
  const lane = owner(services)
    .status()
    .lanes.find((candidate) => candidate.lane === name);
  return lane === undefined ? { lane: name, breaker: 'closed', paused: false } : shown(lane);
};

const shown = (lane: LaneStatus): JsonObject => ({
  lane: lane.lane,
  breaker: lane.breaker,
  paused: lane.paused,
  in_flight: lane.inFlight,
  waiting: lane.waiting,
  consecutive_failures: lane.consecutiveFailures,
  ...(lane.lastReason === undefined ? {} : { last_reason: lane.lastReason }),
});
