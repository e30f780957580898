import type { JsonObject } from '../../domain/json.ts';
import type { CheckReport, CopyProgress } from './copy.ts';
import type { Digest } from './digest.ts';

/** What a worker thread is started with: modules by URL and plain values, since nothing else crosses a thread. */
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
  | { readonly kind: 'rebuild'; readonly copy: string; readonly live: string | undefined }
  | { readonly kind: 'digest'; readonly copy: string };

export type ToWorker =
  | { readonly kind: 'stop' }
  | { readonly kind: 'retry'; readonly call: number; readonly stream: string };

export type FromWorker =
  | { readonly kind: 'progress'; readonly progress: CopyProgress }
  | { readonly kind: 'checked'; readonly report: CheckReport }
  | { readonly kind: 'digest'; readonly digest: Digest }
  | { readonly kind: 'retried'; readonly call: number; readonly applied: boolean }
  | { readonly kind: 'retry-failed'; readonly call: number; readonly message: string }
  /** Ended by a failure; the thread exits. `name` is that of the error's class. */
  | { readonly kind: 'failed'; readonly name: string; readonly message: string }
  /** Ended because it was told to, or because its task is done; the thread exits. */
  | { readonly kind: 'ended' };
