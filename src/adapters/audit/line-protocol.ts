import type { LinePage } from '../../app/audit/bundle/writer.ts';
import type { PagesAsked } from '../../app/audit/exports/ports.ts';
import type { LogDamaged } from '../../app/log/event-store.ts';

/** What a module of export lines gives: pages of lines or proofs, from a log and an audit tree of its own. */
export type ExportLines = {
  readonly pages: (asked: PagesAsked) => AsyncIterable<LinePage>;
  readonly close: () => Promise<void>;
};

/** Export `openExportLines` of the module. The configuration is plain JSON; `tree`: file of the read model `audit`. */
export type OpenExportLines<Config = unknown> = (config: Config, tree: string) => Promise<ExportLines>;

export type LineWorkerData = {
  /** URL of the module. */
  readonly module: string;
  readonly config: unknown;
  readonly tree: string;
  readonly asked: PagesAsked;
};

export type FromLineWorker =
  | { readonly kind: 'page'; readonly page: LinePage }
  | { readonly kind: 'end' }
  /** `name`: of the error, so that it can be told apart; `damaged`: of a log that is. */
  | {
      readonly kind: 'failed';
      readonly name: string;
      readonly message: string;
      readonly damaged?: Pick<LogDamaged, 'at'>;
    };

/** Pages that are made ahead: each message to the worker is leave for one more. */
export const PAGES_AHEAD = 4;
