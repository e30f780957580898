import type { Command } from 'commander';
import type { Digest, Projection, RebuildLine, RebuildReport } from '../../http/ledger/upkeep-operations.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { duration, table } from '../output.ts';

/** `ledgerctl projections`: state of the read models, and rebuilding one while reads go on. */
export const addProjectionCommands = (program: Command, { client, io }: Connection): void => {
  const projections = program.command('projections').description('read models of the instance that answers');
  projections
    .command('list')
    .description('all read models with their position and lag')
    .addHelpText('after', examples('projections list'))
    .action(async () => {
      const { items } = await (await client()).get<{ items: Projection[] }>('/api/ledger/v1/projections');
      const rows = items.map((view) => [
        view.name,
        view.version,
        view.state,
        view.position,
        lag(view),
        view.parkedStreams.length,
      ]);
      io.out(`${table(['name', 'version', 'state', 'position', 'lag', 'parked'], rows)}\n`);
      const parked = items.find(({ parkedStreams }) => parkedStreams.length > 0);
      const [first] = parked?.parkedStreams ?? [];
      if (first !== undefined)
        io.err(
          `hint: ledgerctl projections status ${parked?.name} lists the parked streams; on the machine of the service, ` +
            `ledgerctl store show ${first.stream} ${first.revision} shows the event as it is stored\n`,
        );
    });
  projections
    .command('status <name>')
    .description('everything about one read model, as JSON')
    .addHelpText('after', examples('projections status timeline'))
    .action(async (name: string) => {
      const status = await (await client()).get<Projection>(
        `/api/ledger/v1/projections/${encodeURIComponent(name)}`,
      );
      io.out(`${JSON.stringify(status, null, 2)}\n`);
    });
  projections
    .command('rebuild <name>')
    .description('build a fresh copy beside the live one, check it and switch; reads never stop')
    .addHelpText('after', examples('projections rebuild resources'))
    .action(async (name: string) => {
      const path = `/api/ledger/v1/projections/${encodeURIComponent(name)}/rebuild`;
      for await (const line of (await client()).lines<RebuildLine>('POST', path)) {
        if ('error' in line) throw new Error(line.error);
        if ('events' in line) io.err(`${line.events} events applied\n`);
        else finish(line.report, io.out);
      }
    });
  projections
    .command('digest <name>')
    .description('SHA-256 over all rows at a stated position; equal on every instance at that position')
    .addHelpText('after', examples('projections digest resources'))
    .action(async (name: string) => {
      const digest = await (await client()).get<Digest>(
        `/api/ledger/v1/projections/${encodeURIComponent(name)}/digest`,
      );
      io.out(`${digest.digest}  ${digest.rows} rows at ${digest.position ?? 'the beginning'}\n`);
    });
};

const lag = (view: Projection): string => (view.caughtUp ? 'caught up' : duration(view.lagSeconds));

const finish = (report: RebuildReport, out: (text: string) => void): void => {
  out(`${report.view}: ${report.outcome} after ${report.events} events in ${duration(report.seconds)}\n`);
  for (const difference of report.differences) out(`  ${difference}\n`);
  if (report.outcome !== 'switched') process.exitCode = 1;
};
