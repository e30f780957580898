import type { Command } from 'commander';
import type { Lane } from '../../http/ledger/upkeep-operations.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';

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
      const { items } = await (await client()).get<{ items: Lane[] }>('/api/ledger/v1/lanes');
      const rows = items.map((lane) => [
        lane.lane,
        stateOf(lane),
        lane.in_flight,
        lane.waiting,
        lane.failing_orders,
        lane.pause?.reason,
      ]);
      if (items.length === 0) return io.err('no lane has work or trouble\n');
      io.out(`${table(['lane', 'state', 'in flight', 'waiting', 'failing orders', 'paused for'], rows)}\n`);
      const failing = items.flatMap(failingIn);
      const header = ['lane', 'order', 'failures', 'counts', 'reason', 'last error'];
      if (failing.length > 0) io.out(`\n${table(header, failing)}\n`);
    });
  for (const [verb, description] of [
    ['pause', 'hold a lane back until it is resumed, also over restarts of the service'],
    ['resume', 'let a lane go on, at once also when it waits for its next try'],
  ] as const) {
    const command = lanes
      .command(`${verb} <lane>`)
      .description(description)
      .addHelpText('after', NAMES)
      .addHelpText('after', '\nExit status:\n  0  done\n  3  lane not found; the nearest ones are named\n')
      .addHelpText('after', examples(`lanes ${verb} hub:sim-east-1`))
      .action(async (name: string, { reason }: { reason?: string }) => {
        const path = `/api/ledger/v1/lanes/${encodeURIComponent(name)}/${verb}`;
        const body = reason === undefined ? undefined : { reason };
        const lane = await (await client()).send<Lane>('POST', path, body);
        io.out(`lane ${lane.lane}: ${stateOf(lane)}\n`);
      });
    if (verb === 'pause') command.option('--reason <text>', 'why; shown by `lanes list`');
  }
};

/** `set aside`: others pass, so that it is tried at its own pauses and does not close the lane. */
const failingIn = ({ lane, failing = [] }: Lane): (string | number)[][] =>
  failing.map(({ order, failures, set_aside: aside, reason, message }) => [
    lane,
    order,
    failures,
    aside ? 'set aside' : 'against the lane',
    reason,
    message,
  ]);

const NAMES = `
A lane is
  hub:<id>              what is done on a hub
  site:<zone>           what is configured around the hubs of a zone
  automation:eda:<id>   calls of the hub's rulebook
  automation:aap:<id>   calls of the hub's job templates
  scheduler             placement, and what is done on no hub
One of a registered hub may be paused before its first work.
`;

export const stateOf = ({ paused, breaker }: Lane): string =>
  paused ? 'paused' : breaker === 'closed' ? 'working' : `breaker ${breaker}`;
