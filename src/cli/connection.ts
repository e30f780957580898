import type { JsonObject } from '../domain/json.ts';
import type { StoreReport } from '../app/audit/bundle/verify-store.ts';
import type { Trust } from '../app/audit/merkle/key-chain.ts';
import type { Deployment } from '../app/deployment/deployment.ts';
import type { LogSurvey } from '../app/deployment/restore.ts';
import type { EventFault, StoredEvent } from '../app/log/stored-event.ts';
import type { ApiClient } from './api-client.ts';
import type { OpenSocket } from './socket.ts';

/** What the command line cannot do over HTTP; the composition root brings it. */
export type CliActions = {
  serve(): Promise<void>;
  /** Runs the demo; returns the exit status. */
  demo(request: DemoRequest): Promise<number>;
  mintToken(request: TokenRequest): Promise<string>;
  /** Full check of a stopped store, or of one file. Prints nothing; returns what it found wrong. */
  checkStore(which: StoreToCheck): Promise<{ readonly events: number; readonly findings: readonly string[] }>;
  /** Compares a stopped store, or one file, with all heads that were signed over it. */
  verifyStore(which: StoreToCheck, trust?: Trust): Promise<StoreReport>;
  /** One event as it is stored, and what is wrong with it. Changes nothing. */
  showEvent(which: StoreToLookInto, stream: string, revision: number): Promise<EventAsStored>;
  /** Puts a log under a new deployment id; undefined: the dialogue said no, and nothing was changed. */
  restoreStore(request: RestoreRequest, dialogue: RestoreDialogue): Promise<Deployment | undefined>;
  readonly defaultDataDir: string;
  /** `LEDGER_HTTP_ADDRESS` as it is set; absent: it is not. */
  readonly httpAddress?: string;
  /** Whether the settings of the service name a certificate. */
  readonly tls?: boolean;
  /** `LEDGER_SECRETS_DIR` as it is set; absent: it is not. */
  readonly secretsDir?: string;
  readonly eventStore: string;
  readonly version: string;
};

export type DemoRequest = {
  /** Document of a real hub that the demo runs on; absent: simulated hubs. */
  readonly hub?: JsonObject;
  /** `host:port` of Kafka brokers without passwords, to which the demo publishes; absent: to none. */
  readonly kafka?: readonly string[];
  /** Removes the topics that it made there when it ends. */
  readonly removeTopics?: boolean;
  /** Folder of the catalogue; absent: the one that is shipped. */
  readonly catalog?: string;
  readonly template: string;
  readonly pullSecret?: string;
  /** Milliseconds that one wait may take; absent: as long as the hub needs. */
  readonly patienceMs?: number;
};

export type StoreToCheck = { readonly dataDir: string } | { readonly file: string };

/** `store`: connection string of an EventStoreDB. */
export type StoreToLookInto = StoreToCheck | { readonly store: string };

/** A backup that goes into a new data directory, or the connection string of an EventStoreDB that was restored already. */
export type RestoreRequest =
  | { readonly file: string; readonly dataDir: string; readonly secretsDir?: string }
  | { readonly store: string; readonly secretsDir?: string };

export type RestoreDialogue = {
  /** Shown what the log holds before anything is changed. */
  readonly confirm: (survey: LogSurvey) => Promise<boolean>;
  readonly tell: (line: string) => void;
  readonly pause: (ms: number) => Promise<void>;
};

export type EventAsStored =
  | {
      readonly outcome: 'found';
      readonly event: StoredEvent;
      readonly faults: readonly EventFault[];
      /** Number of the leaf that the audit tree beside the log has of this very event. */
      readonly leaf?: number;
    }
  /** Revisions of the stream that are there, where that is known. */
  | { readonly outcome: 'absent'; readonly revisions?: { readonly first: number; readonly last: number } };

export type TokenRequest = {
  readonly tenant?: string;
  readonly user: string;
  readonly admin: boolean;
  readonly roles: readonly string[];
  /** Groups of the user, for example `/p1/system:managers`. */
  readonly groups?: readonly string[];
  readonly email?: string;
  readonly ttlSeconds: number;
};

export type CliIo = {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Everything that comes in; default: nothing does. */
  readonly stdin?: () => Promise<string>;
  /** The first line that comes in; '' at the end of the input. Default: nothing does. */
  readonly line?: () => Promise<string>;
  /** Colours are wanted: a terminal, and NO_COLOR is not set. Default: no. */
  readonly colour?: boolean;
  /** Ends what goes on until it is interrupted; default: the process itself is ended. */
  readonly interrupted?: AbortSignal;
  /** Default: there are none. */
  readonly rawStreams?: () => RawStreams;
};

/** Bytes as they come and go, for what is no text. */
export type RawStreams = {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Hands over every key as it is pressed, or ends that; absent: no terminal. */
  readonly setRaw?: (raw: boolean) => void;
};

export type Connection = {
  /** `attempts`: tries of one call, the first included; default: some, while the service does not answer. */
  readonly client: (options?: { readonly attempts?: number }) => Promise<ApiClient>;
  /** Whether the token is one of a provider admin, as far as it says so itself. */
  /** A WebSocket of the service at this path. */
  readonly socket: (path: string, bearer: string) => Promise<OpenSocket>;
  readonly isAdmin: () => boolean;
  readonly io: CliIo;
};
