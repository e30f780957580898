import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import type { Export } from '../../http/audit/answers.ts';
import type { ApiClient } from '../api-client.ts';
import { download } from '../audit/download.ts';
import { untilMade } from '../audit/export-wait.ts';
import { addList, JSON_ANSWER } from '../audit/lists.ts';
import { assertTarget } from '../audit/target.ts';
import { pinnedSize, readTrust } from '../audit/trust-file.ts';
import type { CliIo, Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { counted, jsonText, parseDuration } from '../output.ts';
import { AUDIT, OUTCOMES } from './audit-events.ts';
import { repeatable } from './hub-paths.ts';

type Options = {
  readonly tenant?: string;
  readonly format: string;
  readonly from?: string;
  readonly to?: string;
  readonly subject?: string;
  readonly kind?: string;
  readonly id?: string;
  readonly type: string[];
  readonly outcome?: string;
  readonly trust?: string;
  readonly output?: string;
  readonly force: boolean;
  readonly json: boolean;
  readonly wait: boolean;
  readonly waitFor: number;
};

const FORCE = ['--force', 'replace a file that is there', false] as const;
const KEEPS = 'another name keeps both, --force replaces it';

export const addAuditExportCommands = (audit: Command, connection: Connection): void => {
  const { client, io } = connection;
  addExport(audit, connection);
  const about = 'your exports, newest first: those of histories that you may read (provider admins: all)';
  addList<Export>(audit, connection, 'exports', about, {
    none: 'no exports',
    header: ['id', 'state', 'tenant', 'requested', 'events', 'bytes', 'reason'],
    row: ({ id, state, request, requested_at: at, events, bytes, reason }) => [
      id,
      state,
      request.tenant ?? 'all',
      at,
      events,
      bytes,
      reason,
    ],
  });
  audit
    .command('fetch')
    .description('fetch the file of an export; one that broke off is resumed')
    .argument('<id>', 'id of the export')
    .option('-o, --output <file>', 'output file (default: <id>.tar)')
    .option(...FORCE)
    .addHelpText('after', examples('audit fetch 0190fdc2-bf52-71b8-8c36-977f348f4436 -o acme.tar'))
    .action(async (id: string, { output, force }: { output?: string; force: boolean }) => {
      const api = await client();
      const found = await api.get<Export>(`${AUDIT}/exports/${encodeURIComponent(id)}`);
      const target = output ?? `${found.id}.tar`;
      await assertTarget(target, force ? undefined : KEEPS);
      await fetched(api, found, target, io);
    });
  audit
    .command('discard')
    .description('remove the file of an export, or stop making it; the request stays in the history')
    .argument('<id>', 'id of the export')
    .addHelpText('after', examples('audit discard 0190fdc2-bf52-71b8-8c36-977f348f4436'))
    .action(async (id: string) => {
      const path = `${AUDIT}/exports/${encodeURIComponent(id)}`;
      await (await client()).send('DELETE', path, undefined, repeatable());
      io.err(`export ${id} is discarded\n`);
    });
};

const addExport = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('export')
    .description('export a part of the history to a file that is checked without this service (audit verify)')
    .option('--tenant <name>', 'tenant whose history it is (default: your own; provider admins: everything)')
    .addOption(
      new Option('--format <format>', 'ocsf adds the events as OCSF API Activity')
        .choices(['native', 'ocsf'])
        .default('native'),
    )
    .option('--from <time>', 'recorded at that time or later')
    .option('--to <time>', 'recorded before that time')
    .option(
      '--subject <who>',
      'show only acts of this subject (id, or exact user name); the export holds hashes of all other events',
    )
    .option('--kind <kind>', 'show only what is about this kind')
    .option('--id <id>', 'with --kind: about this object')
    .option('--type <type...>', 'show only events of these types', [])
    .addOption(new Option('--outcome <outcome>', 'show only calls that ended so').choices(OUTCOMES))
    .option('--trust <file>', 'your trust.json: the export shows that it continues the head pinned there')
    .option('-o, --output <file>', 'output file (default: <id>.tar)')
    .option(...FORCE)
    .option('--no-wait', 'only ask for it, and print its id')
    .option(...JSON_ANSWER)
    .addOption(
      new Option('--wait-for <time>', 'how long to wait until it is made')
        .argParser(parseDuration)
        .default(3600, '1h'),
    )
    .addHelpText(
      'after',
      examples(
        'audit export --tenant acme --from 2026-01-01T00:00:00Z --to 2027-01-01T00:00:00Z -o acme-2026.tar',
        'audit export --trust trust.json -o mine.tar',
      ),
    )
    .action(async ({ json, ...options }: Options) => {
      if (options.id !== undefined && options.kind === undefined)
        throw new InvalidArgumentError('--id needs --kind: the kind of the object');
      const trust = options.trust === undefined ? undefined : await readTrust(options.trust);
      // Minutes may lie between the question and the file: what is wrong with its place is said first.
      if (options.wait)
        await assertTarget(options.output ?? `export-${process.pid}.tar`, options.force ? undefined : KEEPS);
      const api = await client();
      if (trust !== undefined) await assertSameLog(api, trust);
      const body = await bodyOf(options, trust);
      const asked = await api.send<Export>('POST', `${AUDIT}/exports`, body, repeatable());
      if (!options.wait) {
        io.out(json ? jsonText(asked) : `${asked.id}\n`);
        io.err(`when it is made: ledgerctl audit fetch ${asked.id}\n`);
        return;
      }
      const target = options.output ?? `${asked.id}.tar`;
      const made = await untilMade(api, asked, { target, waitForSeconds: options.waitFor, io });
      await fetched(api, made, target, io, options.trust);
      if (json) io.out(jsonText(made));
    });
};

/** An export of another log would be made, fetched, and then be wrong in every line. */
const assertSameLog = async (api: ApiClient, { origin }: Trust): Promise<void> => {
  const here = await api.get<Trust>(`${AUDIT}/trust.json?newest=true`);
  if (here.origin !== origin)
    throw new CliFailure(
      EXIT.usage,
      `--trust: the file is for ${origin}, this service keeps ${here.origin}: give the file of this service ` +
        '(ledgerctl audit trust), or the address of the other one (--url)',
    );
};

const bodyOf = async (options: Omit<Options, 'json'>, trust: Trust | undefined): Promise<object> => {
  const { tenant, format, from, to, subject, kind, id, type, outcome } = options;
  const pin = trust === undefined ? undefined : await pinnedSize(trust);
  const filter = { subject, kind, resource_id: id, outcome, ...(type.length === 0 ? {} : { types: type }) };
  return {
    tenant,
    format,
    from,
    to,
    filter,
    ...(pin === undefined ? {} : { pins: [pin] }),
  };
};

/** @param trust the file with what the auditor trusts, where it is known. */
const fetched = async (
  api: ApiClient,
  found: Export,
  target: string,
  io: CliIo,
  trust?: string,
): Promise<void> => {
  const { id, state, file, bytes, sha256, events, reason } = found;
  if (state === 'waiting' || state === 'running')
    throw new CliFailure(EXIT.unavailable, `export ${id} is not made yet: it is ${state}; try again later`);
  if (state !== 'complete' || file === undefined || bytes === undefined || sha256 === undefined)
    throw new CliFailure(EXIT.failed, `export ${id} is ${state}${reason === undefined ? '' : `: ${reason}`}`);
  try {
    await download(api, file, target, { bytes, sha256 });
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    throw new CliFailure(
      error.status,
      `${error.message}\nthe export is made and stays with the service: ledgerctl audit fetch ${id} -o ${target} goes on`,
      { cause: error.cause },
    );
  }
  const how =
    trust === undefined
      ? ', with --trust and your trust.json where you have one (ledgerctl audit trust)'
      : ` --trust ${trust}`;
  io.err(
    `${target}: ${counted(events ?? 0, 'event')}, ${counted(bytes, 'byte')}; check it with ledgerctl audit verify ${target}${how}\n`,
  );
};
