import { InvalidArgumentError, type Command } from 'commander';
import { firstNonUtf8, textOf } from '../../app/log/stored-event.ts';
import type { CliActions, Connection, EventAsStored, StoreToLookInto } from '../connection.ts';
import { examples } from '../examples.ts';
import { EXIT, notFound } from '../exit.ts';
import { counted } from '../output.ts';
import { assertStorePath } from '../store-path.ts';

/** `ledgerctl store show`: one event as it is stored, for whoever has to find out what is wrong with it. */
export const addShowCommand = (store: Command, { io }: Connection, actions: CliActions): void => {
  store
    .command('show <stream> <revision>')
    .description(
      'show one event as it is stored and what is wrong with it; changes nothing, and works beside a running service',
    )
    .option('--data-dir <directory>', 'data directory', actions.defaultDataDir)
    .option('--file <file>', 'events.db or a backup of it')
    .option('--store <esdb>', 'connection string of an EventStoreDB (default: LEDGER_EVENT_STORE)')
    .addHelpText(
      'after',
      `
Nothing is redacted: it is the event as the provider stored it. Secrets are not in events, and personal data is ciphertext.
Exit status 1: something is wrong with the event; 3: there is none.
${examples(
  'store show cluster-0198f3c2 3 --data-dir ./data',
  'store show cluster-0198f3c2 3 --file /var/backups/ledger-1.sqlite',
)}`,
    )
    .action(async (stream: string, revision: string, options: Options, command: Command) => {
      if (!/^\d{1,15}$/.test(revision))
        throw new InvalidArgumentError(`"${revision}" is not a revision: the first event of a stream has 0`);
      const named = command.getOptionValueSource('dataDir') === 'cli';
      const which = whichStore(options, named, actions.eventStore);
      if ('file' in which) await assertStorePath(which.file, '--file');
      if ('dataDir' in which) await assertStorePath(which.dataDir, '--data-dir');
      const found = await actions.showEvent(which, stream, Number(revision));
      if (found.outcome === 'absent') throw notFound(absence(stream, revision, found.revisions));
      io.out(textOfEvent(found));
      if (found.faults.length > 0) process.exitCode = EXIT.failed;
    });
};

type Options = { readonly dataDir: string; readonly file?: string; readonly store?: string };
type Found = Extract<EventAsStored, { outcome: 'found' }>;

const whichStore = (options: Options, named: boolean, eventStore: string): StoreToLookInto => {
  const { dataDir, file, store } = options;
  if ([named ? dataDir : undefined, file, store].filter((given) => given !== undefined).length > 1)
    throw new InvalidArgumentError('--data-dir, --file and --store exclude each other');
  if (file !== undefined) return { file };
  if (store !== undefined) return { store };
  return !named && eventStore.startsWith('esdb') ? { store: eventStore } : { dataDir };
};

const absence = (
  stream: string,
  revision: string,
  revisions: { readonly first: number; readonly last: number } | undefined,
): string =>
  revisions === undefined
    ? `event '${stream}@${revision}' not found`
    : `event '${stream}@${revision}' not found: the stream has revisions ${revisions.first} to ${revisions.last}`;

const textOfEvent = ({ event, faults, leaf }: Found): string => {
  const lines = [
    `${event.stream}@${event.revision}`,
    `  position     ${event.position === '' ? '-' : event.position}`,
    `  type         ${event.type}`,
    `  id           ${event.id}`,
    `  recorded at  ${event.recordedAt}`,
    ...(leaf === undefined ? [] : [`  audit tree   leaf ${leaf}, the same event`]),
    '',
    ...textOfBytes('data', event.data),
    ...textOfBytes('metadata', event.metadata),
    faults.length === 0 ? 'nothing wrong' : `${counted(faults.length, 'fault')}:`,
    ...faults.map(({ at, problem }) => `  ${at}: ${problem}`),
  ];
  return `${lines.join('\n')}\n`;
};

/** The text as it is stored; around the first byte that is not UTF-8 also its bytes. */
const textOfBytes = (name: string, bytes: Uint8Array): string[] => {
  const wrong = firstNonUtf8(bytes);
  const from = Math.max(0, (wrong ?? 0) - BYTES_AROUND);
  const around = Buffer.from(bytes).toString('hex', from, from + 2 * BYTES_AROUND);
  return [
    `${name} (${counted(bytes.length, 'byte')}):`,
    textOf(bytes),
    ...(wrong === undefined ? [] : [`bytes from ${from} on: ${around}`]),
    '',
  ];
};

const BYTES_AROUND = 16;
