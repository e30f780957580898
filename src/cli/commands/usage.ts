import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Usage } from '../../http/ledger/usage-operations.ts';
import { kinds } from '../resources/kinds.ts';
import { queryText } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { printable, table } from '../output.ts';

type UsageOptions = {
  from?: string;
  to?: string;
  period?: string;
  by?: string;
  tenant?: string;
  project?: string;
  kind?: string;
  template?: string;
  resource?: string;
  incomplete: boolean;
  output: 'table' | 'json' | 'ndjson' | 'csv';
};
const FILTERS = ['tenant', 'project', 'kind', 'template', 'resource'] as const;
const DIMENSIONS = ['tenant', 'project', 'kind', 'template', 'resource', 'node_set', 'host_type'];

/** `tenant, kind` as `tenant,kind`; empty: one row for all. Throws InvalidArgumentError. */
const dimensions = (text: string): string => {
  const named = text.split(',').map((name) => name.trim());
  if (text.trim() === '') return '';
  for (const [i, name] of named.entries()) {
    if (!DIMENSIONS.includes(name))
      throw new InvalidArgumentError(`"${name}" is none of ${DIMENSIONS.join(', ')}`);
    if (named.indexOf(name) < i) throw new InvalidArgumentError(`"${name}" is given twice`);
  }
  return named.join(',');
};

/** An empty bill, and what may be the reason: a filter that matches nothing is no error. */
const nothing = (options: UsageOptions, asOf?: string): string => {
  const given = FILTERS.filter((name) => options[name] !== undefined);
  const what = given.map((name) => `--${name} ${options[name] ?? ''}`).join(' ');
  return [
    'nothing was billed in this time',
    ...(asOf === undefined ? [] : [`as of ${asOf}`]),
    ...(what === ''
      ? []
      : [`of ${what} (names and ids as \`ledgerctl usage --by ${given.join(',')}\` shows them)`]),
  ].join(', ');
};

const cell = (value: string | number): string | number =>
  typeof value === 'string' ? printable(value).replaceAll(/\s+/g, ' ') : value;

/** `ledgerctl usage`: billable time of a period, for a bill or a look. */
export const addUsageCommand = (program: Command, { client, io }: Connection): void => {
  program
    .command('usage')
    .description('billed and provisioning time by tenant, project, kind and template')
    .option(
      '--from <time>',
      'begin, for example 2026-11-01T00:00:00Z (default: first day of this month in UTC)',
    )
    .option('--to <time>', 'end (default: now)')
    .addOption(
      new Option('--period <length>', 'cut the time into parts, in UTC').choices([
        'total',
        'hour',
        'day',
        'month',
      ]),
    )
    .option(
      '--by <list>',
      `dimensions of the rows, comma list: ${DIMENSIONS.join(', ')} (default: the first four; '': nothing)`,
      dimensions,
    )
    .option('--tenant <name>', 'only this tenant (default: all for provider admins, else the own one)')
    .option('--project <name>', "only this project; '': objects in no project")
    .addOption(
      new Option('--kind <kind>', 'only this kind').choices(
        kinds.filter(({ acts }) => acts === true).map(({ kind }) => kind),
      ),
    )
    .option('--template <id>', 'only this template, by id')
    .option('--resource <id>', 'only this cluster, by id')
    .option('--incomplete', 'answer although the events of some clusters could not be applied', false)
    .addOption(
      new Option('-o, --output <format>', 'how to print it')
        .choices(['table', 'json', 'ndjson', 'csv'])
        .default('table'),
    )
    .addHelpText(
      'after',
      examples(
        'usage',
        'usage --from 2026-10-01T00:00:00Z --to 2026-11-01T00:00:00Z --by tenant,project -o csv',
        'usage --tenant acme --period day --by template',
        'usage --by tenant,resource,node_set -o ndjson > november.ndjson',
      ),
    )
    .addHelpText(
      'after',
      '\nresource_seconds is the billed time of clusters, node_seconds that of ordered nodes, each node for itself. A cluster\n' +
        'is billed from its first READY on; provisioning_resource_seconds and provisioning_node_seconds are the time before.\n' +
        'Times with an offset are taken as such (2026-11-01T00:00:00+01:00); periods begin at full hours, days and months in UTC.',
    )
    .action(async (options: UsageOptions) => {
      const { output, incomplete, ...asked } = options;
      const format = output === 'table' ? 'json' : output;
      const query = queryText({ format, ...asked, ...(incomplete ? { incomplete: 'true' } : {}) });
      const path = `/api/ledger/v1/usage${query}`;
      const api = await client();
      if (output !== 'table') {
        const text = await api.text(path);
        io.out(text.endsWith('\n') || text === '' ? text : `${text}\n`);
        const lines = text.trimEnd().split('\n').length;
        if (text === '' || (output === 'csv' && lines === 1)) io.err(`${nothing(options)}\n`);
        return;
      }
      const { as_of: asOf, items } = await api.get<Usage>(path);
      const [first] = items;
      if (first === undefined) {
        io.err(`${nothing(options, asOf)}\n`);
        return;
      }
      const titles = Object.keys(first).map((column) => column.replaceAll('_', ' '));
      io.out(
        `${table(
          titles,
          items.map((row) => Object.values(row).map(cell)),
        )}\n`,
      );
    });
};
