import { InvalidArgumentError, Option, type Command } from 'commander';
import { kinds } from '../resources/kinds.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { printable, table } from '../output.ts';

type UsageRow = { readonly [column: string]: string | number };
type Usage = { readonly as_of: string; readonly items: readonly UsageRow[] };
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
const PARAMETERS = [
  'from',
  'to',
  'period',
  'by',
  'tenant',
  'project',
  'kind',
  'template',
  'resource',
] as const;

const FILTERS = ['tenant', 'project', 'kind', 'template', 'resource'] as const;
const DIMENSIONS = ['tenant', 'project', 'kind', 'template', 'resource', 'node_set', 'host_type'];

/** `tenant, kind` as `tenant,kind`; empty: one row for all. Throws InvalidArgumentError. */
const dimensions = (text: string): string => {
  const named = text.split(',').map((name) => name.trim());
  if (text.trim() === '') return '';
  for (const [i, name] of named.entries()) {
    if (!DIMENSIONS.includes(name))
      throw new InvalidArgumentError(`"${name}" is none of ${DIMENSIONS.join(', ')}`);
    if (named.indexOf(name) < i) throw new InvalidArgumentError(`"${name}" is there twice`);
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

const cell = (value: string | number | undefined): string | number | undefined =>
  typeof value === 'string' ? printable(value).replaceAll(/\s+/g, ' ') : value;

/** `ledgerctl usage`: billable time of a period, for a bill or a look. */
export const addUsageCommand = (program: Command, { client, io }: Connection): void => {
  program
    .command('usage')
    .description('billed and provisioning time by tenant, project, kind and template')
    .option('--from <time>', 'begin, for example 2026-11-01T00:00:00Z (default: of this month in UTC)')
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
      `what rows are told apart by, comma list: ${DIMENSIONS.join(', ')} (default: the first four; '': nothing)`,
      dimensions,
    )
    .option('--tenant <name>', 'only this tenant (default: all for provider admins, else the own one)')
    .option('--project <name>', "only this project; '': what is in none")
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
      const query = new URLSearchParams({ format: options.output === 'table' ? 'json' : options.output });
      for (const name of PARAMETERS) {
        const value = options[name];
        if (value !== undefined) query.set(name, value);
      }
      if (options.incomplete) query.set('incomplete', 'true');
      const path = `/api/ledger/v1/usage?${query.toString()}`;
      const api = await client();
      if (options.output !== 'table') {
        const text = await api.text(path);
        io.out(text.endsWith('\n') || text === '' ? text : `${text}\n`);
        const lines = text.trimEnd().split('\n').length;
        if (text === '' || (options.output === 'csv' && lines === 1)) io.err(`${nothing(options)}\n`);
        return;
      }
      const { as_of: asOf, items } = await api.get<Usage>(path);
      const [first] = items;
      if (first === undefined) {
        io.err(`${nothing(options, asOf)}\n`);
        return;
      }
      const columns = Object.keys(first);
      const titles = columns.map((column) => column.replaceAll('_', ' '));
      io.out(
        `${table(
          titles,
          items.map((row) => columns.map((column) => cell(row[column]))),
        )}\n`,
      );
    });
};
