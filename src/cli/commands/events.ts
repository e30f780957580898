import type { Command } from 'commander';
import type { ListedEvent, StoreAnswer } from '../../http/ledger/upkeep-operations.ts';
import { queryText } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';

type EventOptions = {
  stream?: string;
  type?: string;
  tenant?: string;
  from?: string;
  limit: string;
  follow: boolean;
  json: boolean;
};

export const addEventCommands = (program: Command, { client, io }: Connection): void => {
  program
    .command('events')
    .description('list events of the log, oldest first; secrets and personal data stay hidden')
    .option('--stream <name>', 'only this stream, for example cluster-<id>')
    .option('--type <type>', 'only events of this type')
    .option('--tenant <name>', 'only events on behalf of this tenant')
    .option('--from <position>', 'only events after this position')
    .option('--limit <n>', 'at most so many (without --follow)', '100')
    .option(
      '--follow',
      'wait for new events until interrupted; only new ones, unless --from says where to begin',
      false,
    )
    .option('--json', 'one JSON object per line', false)
    .addHelpText(
      'after',
      examples('events --tenant acme --limit 20', 'events --type ClusterOrdered --json', 'events --follow'),
    )
    .action(async (options: EventOptions) => {
      const { stream, type, tenant, limit, follow } = options;
      let { from } = options;
      const api = await client();
      if (follow && from === undefined) {
        from = (await api.get<StoreAnswer>('/api/ledger/v1/store')).last_position;
        io.err(`new events after ${from ?? 'the beginning'}; end with Ctrl-C\n`);
      }
      const live = follow ? { follow: 'true' } : {};
      const path = `/api/ledger/v1/events${queryText({ limit, stream, type, tenant, ...live, from })}`;
      const show = options.json ? (event: ListedEvent) => JSON.stringify(event) : line;
      let seen = 0;
      for await (const event of api.lines<ListedEvent>('GET', path)) {
        seen += 1;
        io.out(`${show(event)}\n`);
      }
      if (seen === 0) io.err('no events of this kind\n');
      else if (!options.follow && seen === Number(options.limit))
        io.err(`--limit ${options.limit} reached; go on with --from and the last position\n`);
    });
};

const line = ({ position, recordedAt, stream, revision, type, tenant }: ListedEvent): string =>
  `${position}  ${recordedAt}  ${stream}@${revision}  ${type}  tenant=${tenant}`;
