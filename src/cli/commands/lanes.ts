import type { Command } from 'commander';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';

/** One lane as `GET /api/ledger/v1/lanes` answers it. */
export type Lane = {
  readonly lane: string;
  readonly breaker: string;
  readonly paused: boolean;
  readonly in_flight?: number;
  readonly waiting?: number;
  readonly consecutive_failures?: number;
  readonly last_reason?: string;
};

/** `ledgerctl lanes`: the queues of effects towards each far side, on the instance that runs the processes. */
export const addLaneCommands = (program: Command, { client, io }: Connection): void => {
  const lanes = program
    .command('lanes')
    .description('queues of effects: per hub, per automation of a hub, and of the scheduler')
    .addHelpText('after', NAMES);
  lanes
    .command('list')
    .description('lanes with work or trouble; an idle one is not kept')
    .addHelpText('after', examples('lanes list'))
    .action(async () => {
      const { items = [] } = await (await client()).get<{ items?: Lane[] }>('/api/ledger/v1/lanes');
      const rows = items.map((lane) => [
        lane.lane,
        stateOf(lane),
        lane.in_flight,
        lane.waiting,
        lane.consecutive_failures,
        lane.last_reason,
      ]);
      if (items.length === 0) return io.err('no lane has work or trouble\n');
      io.out(`${table(['lane', 'state', 'in flight', 'waiting', 'failures', 'last reason'], rows)}\n`);
    });
  for (const [verb, description] of [
    ['pause', 'hold a lane back until it is resumed or the processes start anew'],
    ['resume', 'let a lane go on, at once also when it waits for its next try'],
  ] as const)
    lanes
      .command(`${verb} <lane>`)
      .description(description)
      .addHelpText('after', NAMES)
      .addHelpText(
        'after',
        '\nExit status:\n  0  done\n  3  there is no such lane: the nearest ones are named\n',
      )
      .addHelpText('after', examples(`lanes ${verb} hub:sim-east-1`))
      .action(async (name: string) => {
        const path = `/api/ledger/v1/lanes/${encodeURIComponent(name)}/${verb}`;
        const lane = await (await client()).send<Lane>('POST', path);
        io.out(`lane ${lane.lane}: ${stateOf(lane)}\n`);
      });
};

const NAMES = `
A lane is
  hub:<id>              what is done on a hub
  automation:eda:<id>   calls of the hub's rulebook
  automation:aap:<id>   calls of the hub's job templates
  scheduler             placement, and what is done on no hub
One of a registered hub may be paused before its first work.
`;

/** In words, as `lanes list` shows it. */
export const stateOf = ({ paused, breaker }: Lane): string =>
  paused ? 'paused' : breaker === 'closed' ? 'working' : `breaker ${breaker}`;
