import type { ProcessRunner } from './types.ts';

/** What the parts that the process runner is made of, or works beside, ask of it: placement, hub health, the hub observer. */
export type Processes = Pick<
  ProcessRunner,
  'observe' | 'isClosed' | 'isUnknown' | 'laneBlocked' | 'laneCalls' | 'probeLane'
>;

/** A runner that owns nothing and has no lanes. */
const NO_RUNNER: Processes = {
  observe: () => false,
  isClosed: () => false,
  isUnknown: () => false,
  laneBlocked: () => false,
  laneCalls: () => undefined,
  probeLane: () => undefined,
};

/**
 * The process runner as those parts see it. They are made before it, so the port is made first and the runner is plugged in
 * once: until then it answers as a runner that does not own the processes.
 */
export type ProcessPort = Processes & { plugIn<Runner extends Processes>(runner: Runner): Runner };

export const createProcessPort = (): ProcessPort => {
  let plugged = NO_RUNNER;
  return {
    observe: (workflow, runId, observation) => plugged.observe(workflow, runId, observation),
    isClosed: (workflow, runId) => plugged.isClosed(workflow, runId),
    isUnknown: (workflow, runId) => plugged.isUnknown(workflow, runId),
    laneBlocked: (lane, order) => plugged.laneBlocked(lane, order),
    laneCalls: (lane) => plugged.laneCalls(lane),
    probeLane: (lane) => plugged.probeLane(lane),
    plugIn: (runner) => {
      plugged = runner;
      return runner;
    },
  };
};
