import type { Command } from 'commander';
import type { CliActions, Connection } from '../ledgerctl.ts';

/** `ledgerctl store`: online backup of a running service, full check of a stopped one. */
export const addStoreCommands = (program: Command, { client, io }: Connection, actions: CliActions): void => {
  const store = program.command('store').description('the embedded event store');
  store
    .command('backup <file>')
    .description('copy the running store to a file on the machine of the service; writes go on')
    .action(async (file: string) => {
      const done = await (await client()).send<{ file: string; bytes: number }>(
        'POST',
        '/api/ledger/v1/store/backup',
        { file },
      );
      io.out(`${done.file}: ${done.bytes} bytes\n`);
    });
  store
    .command('check')
    .description('read the whole store of a stopped service and report what is wrong')
    .option('--data-dir <directory>', 'data directory', actions.defaultDataDir)
    .action(async ({ dataDir }: { dataDir: string }) => {
      const { events, findings } = await actions.checkStore(dataDir);
      for (const finding of findings) io.out(`${finding}\n`);
      io.out(
        findings.length === 0
          ? `${events} events, nothing wrong\n`
          : `${events} events, ${findings.length} findings\n`,
      );
      if (findings.length > 0) process.exitCode = 1;
    });
};
