import { createRequire } from 'node:module';
import type * as Protobuf from 'google-protobuf';
import type * as TimestampPb from 'google-protobuf/google/protobuf/timestamp_pb.js';
import type * as EmptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import type * as SharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type * as StatusPb from '@eventstore/db-client/generated/status_pb.js';
import type * as StreamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type * as StreamsPb from '@eventstore/db-client/generated/streams_pb.js';
import {
  EventTooLarge,
  MAX_APPEND_BYTES,
  type ExpectedRevision,
  type Position,
} from '../../../app/log/event-store.ts';
import { checkSizes, sizeOf } from '../shared/sizes.ts';
import { knownPosition, type PreparedEvent } from './convert.ts';

/**
 * BatchAppend messages, built from the library's generated modules. Those fill their exports at run time, which
 * `import` cannot see; google-protobuf must be the very copy that the library resolves.
 */
const require = createRequire(import.meta.url);
const requireOfClient = createRequire(require.resolve('@eventstore/db-client'));
const { BatchAppendReq } = require('@eventstore/db-client/generated/streams_pb') as typeof StreamsPb;
const shared = require('@eventstore/db-client/generated/shared_pb') as typeof SharedPb;
const { Timestamp } = requireOfClient('google-protobuf/google/protobuf/timestamp_pb') as typeof TimestampPb;
const { Empty } = requireOfClient('google-protobuf/google/protobuf/empty_pb') as typeof EmptyPb;
const { BinaryReader } = requireOfClient('google-protobuf') as typeof Protobuf;
const streamsGrpc = require('@eventstore/db-client/generated/streams_grpc_pb') as typeof StreamsService;

export const { StreamsClient } = streamsGrpc;
export const batchAppendMethod = streamsGrpc.StreamsService.batchAppend;
export type BatchRequest = StreamsPb.BatchAppendReq;
export type BatchAnswer = StreamsPb.BatchAppendResp;

export type AppendRequest = {
  readonly stream: string;
  /** `any` only for stream metadata. */
  readonly expected: ExpectedRevision | 'any';
  readonly events: readonly PreparedEvent[];
};

/** What the server said, or that it said nothing that settles it. */
export type Answer =
  | { readonly kind: 'stored'; readonly revision: number; readonly position: Position | undefined }
  | { readonly kind: 'wrong-revision'; readonly actual: ExpectedRevision }
  /** `event`: id of the one event that is too large; undefined: the append is. */
  | { readonly kind: 'too-large'; readonly event?: string; readonly limit: number; readonly bytes?: number }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'denied' }
  /** Certainly not stored, and repeating does not help. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly error: Error };

/** What one event adds to a message beside what its size counts: its id, names of fields, lengths. In bytes, at most. */
const OVERHEAD = 160;

/** The server ends the call, and with it all appends on their way, for a message above 17 MiB. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/**
 * The server subtracts its own clock from this deadline and caps it with its WriteTimeoutMs anyway. A short one
 * would fail every append of a client whose clock is behind by as much, so it is generous.
 */
const SERVER_DEADLINE_MS = 30 * 60 * 1000;

/** What a whole append counts against the server's limit. */
export const bytesOf = (request: AppendRequest): number =>
  request.events.reduce((sum, event) => sum + sizeOf(event), 0);

/** Before anything is sent: throws EventTooLarge for what a server would refuse, or would end the call for. */
export const checkRequest = (request: AppendRequest): void => {
  const { stream, events } = request;
  checkSizes(stream, events);
  const message = bytesOf(request) + events.length * OVERHEAD;
  if (message > MAX_MESSAGE_BYTES)
    throw new EventTooLarge(`append of ${events.length} events to ${stream}`, message, MAX_MESSAGE_BYTES);
};

/** One append is one message: it is within the limits of both. */
export const batchMessage = (request: AppendRequest, correlationId: string, now: number): BatchRequest =>
  new BatchAppendReq()
    .setCorrelationId(new shared.UUID().setString(correlationId))
    .setOptions(optionsOf(request, now))
    .setProposedMessagesList(request.events.map(proposedOf))
    .setIsFinal(true);

const optionsOf = ({ stream, expected }: AppendRequest, now: number): StreamsPb.BatchAppendReq.Options => {
  const options = new BatchAppendReq.Options()
    .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(new TextEncoder().encode(stream)))
    .setDeadline(Timestamp.fromDate(new Date(now + SERVER_DEADLINE_MS)));
  if (expected === 'any') return options.setAny(new Empty());
  return expected === 'no_stream'
    ? options.setNoStream(new Empty())
    : options.setStreamPosition(String(expected));
};

const proposedOf = (event: PreparedEvent): StreamsPb.BatchAppendReq.ProposedMessage => {
  const message = new BatchAppendReq.ProposedMessage()
    .setId(new shared.UUID().setString(event.id))
    .setData(event.data)
    .setCustomMetadata(event.metadata);
  // Only application/json is visible to projections on the server.
  message.getMetadataMap().set('type', event.type).set('content-type', 'application/json');
  return message;
};

export const correlationIdOf = (answer: BatchAnswer): string => {
  const uuid = answer.getCorrelationId();
  const halves = uuid?.getStructured();
  if (halves === undefined) return uuid?.getString() ?? '';
  const hex = [halves.getMostSignificantBits(), halves.getLeastSignificantBits()]
    .map((half) => BigInt.asUintN(64, BigInt(half)).toString(16).padStart(16, '0'))
    .join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
};

export const readAnswer = (answer: BatchAnswer): Answer => {
  const success = answer.getSuccess();
  if (success !== undefined) {
    const position = success.getPosition();
    return {
      kind: 'stored',
      revision: Number(success.getCurrentRevision()),
      position:
        position &&
        knownPosition({
          commit: BigInt(position.getCommitPosition()),
          prepare: BigInt(position.getPreparePosition()),
        }),
    };
  }
  return readError(answer.getError());
};

/** In-band errors are told apart by the name of their details; everything unknown may or may not be stored. */
const readError = (status: StatusPb.Status | undefined): Answer => {
  const details = status?.getDetails();
  const name = details?.getTypeName() ?? '';
  switch (name) {
    case 'event_store.client.WrongExpectedVersion': {
      const wrong = details?.unpack((bytes) => shared.WrongExpectedVersion.deserializeBinary(bytes), name);
      if (!wrong) break;
      const revision = wrong.hasCurrentStreamRevision() && Number(wrong.getCurrentStreamRevision());
      return { kind: 'wrong-revision', actual: revision === false ? 'no_stream' : revision };
    }
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const limit = details?.unpack(
        (bytes) => shared.MaximumAppendSizeExceeded.deserializeBinary(bytes),
        name,
      );
      return { kind: 'too-large', limit: limit?.getMaxappendsize() ?? MAX_APPEND_BYTES };
    }
    case 'event_store.client.MaximumAppendEventSizeExceeded':
      return { kind: 'too-large', ...readEventSize(details?.getValue_asU8()) };
    case 'event_store.client.StreamDeleted':
      return { kind: 'deleted' };
    case 'event_store.client.AccessDenied':
      return { kind: 'denied' };
    case 'event_store.client.BadRequest':
      return { kind: 'refused', reason: 'bad request' };
  }
  const said = name === 'event_store.client.Timeout' ? 'timeout' : status?.getMessage() || 'an empty answer';
  return { kind: 'unknown', error: new Error(`the event store answered: ${said}`) };
};

/** `{eventId: string = 1, size: uint32 = 2, limit: uint32 = 3}`, of servers newer than the generated messages. */
const readEventSize = (bytes: Uint8Array = new Uint8Array()) => {
  const reader = new BinaryReader(bytes);
  let event = '';
  let size = 0;
  let limit = MAX_APPEND_BYTES;
  while (reader.nextField() && !reader.isEndGroup()) {
    if (reader.getFieldNumber() === 1) event = reader.readString();
    else if (reader.getFieldNumber() === 2) size = reader.readUint32();
    else if (reader.getFieldNumber() === 3) limit = reader.readUint32();
    else reader.skipField();
  }
  return { event, bytes: size, limit };
};
