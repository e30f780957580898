import type { Command } from 'commander';
import type { CliIo, Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';
import { AUDIT } from './event-table.ts';

export const JSON_LINES = ['--json', 'one JSON object per line', false] as const;

export const JSON_ANSWER = ['--json', 'print the answer as JSON', false] as const;

type Columns<Item> = {
  readonly header: readonly string[];
  readonly row: (item: Item) => readonly (string | number | undefined)[];
  /** Said on stderr where there is nothing. */
  readonly none: string;
};

/** `ledgerctl audit <name>`: all that the route of this name lists. */
export const addList = <Item>(
  audit: Command,
  { client, io }: Connection,
  name: string,
  about: string,
  columns: Columns<Item>,
): void => {
  audit
    .command(name)
    .description(about)
    .option(...JSON_LINES)
    .addHelpText('after', examples(`audit ${name}`))
    .action(async ({ json }: { json: boolean }) => {
      const { items } = await (await client()).get<{ items: readonly Item[] }>(`${AUDIT}/${name}`);
      printList(io, items, json, columns);
    });
};

export const printList = <Item>(
  io: CliIo,
  items: readonly Item[],
  json: boolean,
  { header, row, none }: Columns<Item>,
): void => {
  if (items.length === 0) io.err(`${none}\n`);
  else if (json) for (const item of items) io.out(`${JSON.stringify(item)}\n`);
  else io.out(`${table(header, items.map(row))}\n`);
};
