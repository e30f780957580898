import {
  status,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { refusalError, serviceError, type PeerContext } from './context.ts';
import type { Expected, ProposedEvent, WriteResult } from './log.ts';
import {
  anyPb,
  emptyPb,
  nameOf,
  protobuf,
  shared,
  statusPb,
  streamIdentifier,
  streams,
  unsignedPosition,
  uuidOf,
  uuidText,
  type StreamsPb,
} from './wire.ts';

type BatchCall = ServerDuplexStream<StreamsPb.BatchAppendReq, StreamsPb.BatchAppendResp>;
type Request = {
  readonly correlationId: string;
  readonly stream: string;
  readonly expected: Expected;
  readonly deadlineMs: number;
  readonly events: ProposedEvent[];
};

const proposed = (
  message: StreamsPb.BatchAppendReq.ProposedMessage | StreamsPb.AppendReq.ProposedMessage,
): ProposedEvent => ({
  id: uuidText(message.getId()),
  type: message.getMetadataMap().get('type') ?? '',
  contentType: message.getMetadataMap().get('content-type') ?? '',
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8(),
});

const expectedOfBatch = (options: StreamsPb.BatchAppendReq.Options): Expected => {
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasAny()) return 'any';
  if (options.hasStreamExists()) return 'stream_exists';
  return Number(options.getStreamPosition());
};

const expectedOfClassic = (options: StreamsPb.AppendReq.Options | undefined): Expected => {
  if (options?.hasNoStream()) return 'no_stream';
  if (options?.hasStreamExists()) return 'stream_exists';
  if (options?.hasRevision()) return Number(options.getRevision());
  return 'any';
};

/** In-band errors: `google.rpc.Status` whose details name one of the client's messages. */
const inBand = (name: string, bytes: Uint8Array, code: number, message: string) => {
  const details = new anyPb.Any();
  details.pack(bytes, name);
  return new statusPb.Status()
    .setCode(code as never)
    .setMessage(message)
    .setDetails(details);
};
const wrongVersion = (current: number | 'no_stream', expected: Expected) => {
  const details = new shared.WrongExpectedVersion();
  if (current === 'no_stream') details.setCurrentNoStream(new emptyPb.Empty());
  else details.setCurrentStreamRevision(String(current));
  if (typeof expected === 'number') details.setExpectedStreamPosition(String(expected));
  else if (expected === 'no_stream') details.setExpectedNoStream(new emptyPb.Empty());
  else details.setExpectedAny(new emptyPb.Empty());
  const name = 'event_store.client.WrongExpectedVersion';
  return inBand(name, details.serializeBinary(), status.ALREADY_EXISTS, 'Wrong expected version');
};
const timeout = () =>
  inBand(
    'event_store.client.Timeout',
    new shared.Timeout().serializeBinary(),
    status.DEADLINE_EXCEEDED,
    'Timeout',
  );
const refusals = {
  timeout,
  unknown: () =>
    inBand('event_store.client.Unknown', new shared.Unknown().serializeBinary(), status.UNKNOWN, 'Unknown'),
  'access-denied': () =>
    inBand(
      'event_store.client.AccessDenied',
      new shared.AccessDenied().serializeBinary(),
      status.PERMISSION_DENIED,
      'Access Denied',
    ),
  busy: () =>
    inBand(
      'google.protobuf.Empty',
      new emptyPb.Empty().serializeBinary(),
      status.UNAVAILABLE,
      'Server Is Busy',
    ),
};

const answerTo = (request: Request, result: WriteResult): StreamsPb.BatchAppendResp => {
  const answer = new streams.BatchAppendResp();
  switch (result.kind) {
    case 'success': {
      const success = new streams.BatchAppendResp.Success();
      if (result.revision === undefined) success.setNoStream(new emptyPb.Empty());
      else success.setCurrentRevision(String(result.revision));
      if (result.offset === undefined) success.setNoPosition(new emptyPb.Empty());
      else success.setPosition(unsignedPosition(result.offset));
      return answer.setSuccess(success);
    }
    case 'wrong-version':
      return answer.setError(wrongVersion(result.current, request.expected));
    case 'deleted': {
      const details = new shared.StreamDeleted().setStreamIdentifier(streamIdentifier(request.stream));
      const name = 'event_store.client.StreamDeleted';
      return answer.setError(
        inBand(name, details.serializeBinary(), status.FAILED_PRECONDITION, 'Stream deleted'),
      );
    }
    case 'too-large': {
      const details = new shared.MaximumAppendSizeExceeded().setMaxappendsize(result.limit);
      const name = 'event_store.client.MaximumAppendSizeExceeded';
      return answer.setError(inBand(name, details.serializeBinary(), status.INVALID_ARGUMENT, 'Too large'));
    }
    case 'event-too-large': {
      const name = 'event_store.client.MaximumAppendEventSizeExceeded';
      return answer.setError(inBand(name, eventSizeOf(result), status.INVALID_ARGUMENT, 'Too large'));
    }
  }
};

/** A message that the client's generated modules do not know: `{eventId = 1, size = 2, limit = 3}`. */
const eventSizeOf = ({ id, size, limit }: WriteResult & { kind: 'event-too-large' }): Uint8Array => {
  const writer = new protobuf.BinaryWriter();
  writer.writeString(1, id);
  writer.writeUint32(2, size);
  writer.writeUint32(3, limit);
  return writer.getResultBuffer();
};

/** Appends at once that a server still answers: 4,000 were answered, of more it answers hardly any. */
const MOST_AT_ONCE = 4_000;

export const createAppendService = (peer: PeerContext) => {
  const { log, faults, stats } = peer;
  /** Being worked on: the same append that comes meanwhile is dropped without an answer. */
  const busy = new Set<string>();

  const work = (request: Request): WriteResult => {
    const before = log.all.length;
    const result = log.append(request.stream, request.expected, request.events);
    if (log.all.length > before) stats.commits += 1;
    return result;
  };

  const handle = (call: BatchCall, request: Request): void => {
    stats.calls.append += 1;
    const send = (answer: StreamsPb.BatchAppendResp): void => {
      if (call.cancelled || call.writableEnded) return;
      answer.setCorrelationId(uuidOf(request.correlationId, peer.uuids));
      answer.setStreamIdentifier(streamIdentifier(request.stream));
      call.write(answer);
    };
    const answer = (): void => send(answerTo(request, work(request)));
    if (request.deadlineMs <= Date.now() + peer.clockAheadMs)
      return send(new streams.BatchAppendResp().setError(timeout()));
    const types = request.events.map(({ type }) => type);
    const key = `${request.stream} ${request.events.map(({ id }) => id).join(' ')}`;
    if (busy.has(key) || stats.queued >= MOST_AT_ONCE) {
      stats.dropped += 1;
      return;
    }
    const chosen = faults.next('append', request.stream, types);
    // A follower hands the append on to the leader, except for who asks for the leader.
    const indifferent = call.metadata.get('requires-leader')[0] !== 'true';
    const fault = chosen?.kind === 'refuse' && chosen.as === 'not-leader' && indifferent ? undefined : chosen;
    switch (fault?.kind) {
      case undefined:
        return answer();
      case 'never-answer':
      case 'stall':
        return;
      case 'late': {
        const result = work(request);
        setTimeout(() => send(answerTo(request, result)), fault.ms);
        return;
      }
      case 'late-work':
        stats.queued += 1;
        stats.mostQueued = Math.max(stats.mostQueued, stats.queued);
        busy.add(key);
        setTimeout(() => {
          stats.queued -= 1;
          busy.delete(key);
          answer();
        }, fault.ms);
        return;
      case 'lose-answer':
        work(request);
        if (fault.cut) peer.cut(call.getPeer());
        return;
      case 'refuse':
        if (fault.as === 'unavailable' || fault.as === 'not-leader' || fault.as === 'unauthenticated')
          call.emit('error', refusalError(fault, peer.address()));
        else send(new streams.BatchAppendResp().setError(refusals[fault.as]()));
        return;
      case 'drop':
        call.emit('error', serviceError(fault.code ?? status.UNAVAILABLE, 'dropped'));
        return;
      case 'end-ok':
        call.end();
        return;
      case 'cut':
        peer.cut(call.getPeer());
        return;
      case 'no-position': {
        const result = work(request);
        return send(answerTo(request, result.kind === 'success' ? { ...result, offset: undefined } : result));
      }
      case 'stray-answer': {
        const stray = answerTo(request, { kind: 'success', revision: 0, offset: 1 });
        stray.setCorrelationId(uuidOf(crypto.randomUUID(), peer.uuids));
        call.write(stray.setStreamIdentifier(streamIdentifier(request.stream)));
        return answer();
      }
    }
  };

  const batchAppend = (call: BatchCall): void => {
    const open = new Map<string, Request>();
    stats.openAppendCalls += 1;
    call.once('close', () => {
      stats.openAppendCalls -= 1;
    });
    stats.lastAppendHeaders = Object.fromEntries(
      Object.entries(call.metadata.getMap()).map(([name, value]) => [name, value.toString()]),
    );
    call.on('data', (message: StreamsPb.BatchAppendReq) => {
      stats.batchMessages += 1;
      const correlationId = uuidText(message.getCorrelationId());
      const options = message.getOptions();
      if (options !== undefined) {
        const deadline = options.getDeadline();
        open.set(correlationId, {
          correlationId,
          stream: nameOf(options.getStreamIdentifier()),
          expected: expectedOfBatch(options),
          deadlineMs: (deadline?.getSeconds() ?? 0) * 1000 + (deadline?.getNanos() ?? 0) / 1e6,
          events: [],
        });
      }
      const request = open.get(correlationId);
      if (request === undefined) return;
      request.events.push(...message.getProposedMessagesList().map(proposed));
      if (!message.getIsFinal()) return;
      open.delete(correlationId);
      handle(call, request);
    });
    call.on('end', () => call.end());
    call.on('error', () => {});
  };

  /** The classic append: one call each, used by clients that pass credentials per call. */
  const append = (
    call: ServerReadableStream<StreamsPb.AppendReq, StreamsPb.AppendResp>,
    answer: sendUnaryData<StreamsPb.AppendResp>,
  ): void => {
    let options: StreamsPb.AppendReq.Options | undefined;
    const events: ProposedEvent[] = [];
    call.on('data', (message: StreamsPb.AppendReq) => {
      options ??= message.getOptions();
      const event = message.getProposedMessage();
      if (event !== undefined) events.push(proposed(event));
    });
    call.on('error', () => {});
    call.on('end', () => {
      const expected = expectedOfClassic(options);
      const stream = nameOf(options?.getStreamIdentifier());
      const result = work({ correlationId: '', stream, expected, deadlineMs: Infinity, events });
      stats.calls.append += 1;
      answerClassic(result, stream, expected, answer);
    });
  };

  const remove =
    <Req extends StreamsPb.DeleteReq | StreamsPb.TombstoneReq, Resp>(
      apply: (stream: string) => number,
      response: (offset: string) => Resp,
    ) =>
    (call: ServerUnaryCall<Req, Resp>, answer: sendUnaryData<Resp>): void => {
      const stream = nameOf(call.request.getOptions()?.getStreamIdentifier());
      const fault = faults.next('delete', stream);
      if (fault?.kind === 'never-answer') return;
      if (log.read(stream) === 'not-found')
        return answer(
          serviceError(status.NOT_FOUND, 'no such stream', {
            exception: 'stream-not-found',
            'stream-name': stream,
          }),
        );
      answer(null, response(String(apply(stream))));
    };

  return {
    batchAppend,
    append,
    delete: remove<StreamsPb.DeleteReq, StreamsPb.DeleteResp>(log.softDelete, (offset) =>
      new streams.DeleteResp().setPosition(
        new streams.DeleteResp.Position().setCommitPosition(offset).setPreparePosition(offset),
      ),
    ),
    tombstone: remove<StreamsPb.TombstoneReq, StreamsPb.TombstoneResp>(log.tombstone, (offset) =>
      new streams.TombstoneResp().setPosition(
        new streams.TombstoneResp.Position().setCommitPosition(offset).setPreparePosition(offset),
      ),
    ),
  };
};

const answerClassic = (
  result: WriteResult,
  stream: string,
  expected: Expected,
  answer: sendUnaryData<StreamsPb.AppendResp>,
): void => {
  const response = new streams.AppendResp();
  switch (result.kind) {
    case 'success': {
      const success = new streams.AppendResp.Success().setCurrentRevision(String(result.revision ?? 0));
      if (result.offset === undefined) success.setNoPosition(new shared.Empty());
      else {
        const offset = String(result.offset);
        const position = new streams.AppendResp.Position();
        success.setPosition(position.setCommitPosition(offset).setPreparePosition(offset));
      }
      return answer(null, response.setSuccess(success));
    }
    case 'wrong-version': {
      // Fields 6-11: the client does not read the older 1-5.
      const wrong = new streams.AppendResp.WrongExpectedVersion();
      if (result.current === 'no_stream') wrong.setCurrentNoStream(new shared.Empty());
      else wrong.setCurrentRevision(String(result.current));
      if (typeof expected === 'number') wrong.setExpectedRevision(String(expected));
      else if (expected === 'no_stream') wrong.setExpectedNoStream(new shared.Empty());
      else wrong.setExpectedAny(new shared.Empty());
      return answer(null, response.setWrongExpectedVersion(wrong));
    }
    case 'deleted':
      return answer(
        serviceError(status.FAILED_PRECONDITION, 'deleted', {
          exception: 'stream-deleted',
          'stream-name': stream,
        }),
      );
    case 'too-large':
    case 'event-too-large':
      return answer(
        serviceError(status.INVALID_ARGUMENT, 'too large', {
          exception: 'maximum-append-size-exceeded',
          'maximum-append-size': String(result.limit),
        }),
      );
  }
};
