import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type AppendOptions,
  type Appended,
  type EventStore,
  type EventToAppend,
  type ExpectedRevision,
  type RecordedEvent,
  type SubscriptionItem,
} from '../../../src/app/log/event-store.ts';
import { answer, latency, roundTrip, type Life } from './life.ts';

/** Chances (0 to 1) of each misfortune per call. */
export type StoreFaults = {
  /** Certainly not done. */
  readonly unavailable: number;
  /** Stored, and the answer is lost. */
  readonly lostAnswer: number;
  /** Not stored, and nobody says so. */
  readonly lostRequest: number;
  /** Stored only after the caller was told that the outcome is unknown. */
  readonly late: number;
  readonly slow: number;
  readonly brokenRead: number;
  /** A subscription yields its next item only after a while. */
  readonly held: number;
};

export const NO_STORE_FAULTS: StoreFaults = {
  unavailable: 0,
  lostAnswer: 0,
  lostRequest: 0,
  late: 0,
  slow: 0,
  brokenRead: 0,
  held: 0,
};

/** Milliseconds after which an append without an answer counts as unknown. */
const PATIENCE_MS = 1_000;
/** How much later than that an append may still be stored. */
const LATEST_MS = 1_500;

export type StorePortOptions = {
  /** The log that survives everybody. */
  readonly log: EventStore;
  readonly life: Life;
  readonly faults: () => StoreFaults;
  readonly stored: (stream: string, events: readonly EventToAppend[], appended: Appended) => void;
};

/** The event log as one incarnation reaches it: requests and answers are on their way for a while, and get lost. */
export const createStorePort = ({ log, life, faults, stored }: StorePortOptions): EventStore => {
  const { random, agenda } = life;
  const way = (): number => latency(random, faults().slow);

  const append = (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    options?: AppendOptions,
  ): Promise<Appended> =>
    options?.after === undefined
      ? send(stream, expected, events)
      : options.after.then(() => send(stream, expected, events));

  const send = (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
  ): Promise<Appended> =>
    new Promise((resolve, reject) => {
      const what = `append ${stream}@${expected} ${events.map(({ type }) => type).join(', ')}`;
      if (!life.survives('before append')) return;
      const unknown = (note: string): void => {
        life.note(`${what}: ${note}`);
        answer(life, PATIENCE_MS, () => reject(new OutcomeUnknown(stream)));
      };
      const arrive = (ms: number, heard: boolean): void =>
        void agenda.after(life.network, ms, () => {
          void store().then(
            (appended) => {
              const how = appended.duplicate ? 'stored before' : `stored at ${Number(appended.position)}`;
              life.note(`${what}: ${how}${heard ? '' : ', unheard'}`);
              if (life.survives('after append') && heard) answer(life, way(), () => resolve(appended));
            },
            (error: unknown) => {
              life.note(`${what}: ${error instanceof WrongExpectedRevision ? 'overtaken' : String(error)}`);
              if (heard) answer(life, way(), () => reject(error as Error));
            },
          );
        });
      const store = async (): Promise<Appended> => {
        const appended = await log.append(stream, expected, events);
        if (!appended.duplicate) stored(stream, events, appended);
        return appended;
      };

      const { unavailable, lostRequest, lostAnswer, late } = faults();
      const fate = random.next();
      if (fate < unavailable) {
        life.note(`${what}: unavailable`);
        return answer(life, way(), () => reject(notReachable()));
      }
      if (fate < unavailable + lostRequest) return unknown('request lost');
      if (fate < unavailable + lostRequest + lostAnswer) {
        arrive(way(), false);
        return unknown('answer lost');
      }
      if (fate < unavailable + lostRequest + lostAnswer + late) {
        arrive(PATIENCE_MS + random.int(1, LATEST_MS), false);
        return unknown('late');
      }
      arrive(way(), true);
    });

  const ask = async (signal?: AbortSignal): Promise<void> => {
    await roundTrip(life, way(), signal);
    if (random.chance(faults().unavailable)) throw notReachable();
  };

  const collect = async (events: AsyncIterable<RecordedEvent>): Promise<RecordedEvent[]> => {
    const all: RecordedEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  };

  async function* read(
    events: () => AsyncIterable<RecordedEvent>,
    signal?: AbortSignal,
  ): AsyncGenerator<RecordedEvent> {
    await ask(signal);
    const answered = await collect(events());
    const breaksAt = random.chance(faults().brokenRead) ? random.int(0, answered.length) : Infinity;
    for (const [i, event] of answered.entries()) {
      if (i === breaksAt) throw notReachable();
      yield event;
    }
    if (breaksAt === answered.length) throw notReachable();
  }

  async function* subscribe(
    options: Parameters<EventStore['subscribe']>[0],
  ): AsyncGenerator<SubscriptionItem> {
    const { signal } = options;
    const until = AbortSignal.any([signal, life.ended]);
    life.note(`subscribes after ${options.after === undefined ? 'the beginning' : Number(options.after)}`);
    for await (const item of log.subscribe({ ...options, signal: until })) {
      if (random.chance(faults().held)) await Promise.race([roundTrip(life, random.int(1, 800)), life.never]);
      if (!life.isAlive()) await life.never;
      if (signal.aborted) return;
      yield item;
    }
    if (!life.isAlive()) await life.never;
  }

  return {
    storeId: log.storeId,
    kind: log.kind,
    singleWriter: log.singleWriter,
    append,
    readStream: (stream, options) => read(() => log.readStream(stream, options), options?.signal),
    readAll: (options) => read(() => log.readAll(options), options.signal),
    subscribe,
    currentRevision: async (stream, signal) => {
      await ask(signal);
      return log.currentRevision(stream);
    },
    lastPosition: async (signal) => {
      await ask(signal);
      return log.lastPosition();
    },
    end: async (signal) => {
      await ask(signal);
      return log.end();
    },
    idAt: async (position, signal) => {
      await ask(signal);
      return log.idAt(position);
    },
    setMaxCount: async (stream, maxCount) => {
      await ask();
      return log.setMaxCount(stream, maxCount);
    },
    ping: (signal) => ask(signal),
    close: async () => undefined,
  };
};

const notReachable = (): StoreUnavailable =>
  new StoreUnavailable('not reachable', 'down', { retryAfterMs: 200 });
