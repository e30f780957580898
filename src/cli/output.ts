import { stripVTControlCharacters } from 'node:util';

/** Left-aligned columns, two spaces between them, header in capitals; `-` for what is empty. */
export const table = (
  header: readonly string[],
  rows: readonly (readonly (string | number | undefined)[])[],
): string => {
  const cells = [header.map((title) => title.toUpperCase()), ...rows.map((row) => row.map(shown))];
  const widths = header.map((_, column) => Math.max(...cells.map((row) => width(row[column] ?? ''))));
  return cells
    .map((row) =>
      row
        .map((cell, column) =>
          column === row.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - width(cell)),
        )
        .join('  '),
    )
    .join('\n');
};

const shown = (value: string | number | undefined): string =>
  value === undefined || value === '' ? '-' : String(value);
const width = (text: string): number => stripVTControlCharacters(text).length;

/** Seconds for people: `0.3 s`, `12 s`, `3 min 5 s`. */
export const duration = (seconds: number): string => {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
};
