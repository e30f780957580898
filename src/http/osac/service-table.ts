import type { DescMessage } from '@bufbuild/protobuf';
import type { Method } from '../../domain/resource.ts';
import type { ApiError } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import type { ExtraMethod, Governed } from './authorization.ts';
import type {
  Answer,
  CreateMessage,
  ExtraMessage,
  Handler,
  IdMessage,
  ListMessage,
  UpdateMessage,
} from './call.ts';
import type { Surface } from './messages.ts';

/** What the codecs know of a kind: its handlers, and the words by which each protocol reaches them. */
export type KindService = {
  readonly kind: string;
  readonly collection: string;
  readonly governed: Governed;
  readonly methods: readonly Method[];
  readonly schema: DescMessage;
  /** Replies of writes are `{"object":{…}}` in REST, as OSAC's are for some kinds. */
  readonly wrapsReplies: boolean;
  readonly list: Handler<ListMessage>;
  readonly get: Handler<IdMessage>;
  readonly create: Handler<CreateMessage>;
  readonly update: Handler<UpdateMessage>;
  readonly remove: Handler<IdMessage>;
  /** Schema rules that hold before anybody asks who calls (OSAC). Throws ApiError. */
  readonly checkCreate: (object: CreateMessage['object']) => void;
  /** `GET …/{id}/{name}`, and the method that gRPC calls it by. */
  readonly extras: ReadonlyMap<
    string,
    { readonly method: ExtraMethod; readonly handler: Handler<ExtraMessage> }
  >;
};

/** A method without a kind: `GET P/capabilities`. */
export type SingleService = {
  readonly method: string;
  readonly anonymous: boolean;
  readonly handler: (call: { readonly surface: Surface }) => Answer;
};

/** A kind of which nothing is kept: `POST P/console_sessions` answers the object completed. */
export type ActionService = Pick<KindService, 'kind' | 'collection' | 'governed' | 'schema'> & {
  readonly summary: string;
  /** `Create`. */
  readonly handler: Handler<CreateMessage>;
};

export type SurfaceTable = {
  readonly surface: Surface;
  /** `/api/fulfillment/v1`. */
  readonly prefix: string;
  readonly kinds: ReadonlyMap<string, KindService>;
  readonly singles: ReadonlyMap<string, SingleService>;
  /** By collection. Absent: none. */
  readonly actions?: ReadonlyMap<string, ActionService>;
  /** Somebody says that something about this object has changed outside. */
  readonly signalled: (kind: string, id: string) => void;
};

/** Where the messages of an answer go that does not end by itself, whichever protocol frames them. */
export type MessageSink = {
  /** Sends the head of the answer at once; what was set as its headers goes with it. */
  readonly head: () => void;
  /** Bytes that were given to it and have not left this process. */
  readonly backlog: () => number;
  /** Takes messages. False: `onDrain` says when all have left. */
  readonly write: (messages: readonly Uint8Array[]) => boolean;
  readonly onDrain: (listener: () => void) => void;
  /** Ends the answer, with the reason where there is one. */
  readonly end: (error?: ApiError) => void;
};

/** A method whose answer goes on until one side ends it. */
export type StreamService = {
  readonly surface: Surface;
  /** `Events.Watch`. */
  readonly method: string;
  /** Resolves once the answer has begun; throws what is to be answered instead. */
  readonly open: (exchange: Exchange, request: StreamRequest, sink: MessageSink) => Promise<void>;
};

export type StreamRequest = { readonly filter?: string };
