import type { Position } from '../app/log/event-store.ts';
import type { ReadModels } from '../projections/read-models.ts';
import { invalid, notReached, type ApiError } from './errors.ts';

/**
 * Positions as HTTP carries them: `<store id>.<position>`, because a position means something in one store only.
 * `X-Ledger-Position` comes with every write; `X-Ledger-Min-Position` makes a read wait for it.
 */
export type Positions = {
  format(position: Position): string;
  /** Waits until this instance shows the position. Throws ApiError 400 (malformed, foreign store) or 503 (too late). */
  waitForMinimum(header: string | string[] | undefined, view: string): Promise<void> | undefined;
  /** Waits, bounded, until the resources view has applied a write: true when it has. Never fails a write. */
  applied(position: Position): Promise<boolean>;
  /** The position of a text that `format` made. Throws ApiError 400. */
  parse(text: string, name: string): Position;
};

export type PositionsOptions = {
  readonly storeId: string;
  readonly waitFor: ReadModels['waitFor'];
  /** Digits of a position of this store: positions are compared as text, so one of another width means nothing. Default 16. */
  readonly digits?: number;
  /** Milliseconds a read waits for its minimum position. Default 5,000. */
  readonly readWaitMs?: number;
  /** Milliseconds a write waits for its own effect on the read model before it is answered anyway. Default 2,000. */
  readonly writeWaitMs?: number;
};

export const RESOURCES_VIEW = 'resources';
export const TIMELINE_VIEW = 'timeline';

export const createPositions = (options: PositionsOptions): Positions => {
  const prefix = `${options.storeId}.`;
  const digits = options.digits ?? 16;
  const parse = (text: string, name: string): Position => {
    const at = text.lastIndexOf('.');
    const position = text.slice(at + 1);
    if (!text.startsWith(prefix) && /^.+\.\d{1,40}$/.test(text)) throw foreign(name);
    if (at < 1 || position.length !== digits || !/^\d+$/.test(position))
      throw invalid(`'${name}' must be a position as X-Ledger-Position shows it`, name);
    if (text.length !== prefix.length + position.length) throw foreign(name);
    return position;
  };
  return {
    parse,
    format: (position) => prefix + position,
    waitForMinimum: (header, view) => {
      if (header === undefined) return undefined;
      const position = parse(Array.isArray(header) ? header.join(',') : header, 'X-Ledger-Min-Position');
      return options.waitFor(view, position, { timeoutMs: options.readWaitMs ?? 5_000 }).then((reached) => {
        if (!reached) throw notReached('this instance has not applied that position yet; try again');
      });
    },
    applied: (position) =>
      options.waitFor(RESOURCES_VIEW, position, { timeoutMs: options.writeWaitMs ?? 2_000 }),
  };
};

const foreign = (name: string): ApiError =>
  invalid(`'${name}' is a position of another event store`, name, 'FOREIGN_POSITION');
