import { randomUUID } from 'node:crypto';
import { status, type ServerWritableStream, type ServiceError } from '@grpc/grpc-js';
import { refusalError, serviceError, type PeerContext, type ServerVersion } from './context.ts';
import type { Behaviour } from './faults.ts';
import type { StoredEvent } from './log.ts';
import { nameOf, streamIdentifier, streams, uuidOf, type StreamsPb } from './wire.ts';

type ReadCall = ServerWritableStream<StreamsPb.ReadReq, StreamsPb.ReadResp>;
type Options = StreamsPb.ReadReq.Options;

/** `created` is in .NET ticks of 100 ns since the Unix epoch. */
const TICKS_PER_MS = 10_000n;

const eventMessage = (event: StoredEvent): StreamsPb.ReadResp => {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setStreamIdentifier(streamIdentifier(event.stream))
    .setStreamRevision(String(event.revision))
    .setCommitPosition(String(event.offset))
    .setPreparePosition(String(event.offset))
    .setData(event.data)
    .setCustomMetadata(event.metadata);
  // An event without id is what no server sends, and what a client must survive.
  if (event.id !== '') recorded.setId(uuidOf(event.id));
  recorded
    .getMetadataMap()
    .set('type', event.type)
    .set('content-type', event.contentType)
    .set('created', String(BigInt(event.created) * TICKS_PER_MS));
  const read = new streams.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(String(event.offset));
  return new streams.ReadResp().setEvent(read);
};
const checkpointMessage = (commit: number | bigint, prepare: number | bigint = commit): StreamsPb.ReadResp =>
  new streams.ReadResp().setCheckpoint(
    new streams.ReadResp.Checkpoint().setCommitPosition(String(commit)).setPreparePosition(String(prepare)),
  );
const caughtUpMessage = (): StreamsPb.ReadResp =>
  new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());

/** What servers from 24.2 to 24.10 call the position of nothing. */
const NOWHERE = 2n ** 64n - 1n;
/** Records that a live subscription may be behind. */
const LIVE_BUFFER = 32;

const matcher = (options: Options): ((event: StoredEvent) => boolean) => {
  const filter = options.getFilter();
  if (filter === undefined) return () => true;
  const expression = filter.getStreamIdentifier() ?? filter.getEventType();
  const subject = filter.hasEventType() ? (e: StoredEvent) => e.type : (e: StoredEvent) => e.stream;
  const prefixes = expression?.getPrefixList() ?? [];
  if (prefixes.length > 0) return (event) => prefixes.some((prefix) => subject(event).startsWith(prefix));
  const regex = new RegExp(expression?.getRegex() ?? '', 'u');
  return (event) => regex.test(subject(event));
};

export const createReadService = (peer: PeerContext) => {
  const { log, faults, stats } = peer;

  /** Writes with back-pressure. False when the call is over, or the fault says that it now is. */
  const createWriter = (call: ReadCall, fault: Behaviour | undefined) => {
    let sent = 0;
    const subscribing = call.request.getOptions()?.hasSubscription() === true;
    const strikes = (): boolean =>
      fault !== undefined && 'events' in fault ? sent >= (fault.events ?? 0) : fault !== undefined;
    const strike = async (): Promise<boolean> => {
      switch (fault?.kind) {
        case 'drop':
          fail(call, serviceError(fault.code ?? status.UNAVAILABLE, 'dropped'));
          return false;
        case 'end-ok':
          call.end();
          return false;
        case 'cut':
          peer.cut(call.getPeer());
          return false;
        case 'refuse':
          fail(call, refusalError(fault, peer.address()));
          return false;
        case 'never-answer':
        case 'stall':
          await overOr(call);
          return false;
        case 'late':
        case 'late-work':
          if (sent === 0) await new Promise((resolve) => setTimeout(resolve, fault.ms));
          return true;
        default:
          return true;
      }
    };
    return async (message: StreamsPb.ReadResp): Promise<boolean> => {
      if (isOver(call)) return false;
      if (faults.isFrozen()) {
        await overOr(call);
        return false;
      }
      if (strikes() && !(await strike())) return false;
      const isEvent = message.hasEvent();
      if (!call.write(message)) await overOr(call, (done) => onceDrained(call, done));
      if (isEvent) {
        sent += 1;
        stats.eventsSent += 1;
        if (subscribing) stats.eventsSubscribed += 1;
      }
      return !isOver(call);
    };
  };

  const countRead = async (call: ReadCall, options: Options): Promise<void> => {
    const stream = options.getStream();
    const name = nameOf(stream?.getStreamIdentifier());
    const { FORWARDS } = streams.ReadReq.Options.ReadDirection;
    const direction = options.getReadDirection() === FORWARDS ? 'forward' : 'backward';
    stats.readFrom.push(stream === undefined ? `$all ${direction}` : name);
    const fault = faultOf(call, 'read', name);
    const write = createWriter(call, fault);
    if (fault?.kind === 'never-answer') return overOr(call);
    const known = stream === undefined ? log.all : log.read(name);
    const upTo = fault?.kind === 'behind' ? endWithout(fault.records) : Infinity;
    const events = typeof known === 'string' ? known : known.filter(({ offset }) => offset <= upTo);
    if (events === 'deleted')
      return fail(
        call,
        serviceError(status.FAILED_PRECONDITION, 'deleted', {
          exception: 'stream-deleted',
          'stream-name': name,
        }),
      );
    if (events === 'not-found') {
      const missing = new streams.ReadResp.StreamNotFound().setStreamIdentifier(streamIdentifier(name));
      if (await write(new streams.ReadResp().setStreamNotFound(missing))) call.end();
      return;
    }
    if (!isPlace(options)) return fail(call, insideRecord());
    const wanted = selected(events, options);
    for (const event of wanted) if (!(await write(eventMessage(event)))) return;
    // A fault that strikes behind the last event, or an empty answer, still shows itself.
    if (fault !== undefined && wanted.length <= ('events' in fault ? (fault.events ?? 0) : 0)) {
      const probe = new streams.ReadResp().setLastStreamPosition('0');
      if (!(await write(probe))) return;
    }
    call.end();
  };

  const subscription = async (call: ReadCall, options: Options): Promise<void> => {
    const stream = options.getStream();
    const name = nameOf(stream?.getStreamIdentifier());
    stats.subscribedFrom.push(
      options.getAll()?.getPosition()?.getCommitPosition() ?? (options.getAll()?.hasEnd() ? 'end' : 'start'),
    );
    const fault = faultOf(call, 'subscribe', name);
    if (fault?.kind === 'never-answer') return overOr(call);
    const write = createWriter(call, fault);
    const id = new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(randomUUID());
    call.write(new streams.ReadResp().setConfirmation(id));
    if (!isPlace(options)) return fail(call, insideRecord());
    const matches = matcher(options);
    const inStream = (event: StoredEvent): boolean => stream === undefined || event.stream === name;
    const filter = options.getFilter();
    const window = filter?.hasMax() ? filter.getMax() : peer.defaultWindow;
    const interval = window * Math.max(1, filter?.getCheckpointintervalmultiplier() ?? 1);
    const fromStart = options.getAll()?.hasStart() === true;
    let at = startOf(options, log.all, peer.version);
    let page: StoredEvent[] = [];
    let lastMatch: StoredEvent | undefined;
    let [told, live, silent] = [0, false, false];
    const fromZero = at === 0;
    let ownEnd = fault?.kind === 'behind' ? endWithout(fault.records) : Infinity;
    at = Math.min(at, ownEnd);
    /** While it catches up a checkpoint is often no event's position. */
    const checkpoint = (event: StoredEvent): StreamsPb.ReadResp => {
      if (live) return checkpointMessage(event.offset);
      if (lastMatch !== undefined) return checkpointMessage(lastMatch.offset);
      return checkpointMessage(fromZero && told === interval ? 0 : (page[0]?.offset ?? 0), 0);
    };
    /** What is said before caught-up by a subscription from the start of a log in which nothing matched yet. */
    const nothingYet = (): StreamsPb.ReadResp | undefined => {
      if (filter === undefined || !fromStart || lastMatch !== undefined || told >= LIVE_BUFFER)
        return undefined;
      if (peer.version === '25.0') return checkpointMessage(0);
      silent = peer.version === '24.10';
      return silent ? checkpointMessage(NOWHERE) : undefined;
    };
    for (;;) {
      const index = indexBehind(log.all, at);
      const next = log.all[index];
      const event = next !== undefined && next.offset <= ownEnd ? next : undefined;
      const pending = log.all.length - index;
      // From 24.2 on it says that it has caught up again.
      if (pending > LIVE_BUFFER && peer.version !== '23.10') live = false;
      if (event === undefined) {
        if (!live) {
          const mark = nothingYet();
          if (mark !== undefined && !(await write(mark))) return;
          if (!(await write(caughtUpMessage()))) return;
          page = [];
        }
        live = true;
        ownEnd = Infinity;
        if (!(await appendedBehind(call, at))) return;
        continue;
      }
      at = event.offset;
      told += 1;
      page.push(event);
      if (inStream(event) && matches(event)) {
        lastMatch = event;
        if (!(await write(eventMessage(event)))) return;
        const waiting = log.all.length - indexBehind(log.all, at);
        if (live && peer.version === '23.10' && waiting >= pending + LIVE_BUFFER)
          return fail(call, tooSlow());
      }
      if (page.length < interval) continue;
      if (filter !== undefined && !silent && !(await write(checkpoint(event)))) return;
      page = [];
      lastMatch = undefined;
    }
  };

  /** Every node answers, except to who asks for the leader. */
  const faultOf = (call: ReadCall, on: 'read' | 'subscribe', name: string): Behaviour | undefined => {
    const fault = faults.next(on, name);
    const indifferent = call.metadata.get('requires-leader')[0] !== 'true';
    return fault?.kind === 'refuse' && fault.as === 'not-leader' && indifferent ? undefined : fault;
  };
  const isPlace = (options: Options): boolean => {
    const position = options.getAll()?.getPosition();
    return position === undefined || log.isPlace(Number(position.getCommitPosition()));
  };
  const endWithout = (records: number): number => log.all.at(-1 - records)?.offset ?? 0;

  /** Waits for a record behind this one; false when the call is over first. */
  const appendedBehind = async (call: ReadCall, at: number): Promise<boolean> => {
    if ((log.all.at(-1)?.offset ?? 0) <= at) await overOr(call, (done) => log.onAppend(done));
    return !isOver(call);
  };

  let openReads = 0;
  const read = (call: ReadCall): void => {
    const options = call.request.getOptions();
    if (options === undefined)
      return fail(call, serviceError(status.INVALID_ARGUMENT, 'options are missing'));
    const subscribing = options.hasSubscription();
    stats.calls[subscribing ? 'subscribe' : 'read'] += 1;
    if (subscribing) stats.openSubscriptions += 1;
    else openReads += 1;
    stats.mostReads = Math.max(stats.mostReads, openReads);
    call.on('error', () => {});
    call.once('cancelled', () => {
      stats.cancelled += 1;
    });
    const serve = subscribing ? subscription(call, options) : countRead(call, options);
    void serve.finally(() => {
      if (subscribing) stats.openSubscriptions -= 1;
      else openReads -= 1;
    });
  };
  return { read };
};

const fail = (call: ReadCall, error: ServiceError): void => void call.emit('error', error);

const isOver = (call: ReadCall): boolean => call.cancelled || call.writableEnded || call.destroyed;

const onceDrained = (call: ReadCall, done: () => void): (() => void) => {
  call.once('drain', done);
  return () => call.off('drain', done);
};

/** Resolves when the call is over, or when what `register` waits for comes first. Leaves no listener behind. */
const overOr = (call: ReadCall, register?: (done: () => void) => () => void): Promise<void> =>
  new Promise((resolve) => {
    let release = (): void => {};
    const done = (): void => {
      call.off('cancelled', done);
      call.off('close', done);
      release();
      resolve();
    };
    call.once('cancelled', done);
    call.once('close', done);
    if (register) release = register(done);
    if (isOver(call)) done();
  });

const insideRecord = (): ServiceError => serviceError(status.UNKNOWN, 'Exception was thrown by handler.');
const tooSlow = (): ServiceError =>
  serviceError(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );

/** Index of the first record behind this offset. */
const indexBehind = (all: readonly StoredEvent[], offset: number): number => {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle]?.offset ?? 0) > offset) high = middle;
    else low = middle + 1;
  }
  return low;
};

/**
 * Start, direction and count of a read. The start belongs to it, except that a read of the whole log goes backward from
 * before its position.
 */
const selected = (events: readonly StoredEvent[], options: Options): readonly StoredEvent[] => {
  const backward = options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS;
  const count = Number(options.getCount());
  const stream = options.getStream();
  const fits = stream === undefined ? ofLog(options, backward) : ofStream(stream, backward);
  const wanted = events.filter(fits);
  return (backward ? wanted.toReversed() : wanted).slice(0, count);
};

type Fits = (event: StoredEvent) => boolean;
const ofStream = (stream: StreamsPb.ReadReq.Options.StreamOptions, backward: boolean): Fits => {
  const from = stream.hasRevision() ? Number(stream.getRevision()) : stream.hasEnd() ? Infinity : 0;
  return ({ revision }) => (backward ? revision <= from : revision >= from);
};
const ofLog = (options: Options, backward: boolean): Fits => {
  const position = options.getAll()?.getPosition();
  if (position === undefined) {
    const some = backward === (options.getAll()?.hasEnd() ?? false);
    return () => some;
  }
  const [commit, prepare] = [Number(position.getCommitPosition()), Number(position.getPreparePosition())];
  return ({ offset }) => {
    const order = offset - commit || offset - prepare;
    return backward ? order < 0 : order >= 0;
  };
};

/** Offset behind which a subscription goes on. */
const startOf = (options: Options, all: readonly StoredEvent[], version: ServerVersion): number => {
  const stream = options.getStream();
  const position = options.getAll()?.getPosition();
  const end = all.at(-1)?.offset ?? 0;
  if (stream?.hasEnd() || options.getAll()?.hasEnd()) return end;
  if (stream?.hasRevision()) {
    const name = nameOf(stream.getStreamIdentifier());
    const behind = (event: StoredEvent): boolean =>
      event.stream === name && event.revision > Number(stream.getRevision());
    const next = all.find(behind);
    return next === undefined ? end : next.offset - 1;
  }
  if (position === undefined) return 0;
  const [commit, prepare] = [Number(position.getCommitPosition()), Number(position.getPreparePosition())];
  if (commit === 0) return 0;
  // 23.10 reads one event at the position and goes on behind it, whatever it was.
  if (version === '23.10') return all[indexBehind(all, commit - 1)]?.offset ?? end;
  return Math.min(prepare < commit ? commit - 1 : commit, end);
};
