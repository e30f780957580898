import type { DescMethod, Message } from '@bufbuild/protobuf';
import type { Exchange } from '../http/exchange.ts';
import type { MessageSink } from '../http/osac/service-table.ts';

/** What a unary method answers: the encoded message, and headers beside it. */
export type Reply = { readonly message: Uint8Array; readonly headers: Readonly<Record<string, string>> };

/** Decodes the next message of the request; undefined: none comes. Throws ApiError. */
export type ReadRequest = () => Promise<Message | undefined>;

export type UnaryMethod = {
  readonly desc: DescMethod;
  /** The verb by which REST reaches it: it scopes idempotency keys, which are the same in every protocol. */
  readonly verb: string;
  /** Throws what is answered as an error. */
  readonly serve: (exchange: Exchange, read: ReadRequest) => Promise<Reply>;
};

/** A method whose answer is more than one message. */
export type StreamMethod = {
  readonly desc: DescMethod;
  readonly verb: string;
  /** Messages come for as long as the caller likes, who is known by something else than a token. */
  readonly talks?: true;
  /** Resolves once the answer has begun and goes on by itself. */
  readonly open: (exchange: Exchange, read: ReadRequest, sink: MessageSink) => Promise<void>;
};

export type GrpcMethod = UnaryMethod | StreamMethod;

/** `/osac.public.v1.Clusters/Get`. */
export const pathOf = ({ parent, name }: DescMethod): string => `/${parent.typeName}/${name}`;

export const NOTHING = new Uint8Array(0);
