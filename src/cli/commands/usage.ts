import type { Command } from 'commander';
import { Option } from 'commander';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';

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

/** `ledgerctl usage`: billable time of a period, for a bill or a look. */
export const addUsageCommand = (program: Command, { client, io }: Connection): void => {
  program
    .command('usage')
    .description('billable time by tenant, project, kind and template; exact, from the history')
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
    .option('--by <list>', 'tenant, project, kind, template, resource, node_set, host_type; comma list')
    .option('--tenant <name>', 'only this tenant')
    .option('--project <name>', 'only this project')
    .option('--kind <kind>', 'only this kind, for example cluster')
    .option('--template <id>', 'only this template')
    .option('--resource <id>', 'only this cluster')
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
      ),
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
        return;
      }
      const { as_of: asOf, items } = await api.get<Usage>(path);
      const [first] = items;
      if (first === undefined) {
        io.err(`nothing was billed in this time, as of ${asOf}\n`);
        return;
      }
      const columns = Object.keys(first);
      const titles = columns.map((column) => column.replaceAll('_', ' '));
      io.out(
        `${table(
          titles,
          items.map((row) => columns.map((column) => row[column])),
        )}\n`,
      );
    });
};
