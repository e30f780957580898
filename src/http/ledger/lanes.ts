import type { Clock } from '../../app/ports.ts';
import { lanesOfHub, SCHEDULER_LANE } from '../../app/hubs/hub-lanes.ts';
import type { HubRegistry } from '../../app/hubs/hub-registry.ts';
import type { LaneStatus, ProcessRunner } from '../../app/process-runner/types.ts';
import type { CommandRunner } from '../../app/commands/command.ts';
import { siteLane } from '../../domain/hubs/hub-object.ts';
import { LANE_PAUSES, type LanePauseCommand } from '../../domain/hubs/lane-pauses.ts';
import { lanePausesAggregate } from '../../domain/kinds.ts';
import { ApiError, unfit } from '../errors.ts';
import { contextOf, type LookServices } from '../audit-reads.ts';
import { meant } from '../suggestions.ts';
import type { ActServices } from './acts.ts';
import { fieldsOf, readBody, rendered } from './forms.ts';
import { once, osacCall } from './osac-call.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';
import { LANE, PAUSE_BODY, type Lane } from './upkeep-operations.ts';

/**
 * Lanes of the instance that answers: each carries the effects on one far side (`hub:<id>`, `site:<zone>`,
 * `automation:<mode>:<id>`, `scheduler`). A pause is an event: it holds until somebody ends it, whichever instance runs the processes.
 */
export type LaneServices = ActServices &
  Pick<LookServices, 'ids' | 'requestHash' | 'personal'> & {
    readonly runner: Pick<CommandRunner, 'execute'>;
    readonly clock: Pick<Clock, 'now'>;
    readonly lanes?: Pick<ProcessRunner, 'status' | 'pauseLane' | 'resumeLane'>;
    /** Absent where no hubs are followed: then only lanes with work or trouble and the scheduler's are known. */
    readonly hubRegistry?: Pick<HubRegistry, 'hubs'>;
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
    fields: fieldsOf(PAUSE_BODY),
    handler: async (call) => {
      const on = nameOf(call, services);
      const { reason } = readBody(call.body, PAUSE_BODY);
      await services.recordAct(call, { act: 'lanes/pause', on });
      const [by, at] = [call.principal.subjectId, services.clock.now()];
      await record(call, services, { type: 'PauseLane', at, lane: on, by, reason });
      owner(services).pauseLane(on, { at, by, reason });
      return { json: stateOf(call, services) };
    },
  },
  {
    verb: 'POST',
    path: 'lanes/{lane}/resume',
    handler: async (call) => {
      const on = nameOf(call, services);
      await services.recordAct(call, { act: 'lanes/resume', on });
      const [by, at] = [call.principal.subjectId, services.clock.now()];
      await record(call, services, { type: 'ResumeLane', at, lane: on, by });
      owner(services).resumeLane(on);
      return { json: stateOf(call, services) };
    },
  },
];

/** Before it is done: a pause that is not recorded would end with the process. */
const record = async (call: LedgerCall, services: LaneServices, command: LanePauseCommand): Promise<void> => {
  const asked = { what: call.route, query: call.body, method: call.verb };
  const context = await contextOf(osacCall(once(call)), asked, services);
  await services.runner.execute(lanePausesAggregate, LANE_PAUSES, command, context);
};

/** Only the instance that runs the processes has lanes; another one would pause nothing. Throws ApiError. */
const owner = ({ lanes }: LaneServices): NonNullable<LaneServices['lanes']> => {
  if (lanes?.status().epoch === undefined)
    throw unfit('this instance does not run the processes at the moment', 'NOT_THE_OWNER');
  return lanes;
};

/**
 * A lane is made by its first work and an idle one is not kept, so that those are known that a registered hub may have, too:
 * a name that nobody works under would be paused, and nothing be held back. Throws ApiError 404.
 */
const nameOf = ({ path }: LedgerCall, services: LaneServices): string => {
  const name = path['lane'] ?? '';
  const known = new Set([
    ...owner(services)
      .status()
      .lanes.map(({ lane }) => lane),
    SCHEDULER_LANE,
    ...(services.hubRegistry?.hubs() ?? []).flatMap(({ facts }) => [
      ...lanesOfHub(facts.id),
      ...(facts.zone === '' ? [] : [siteLane(facts.zone)]),
    ]),
  ]);
  if (known.has(name)) return name;
  const near = meant(name, [...known]);
  throw new ApiError(
    'NOT_FOUND',
    `lane '${name.slice(0, LETTERS)}' not found${near || '; those of a hub are hub:<id> and hub:<id>:<kind of object>, that of a site is site:<zone>, and `ledgerctl lanes list` shows what is at work'}`,
  );
};

/** Characters of a name that are repeated. */
const LETTERS = 100;

/** An idle lane is not kept: it has no trouble and nothing to do. */
const stateOf = (call: LedgerCall, services: LaneServices): Lane => {
  const name = nameOf(call, services);
  const lane = owner(services)
    .status()
    .lanes.find((candidate) => candidate.lane === name);
  return lane === undefined ? { lane: name, breaker: 'closed', paused: false } : shown(lane);
};

const shown = (lane: LaneStatus): Lane => rendered(LANE, lane);
