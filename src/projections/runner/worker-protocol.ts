import type { LogDamaged, Position } from '../../app/log/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { CheckReport, CopyProgress } from './copy.ts';
import type { Digest } from './digest.ts';

/** What a task is started with: modules by URL and plain values, since nothing else crosses a thread. */
export type WorkerConfig = {
  readonly view: string;
  readonly dir: string;
  readonly storeId: string;
  readonly readerModule: string;
  readonly readerConfig: JsonObject;
  readonly viewsModule: string;
  readonly viewsConfig: JsonObject;
};

export type WorkerTask =
  | { readonly kind: 'follow'; readonly copy: string }
  | {
      readonly kind: 'build';
      readonly copy: string;
      readonly live: string | undefined;
      /** See `CopyContext.most`. */
      readonly most?: number;
    }
  | { readonly kind: 'digest'; readonly copy: string };

/** `task`: which one of the thread's tasks is meant, by the number that its start gave it. */
export type ToWorker =
  | {
      readonly kind: 'start';
      readonly task: number;
      readonly config: WorkerConfig;
      readonly work: WorkerTask;
    }
  | { readonly kind: 'stop'; readonly task: number }
  | { readonly kind: 'retry'; readonly task: number; readonly call: number; readonly stream: string }
  | { readonly kind: 'hurry'; readonly task: number; readonly position: Position }
  /** No task is left and none will come: the thread exits. */
  | { readonly kind: 'close' };

export type FromWorker = { readonly task: number } & (
  | { readonly kind: 'progress'; readonly progress: CopyProgress }
  /** A line for the service's log, which is not reached from here. */
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly message: string;
    }
  | { readonly kind: 'checked'; readonly report: CheckReport }
  | { readonly kind: 'digest'; readonly digest: Digest }
  | { readonly kind: 'retried'; readonly call: number; readonly applied: boolean }
  | { readonly kind: 'retry-failed'; readonly call: number; readonly message: string }
  /** Ended by a failure. `name` is that of the error's class; `damaged`: of a log that is. */
  | {
      readonly kind: 'failed';
      readonly name: string;
      readonly message: string;
      readonly damaged?: Pick<LogDamaged, 'at'>;
    }
  /** Ended because it was told to, or because it is done. */
  | { readonly kind: 'ended' }
);
