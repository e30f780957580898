import { fromBinary, toJson } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, type StatusObject } from '@grpc/grpc-js';
import { WATCH_RESPONSES, WRITE } from '../../../src/http/osac/messages.ts';
import { eventually } from '../eventually.ts';
import { detailsOf, encodeRequest } from './caller.ts';
import type { Json } from '../http/caller.ts';

/** How a call ended, with the reason and facts of its `ErrorInfo` where it has one. */
export type CallEnd = {
  readonly code: number;
  readonly message: string;
  readonly reason: string;
  readonly facts: Readonly<Record<string, string>>;
};

/** A watch over gRPC as a client sees it. */
export type GrpcWatching = {
  /** Waits, bounded, for the headers of the answer, or for its end. */
  readonly headers: () => Promise<Metadata | undefined>;
  readonly events: () => readonly Json[];
  /** Waits, bounded, until that many events have come, or the far side ended the call. */
  readonly count: (events: number, ms?: number) => Promise<readonly Json[]>;
  /** Waits, bounded, until the far side ended the call. */
  readonly ended: () => Promise<CallEnd>;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
};

export type GrpcWatchOptions = {
  readonly surface?: 'public' | 'private';
  readonly filter?: string;
  /** Metadata beside the token. */
  readonly metadata?: Readonly<Record<string, string>>;
};

/** A connection of its own, which many watches share: without its own pool all clients of a process share one. */
export const grpcClient = (address: string): Client =>
  new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });

export const watchGrpc = (
  client: Client,
  token: string | undefined,
  { surface = 'public', filter, metadata: more = {} }: GrpcWatchOptions = {},
): GrpcWatching => {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  for (const [name, value] of Object.entries(more)) metadata.set(name, value);
  const path = `/osac.${surface}.v1.Events/Watch`;
  const response = WATCH_RESPONSES[surface];
  const call = client.makeServerStreamRequest(
    path,
    (request: object) => encodeRequest(path, request),
    (bytes) => toJson(response, fromBinary(response, bytes), WRITE) as unknown as Json,
    filter === undefined ? {} : { filter },
    metadata,
  );
  const events: Json[] = [];
  let headers: Metadata | undefined;
  let end: StatusObject | undefined;
  call.on('metadata', (received: Metadata) => (headers = received));
  call.on('data', (message: Json) => events.push(message['event'] as Json));
  call.on('status', (status: StatusObject) => (end = status));
  call.on('error', () => undefined);

  return {
    headers: async () => {
      await eventually('headers', () => headers !== undefined || end !== undefined);
      return headers;
    },
    events: () => events,
    count: async (wanted, ms) => {
      await eventually(
        () => `${wanted} events, there are ${events.length}`,
        () => events.length >= wanted || end !== undefined,
        ms,
      );
      return events;
    },
    ended: async () => {
      await eventually('the end of the call', () => end !== undefined);
      return endOf(end as StatusObject);
    },
    pause: () => void call.pause(),
    resume: () => void call.resume(),
    close: () => call.cancel(),
  };
};

const endOf = ({ code, details: message, metadata }: StatusObject): CallEnd => {
  const details = detailsOf(metadata) as readonly { readonly reason?: string; readonly metadata?: object }[];
  const { reason = '', metadata: facts = {} } = details.find((detail) => 'reason' in detail) ?? {};
  return { code, message, reason, facts: { ...facts } };
};
