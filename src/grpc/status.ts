import { Metadata } from '@grpc/grpc-js';
import { create, createRegistry, fromJson, toBinary, type JsonObject } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { ERRORS, errorDetails, errorHeaders, type ApiError } from '../http/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { file_google_rpc_error_details } from '../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../gen/google/rpc/status_pb.ts';

/** How a call ends, as gRPC says it. */
export type GrpcStatus = {
  readonly code: number;
  readonly message: string;
  /** What a program can learn from it. */
  readonly parts: readonly Any[];
  /** What is told beside it. */
  readonly headers: Readonly<Record<string, string>>;
};

const UNKNOWN = 2;
export const DEADLINE_EXCEEDED = 4;

const registry = createRegistry(file_google_rpc_error_details);
/** Clients take 8 KiB of headers by default. */
const MAX_DETAILS_BYTES = 3 * 1024;
const MAX_MESSAGE_CHARACTERS = 1_024;

export const DEADLINE_PASSED: GrpcStatus = {
  code: DEADLINE_EXCEEDED,
  message: 'the deadline of the call has passed',
  parts: [],
  headers: {},
};

export const FINE: GrpcStatus = { code: 0, message: '', parts: [], headers: {} };

/** The catalogue's code, but for an outcome that nobody knows: `DEADLINE_EXCEEDED` is what a client says by itself. */
const codeOf = ({ error }: ApiError): number => (error === 'OUTCOME_UNKNOWN' ? UNKNOWN : ERRORS[error].code);

export const statusOf = (error: ApiError, { asked }: Pick<Exchange, 'asked'>): GrpcStatus => {
  const details = [...errorDetails(error), ...retryInfo(error), ...resourceInfo(error, asked)];
  return {
    code: codeOf(error),
    message: error.message.slice(0, MAX_MESSAGE_CHARACTERS),
    parts: details.length === 0 ? [] : fromJson(StatusSchema, { details }, { registry }).details,
    headers: errorHeaders(error),
  };
};

const retryInfo = ({ options: { retryAfterSeconds } }: ApiError): JsonObject[] =>
  retryAfterSeconds === undefined
    ? []
    : [
        {
          '@type': 'type.googleapis.com/google.rpc.RetryInfo',
          retry_delay: `${retryAfterSeconds.toFixed(3)}s`,
        },
      ];

const resourceInfo = ({ error }: ApiError, asked: Exchange['asked']): JsonObject[] =>
  (error === 'NOT_FOUND' || error === 'ALREADY_EXISTS') && asked?.kind !== undefined && asked.id !== undefined
    ? [
        {
          '@type': 'type.googleapis.com/google.rpc.ResourceInfo',
          resource_type: asked.kind,
          resource_name: asked.id,
        },
      ]
    : [];

/** Headers or trailers, and the details of a status beside them. */
export const metadataOf = (fields: Readonly<Record<string, string>>, status: GrpcStatus = FINE): Metadata => {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
  const details = detailsOf(status);
  if (details !== undefined) metadata.set('grpc-status-details-bin', details);
  return metadata;
};

/** `google.rpc.Status`, unless it is more than a client takes. */
const detailsOf = ({ code, message, parts }: GrpcStatus): Buffer | undefined => {
  if (parts.length === 0) return undefined;
  const status = create(StatusSchema, { code, message: message.toWellFormed(), details: [...parts] });
  const bytes = toBinary(StatusSchema, status);
  return bytes.byteLength > MAX_DETAILS_BYTES ? undefined : Buffer.from(bytes);
};
