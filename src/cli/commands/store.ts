import { InvalidArgumentError, type Command } from 'commander';
import type { Backup } from '../../http/ledger/upkeep-operations.ts';
import type { CliActions, Connection, StoreToCheck } from '../connection.ts';
import { examples } from '../examples.ts';
import { EXIT } from '../exit.ts';
import { counted } from '../output.ts';
import { assertStorePath } from '../store-path.ts';
import { addRestoreCommand } from './store-restore.ts';
import { addShowCommand } from './store-show.ts';

/** `ledgerctl store`: online backup of a running service; check, look and restore of what lies there. */
export const addStoreCommands = (program: Command, connection: Connection, actions: CliActions): void => {
  const { client, io } = connection;
  const wanted = (options: { dataDir: string; file?: string }, named: boolean): StoreToCheck => {
    if (options.file !== undefined) {
      if (named) throw new InvalidArgumentError('--file and --data-dir exclude each other');
      return { file: options.file };
    }
    if (!named && actions.eventStore.startsWith('esdb'))
      throw new InvalidArgumentError(
        'LEDGER_EVENT_STORE names an EventStoreDB, which has its own tools; this command reads the embedded store, ' +
          'for example --data-dir ./data or --file backup.sqlite',
      );
    return { dataDir: options.dataDir };
  };
  const store = program.command('store').description('the embedded event store');
  store
    .command('backup <file>')
    .description('copy the running store to a file on the machine of the service; writes go on')
    .addHelpText('after', examples('store backup /var/backups/ledger-1.sqlite'))
    .action(async (file: string) => {
      const done = await (await client()).send<Backup>('POST', '/api/ledger/v1/store/backup', { file });
      io.out(`${done.file}: ${done.bytes} bytes\n`);
    });
  store
    .command('check')
    .description('read the whole store of a stopped service, or a backup of one, and report what is wrong')
    .option('--data-dir <directory>', 'data directory', actions.defaultDataDir)
    .option('--file <file>', 'events.db or a backup of it, instead of a data directory')
    .addHelpText(
      'after',
      examples('store check --data-dir ./data', 'store check --file /var/backups/ledger-1.sqlite'),
    )
    .action(async (options: { dataDir: string; file?: string }, command: Command) => {
      const named = command.getOptionValueSource('dataDir') === 'cli';
      const which = wanted(options, named);
      if ('file' in which) await assertStorePath(which.file, '--file');
      else await assertStorePath(which.dataDir, '--data-dir');
      const { events, findings } = await actions.checkStore(which);
      for (const finding of findings) io.out(`${finding}\n`);
      io.out(
        findings.length === 0
          ? `${counted(events, 'event')}, nothing wrong\n`
          : `${counted(events, 'event')}, ${counted(findings.length, 'finding')}\n`,
      );
      if (findings.length === 0) return;
      process.exitCode = EXIT.failed;
      if (findings.some((finding) => /^(checksum|json): /.test(finding)))
        io.err('hint: ledgerctl store show <stream> <revision> shows one event as it is stored\n');
    });
  addShowCommand(store, connection, actions);
  addRestoreCommand(store, connection, actions);
};
