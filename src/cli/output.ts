import { stripVTControlCharacters } from 'node:util';
import { InvalidArgumentError } from 'commander';
import { withUnseenShown } from '../domain/visible-text.ts';
import type { CliIo } from './connection.ts';

type Cell = string | number | undefined;

/** Left-aligned columns, two spaces between them, header in capitals; `-` for what is empty. */
export const table = (header: readonly string[], rows: readonly (readonly Cell[])[]): string => {
  const cells = [header.map((title) => title.toUpperCase()), ...rows];
  const widths = padded.widths(header, rows);
  return cells.map((row) => padded.row(row, widths)).join('\n');
};

export const padded = {
  widths: (header: readonly string[], rows: readonly (readonly Cell[])[]): readonly number[] =>
    header.map((title, column) =>
      rows.reduce(
        (most, row) => Math.max(most, column < row.length ? width(shown(row[column])) : 0),
        width(title),
      ),
    ),
  /** One row; what is wider than its column moves the rest to the right. */
  row: (cells: readonly Cell[], widths: readonly number[]): string =>
    cells
      .map(shown)
      .map((cell, column) =>
        column === cells.length - 1
          ? cell
          : cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - width(cell))),
      )
      .join('  '),
};

const shown = (value: Cell): string => (value === undefined || value === '' ? '-' : String(value));
const width = (text: string): number => stripVTControlCharacters(text).length;

/** Text without control characters but line breaks and tabs. */
export const printable = (text: string): string => text.replaceAll(/[^\P{Cc}\n\t]/gu, '\u{fffd}');

/** Output on which everything can be seen: what cannot be is written as an escape, as in JSON. */
export const readable = (io: CliIo): CliIo => ({
  ...io,
  out: (text) => io.out(withUnseenShown(text)),
  err: (text) => io.err(withUnseenShown(text)),
});

export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** `1 event`, `2 events`; `many` where it is not made with an s. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/** Seconds for people: `0.3 s`, `12 s`, `3 min 5 s`. */
export const duration = (seconds: number): string => {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
};

/** Seconds of `90`, `30s`, `15m`, `8h`, `7d`. */
export const parseDuration = (text: string): number => {
  const match = /^(\d{1,6})(s|m|h|d)?$/.exec(text);
  if (match === null) throw new InvalidArgumentError(`"${text}" is not a time such as 30m or 8h`);
  const units = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
  if (Number(match[1]) === 0)
    throw new InvalidArgumentError(`"${text}" is not a time above 0; give for example 30m`);
  return Number(match[1]) * units[(match[2] ?? 's') as keyof typeof units];
};
