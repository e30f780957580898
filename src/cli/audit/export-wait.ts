import { setTimeout as sleep } from 'node:timers/promises';
import type { Export } from '../../http/audit/answers.ts';
import { ApiError, Unreachable, type ApiClient } from '../api-client.ts';
import { AUDIT } from '../commands/audit-events.ts';
import type { CliIo } from '../connection.ts';
import { CliFailure, EXIT, exitStatusOf } from '../exit.ts';
import { counted } from '../output.ts';

export type ExportWait = {
  readonly target: string;
  readonly waitForSeconds: number;
  readonly io: CliIo;
  /** Milliseconds; default: those of this process. */
  readonly clock?: { readonly now: () => number; readonly pause: (ms: number) => Promise<unknown> };
};

/** Milliseconds between two looks, each of which is an event: longer each time. */
const LOOK_MS = 250;
const MOST_LOOK_MS = 5_000;
/** Between looks at a service that is away: none of them is an event. */
const AWAY_LOOK_MS = 1_000;
/** So long it may be away at a time: a restart takes seconds. */
const MOST_AWAY_MS = 30_000;

const CLOCK = { now: () => performance.now(), pause: (ms: number) => sleep(ms) };

/** The export once it is made, or is not going to be. Throws CliFailure, and ApiError where the service refuses. */
export const untilMade = async (
  api: Pick<ApiClient, 'get'>,
  asked: Export,
  { target, waitForSeconds, io, clock = CLOCK }: ExportWait,
): Promise<Export> => {
  const { id } = asked;
  const end = clock.now() + waitForSeconds * 1000;
  const fetching = `ledgerctl audit fetch ${id} -o ${target}`;
  let state = asked;
  let said = '';
  let pause = LOOK_MS;
  let awaySince: number | undefined;
  const look = async (): Promise<void> => {
    try {
      state = await api.get<Export>(`${AUDIT}/exports/${id}`);
      awaySince = undefined;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (awaySince === undefined) io.err(`export ${id}: the service does not answer; waiting for it\n`);
      awaySince ??= clock.now();
      if (clock.now() - awaySince < MOST_AWAY_MS) return;
      throw new CliFailure(
        exitStatusOf(error),
        `${error.message}\nthe service makes the export all the same, once it is back: ${fetching}`,
        { cause: error },
      );
    }
  };
  while (state.state === 'waiting' || state.state === 'running') {
    if (clock.now() > end)
      throw new CliFailure(EXIT.unavailable, `export ${id} is not made yet: ${fetching}`);
    const says = `${state.state}${state.events_done === undefined ? '' : `, ${counted(state.events_done, 'event')}`}`;
    if (says !== said) io.err(`export ${id}: ${says}\n`);
    said = says;
    await clock.pause(awaySince === undefined ? pause : AWAY_LOOK_MS);
    if (awaySince === undefined) pause = Math.min(MOST_LOOK_MS, pause * 1.5);
    await look();
  }
  return state;
};

const isAway = (error: unknown): error is ApiError | Unreachable =>
  error instanceof Unreachable || (error instanceof ApiError && exitStatusOf(error) === EXIT.unavailable);
