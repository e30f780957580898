import type { Command } from 'commander';
import type { Connection } from '../ledgerctl.ts';

export type ListedEvent = {
  readonly position: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly tenant: string;
  readonly recordedAt: string;
  readonly data: unknown;
};

type EventOptions = {
  stream?: string;
  type?: string;
  tenant?: string;
  from?: string;
  limit: string;
  follow: boolean;
  json: boolean;
};

/** `ledgerctl events`: the log as it stands, or live. */
export const addEventCommands = (program: Command, { client, io }: Connection): void => {
  program
    .command('events')
    .description('list events of the log, oldest first; secrets and personal data stay hidden')
    .option('--stream <name>', 'only this stream, for example cluster-<id>')
    .option('--type <type>', 'only events of this type')
    .option('--tenant <name>', 'only events on behalf of this tenant')
    .option('--from <position>', 'only events after this position')
    .option('--limit <n>', 'at most so many', '100')
    .option('--follow', 'go on with new events until interrupted', false)
    .option('--json', 'one JSON object per line', false)
    .action(async (options: EventOptions) => {
      const query = new URLSearchParams({ limit: options.limit });
      for (const name of ['stream', 'type', 'tenant', 'from'] as const) {
        const value = options[name];
        if (value !== undefined) query.set(name, value);
      }
      if (options.follow) query.set('follow', 'true');
      const show = options.json ? (event: ListedEvent) => JSON.stringify(event) : line;
      for await (const event of (await client()).lines<ListedEvent>(
        'GET',
        `/api/ledger/v1/events?${query.toString()}`,
      ))
        io.out(`${show(event)}\n`);
    });
};

const line = ({ position, recordedAt, stream, revision, type, tenant }: ListedEvent): string =>
  `${position}  ${recordedAt}  ${stream}@${revision}  ${type}  tenant=${tenant}`;
