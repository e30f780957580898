import type { DataOf, Decider } from '../decider.ts';
import { own } from '../json-tools.ts';
import type { EventOf } from '../schemas.ts';
import type { LANE_PAUSE } from './event-types.ts';

/** Lanes that people hold back: `lanePauses-all`, so that a pause outlives the process that was told of it. */
export const LANE_PAUSES_CATEGORY = 'lanePauses';
export const LANE_PAUSES = 'all';

export type LanePauseEvent = EventOf<typeof LANE_PAUSE>;

export type LanePauseCommand =
  | ({ readonly type: 'PauseLane' } & DataOf<LanePauseEvent, 'LanePaused'>)
  | ({ readonly type: 'ResumeLane' } & DataOf<LanePauseEvent, 'LaneResumed'>);

export type LanePauses = {
  readonly paused: { readonly [lane: string]: Omit<DataOf<LanePauseEvent, 'LanePaused'>, 'lane'> };
};

export const lanePausesDecider: Decider<LanePauses, LanePauseCommand, LanePauseEvent> = {
  initialState: () => ({ paused: {} }),
  evolve: ({ paused }, event) => {
    const { [event.data.lane]: _former, ...others } = paused;
    if (event.type !== 'LanePaused') return { paused: others };
    const { lane, ...pause } = event.data;
    return { paused: { ...others, [lane]: pause } };
  },
  decide: ({ paused }, command) => {
    const known = own(paused, command.lane);
    if (command.type === 'ResumeLane') {
      const { type: _type, ...data } = command;
      return known === undefined ? [] : [{ type: 'LaneResumed', data }];
    }
    const { type: _type, ...data } = command;
    // A second one changes nothing but the reason, if it gives one.
    return known === undefined || (data.reason !== '' && data.reason !== known.reason)
      ? [{ type: 'LanePaused', data }]
      : [];
  },
};
