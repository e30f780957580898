import type { Decider, DomainEvent } from '../decider.ts';
import { own } from '../json-tools.ts';

/** Lanes that people hold back: `lanePauses-all`, so that a pause outlives the process that was told of it. */
export const LANE_PAUSES_CATEGORY = 'lanePauses';
export const LANE_PAUSES = 'all';

/** `by`: subject id of who asked for it. */
export type LanePauseEvent =
  | DomainEvent<
      'LanePaused',
      { readonly at: string; readonly lane: string; readonly by: string; readonly reason: string }
    >
  | DomainEvent<'LaneResumed', { readonly at: string; readonly lane: string; readonly by: string }>;

export type LanePauseCommand =
  | {
      readonly type: 'PauseLane';
      readonly at: string;
      readonly lane: string;
      readonly by: string;
      readonly reason: string;
    }
  | { readonly type: 'ResumeLane'; readonly at: string; readonly lane: string; readonly by: string };

export type LanePauses = {
  readonly paused: {
    readonly [lane: string]: { readonly at: string; readonly by: string; readonly reason: string };
  };
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
