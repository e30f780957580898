import { randomUUID } from 'node:crypto';
import { status, type ServerWritableStream, type ServiceError } from '@grpc/grpc-js';
import { refusalError, serviceError, type PeerContext } from './context.ts';
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
const checkpointMessage = ({ offset }: StoredEvent): StreamsPb.ReadResp =>
  new streams.ReadResp().setCheckpoint(
    new streams.ReadResp.Checkpoint().setCommitPosition(String(offset)).setPreparePosition(String(offset)),
  );

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
      }
      return !isOver(call);
    };
  };

  const countRead = async (call: ReadCall, options: Options): Promise<void> => {
    const stream = options.getStream();
    const name = nameOf(stream?.getStreamIdentifier());
    const chosen = faults.next('read', name);
    // Every node answers reads, except to who asks for the leader.
    const indifferent = call.metadata.get('requires-leader')[0] !== 'true';
    const fault = chosen?.kind === 'refuse' && chosen.as === 'not-leader' && indifferent ? undefined : chosen;
    const write = createWriter(call, fault);
    if (fault?.kind === 'never-answer') return overOr(call);
    const events = stream === undefined ? log.all : log.read(name);
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
    const fault = faults.next('subscribe', name);
    if (fault?.kind === 'never-answer') return overOr(call);
    const write = createWriter(call, fault);
    const id = new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(randomUUID());
    call.write(new streams.ReadResp().setConfirmation(id));
    const matches = matcher(options);
    const inStream = (event: StoredEvent): boolean => stream === undefined || event.stream === name;
    const filter = options.getFilter();
    const window = filter?.hasMax() ? filter.getMax() : peer.defaultWindow;
    const interval = window * Math.max(1, filter?.getCheckpointintervalmultiplier() ?? 1);
    let index = startOf(options, log.all);
    let considered = 0;
    let live = false;
    for (;;) {
      const event = log.all[index];
      if (event === undefined) {
        if (!live && !(await write(new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()))))
          return;
        live = true;
        if (!(await appended(call, index))) return;
        continue;
      }
      index += 1;
      considered += 1;
      if (inStream(event) && matches(event) && !(await write(eventMessage(event)))) return;
      if (filter !== undefined && considered % interval === 0 && !(await write(checkpointMessage(event))))
        return;
    }
  };

  /** Waits until the log is longer than `length`; false when the call is over first. */
  const appended = async (call: ReadCall, length: number): Promise<boolean> => {
    if (log.all.length <= length) await overOr(call, (done) => log.onAppend(done));
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

/** Inclusive start, direction and count of a read. */
const selected = (events: readonly StoredEvent[], options: Options): readonly StoredEvent[] => {
  const backward = options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS;
  const stream = options.getStream();
  const position = options.getAll()?.getPosition();
  const key = (event: StoredEvent): number => (stream === undefined ? event.offset : event.revision);
  const from = stream?.hasRevision()
    ? Number(stream.getRevision())
    : position !== undefined
      ? Number(position.getCommitPosition())
      : (stream?.hasEnd() ?? options.getAll()?.hasEnd())
        ? Infinity
        : 0;
  const count = Number(options.getCount());
  if (backward)
    return from === 0 && !events.some((e) => key(e) === 0)
      ? []
      : events
          .filter((event) => key(event) <= from)
          .toReversed()
          .slice(0, count);
  return events.filter((event) => key(event) >= from).slice(0, count);
};

/** Index behind the exclusive start of a subscription. */
const startOf = (options: Options, all: readonly StoredEvent[]): number => {
  const stream = options.getStream();
  const position = options.getAll()?.getPosition();
  if (stream?.hasEnd() || options.getAll()?.hasEnd()) return all.length;
  if (position === undefined && !stream?.hasRevision()) return 0;
  const name = nameOf(stream?.getStreamIdentifier());
  const isAfter = (event: StoredEvent): boolean =>
    position !== undefined
      ? event.offset > Number(position.getCommitPosition())
      : event.stream === name && event.revision > Number(stream?.getRevision());
  const index = all.findIndex(isAfter);
  return index < 0 ? all.length : index;
};
