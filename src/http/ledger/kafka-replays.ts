import { KafkaFault, ReplayTargetInUse } from '../../app/publisher/ports.ts';
import type { Publisher } from '../../app/publisher/publisher.ts';
import type { ReplayRequest, ReplayStep } from '../../app/publisher/replay.ts';
import { whatIsWrong } from '../../app/audit/changed-events.ts';
import { LogDamaged, type EventStore, type Position } from '../../app/log/event-store.ts';
import { ApiError, invalid, unfit } from '../errors.ts';
import { BEFORE_EVERYTHING, type Moments } from '../past-moments.ts';
import { meant } from '../suggestions.ts';
import type { Positions } from '../positions.ts';
import { isLikeTime, readRfc3339 } from '../times.ts';
import { readBody } from './forms.ts';
import { refusalOf } from './kafka-faults.ts';
import { REPLAY_BODY, type KafkaReplayLine } from './kafka-operations.ts';
import type { LedgerCall } from './serve.ts';

export type ReplayServices = {
  readonly positions: Positions;
  readonly store: Pick<EventStore, 'lastPosition'>;
  /** Is told of an event (`<stream>@<revision>`) that is not the one that was recorded. */
  readonly suspect?: (event: string) => void;
  /** Tells which position a time means. */
  readonly past: { readonly moments: Pick<Moments, 'resolve'> };
};

/** Replays of one instance at one time: each reads the log and maps on the thread that answers. */
const REPLAYS = 1;

const replayRunning = (): ApiError =>
  unfit('another replay runs on this instance; try again when it is over', 'REPLAY_RUNNING');

export type Replays = {
  /** `{"progress":…}` lines, then `{"report":…}`, or `{"error":…,"code":…}` when it failed. Throws ApiError. */
  lines(publisher: Pick<Publisher, 'replay' | 'status'>, call: LedgerCall): Promise<AsyncIterable<object>>;
};

export const createReplays = (services: ReplayServices): Replays => {
  let running = 0;
  const assertFree = (): void => {
    if (running >= REPLAYS) throw replayRunning();
  };

  async function* linesOf(steps: AsyncIterable<ReplayStep>): AsyncGenerator<KafkaReplayLine> {
    try {
      // Two may have been asked for at one moment.
      assertFree();
      running += 1;
      try {
        for await (const step of steps) yield lineOf(step, services.positions);
      } finally {
        running -= 1;
      }
    } catch (error) {
      if (error instanceof LogDamaged && error.at !== undefined) services.suspect?.(error.at.event);
      const known = faultOf(error);
      if (!(known instanceof ApiError)) throw known;
      yield { error: known.message, code: known.reason };
    }
  }

  return {
    lines: async (publisher, call) => {
      const request = await requestOf(call, services);
      assertFree();
      const signal = call.ending === undefined ? call.signal : AbortSignal.any([call.signal, call.ending]);
      const steps = publisher.replay(request, signal);
      if (steps === undefined) throw new ApiError('NOT_FOUND', notReplayed(request.topic, publisher));
      return linesOf(steps);
    },
  };
};

const notReplayed = (topic: string, publisher: Pick<Publisher, 'status'>): string => {
  const names = publisher.status().topics.map((each) => each.topic);
  const what = `topic '${topic.slice(0, LETTERS)}' is not made from the log`;
  return `${what}${meant(topic, names) || '; ledgerctl kafka status lists them'}`;
};

const LETTERS = 100;

const lineOf = (step: ReplayStep, positions: Positions): KafkaReplayLine => {
  if ('progress' in step) return { progress: withPosition(step.progress, positions) };
  const { skipped, skippedEvents, target, ...progress } = step.report;
  return {
    report: {
      topic: target,
      ...withPosition(progress, positions),
      skipped_events: skippedEvents,
      skipped,
    },
  };
};

const faultOf = (error: unknown): unknown => {
  if (error instanceof ReplayTargetInUse)
    return new ApiError('FAILED_PRECONDITION', error.message, { reason: 'REPLAY_TARGET_IN_USE' });
  if (error instanceof LogDamaged)
    return new ApiError(
      'DATA_LOSS',
      `${whatIsWrong(error)}: the replay ends in front of it, and operators are alarmed; follow ops/runbooks/LedgerAuditTreeMismatch.md`,
      { reason: error.at === undefined ? 'LOG_DAMAGED' : 'EVENT_CHANGED', cause: error },
    );
  return error instanceof KafkaFault ? refusalOf(error) : error;
};

const withPosition = (
  { position, events, records }: { position: string | undefined; events: number; records: number },
  positions: Positions,
): { events: number; records: number; position?: string } => ({
  events,
  records,
  ...(position === undefined ? {} : { position: positions.format(position) }),
});

const requestOf = async ({ path, body }: LedgerCall, services: ReplayServices): Promise<ReplayRequest> => {
  const { name, from, to } = readBody(body, REPLAY_BODY);
  const after = await placeOf(from, 'from', services);
  const until = await placeOf(to, 'to', services);
  if (after !== undefined && after !== BEFORE_EVERYTHING && until !== undefined && until <= after)
    throw invalid("field 'from' lies at or behind 'to': there is nothing between them", 'from');
  if (until === BEFORE_EVERYTHING) throw invalid("field 'to' lies before everything in the log", 'to');
  return {
    topic: path['topic'] ?? '',
    name,
    ...(after === undefined || after === BEFORE_EVERYTHING ? {} : { after }),
    ...(until === undefined ? {} : { until }),
  };
};

/** Where a part of the log begins or ends; undefined: nothing was said. Of times, as everywhere, [from, to). */
const placeOf = async (
  text: string | undefined,
  field: 'from' | 'to',
  { positions, store, past }: ReplayServices,
): Promise<Position | undefined> => {
  if (text === undefined || text === '') return undefined;
  if (isLikeTime(text)) {
    const ms = readRfc3339(text);
    if (ms === undefined) throw noPlace(field);
    return past.moments.resolve(new Date(ms - 1).toISOString(), field);
  }
  if (/^\d{1,40}$/.test(text)) {
    const last = await store.lastPosition();
    return positions.parse(positions.format(text.padStart(last?.length ?? text.length, '0')), field);
  }
  if (!/\.\d+$/.test(text)) throw noPlace(field);
  return positions.parse(text, field);
};

const noPlace = (field: string): ApiError =>
  invalid(
    `field '${field}' must be a position as records have it (osacposition), one as X-Ledger-Position shows it (<store id>.<position>), or a time such as 2026-01-31T12:00:00Z`,
    field,
  );
