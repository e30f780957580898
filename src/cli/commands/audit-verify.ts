import { stat } from 'node:fs/promises';
import { InvalidArgumentError, type Command } from 'commander';
import type { BundleReport } from '../../app/audit/bundle/verify.ts';
import type { StoreReport } from '../../app/audit/bundle/verify-store.ts';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import type { JsonObject } from '../../domain/json.ts';
import { filterOf, filterText, notProvenOf, periodText } from '../audit/filter-text.ts';
import { ending, findingLines, KEYS, pinText, remarkLines } from '../audit/report-text.ts';
import { tilesText } from '../audit/tiles-text.ts';
import { readConsistency, readTrust, writeTrust } from '../audit/trust-file.ts';
import type { CliActions, CliIo } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { fileFailure } from '../file-errors.ts';
import { counted, printable } from '../output.ts';
import { assertStorePath } from '../store-path.ts';

type Options = {
  readonly store?: string;
  readonly tiles?: string;
  readonly trust?: string;
  readonly updatePin: boolean;
  readonly consistency?: string;
  readonly json: boolean;
};

/** Checks an export bundle, a mirror of the tiles, or a stopped store, without a service and without network. */
export const addAuditVerifyCommand = (audit: Command, io: CliIo, actions: CliActions): void => {
  audit
    .command('verify')
    .description(
      'check an export bundle, a mirror of the tiles, or a stopped store, without a service and without network',
    )
    .argument('[bundle]', 'directory or tar of an export')
    .option('--store <directory>', 'data directory of a stopped embedded store, or a backup of one, instead')
    .option('--tiles <directory>', 'tiles and signed head of the log (audit mirror), instead')
    .option(
      '--trust <file>',
      'your trust.json: keys and pin that you trust (default: the keys that lie in what is checked)',
    )
    .option(
      '--update-pin',
      'with --trust: when nothing is wrong, pin the checkpoint of the bundle there',
      false,
    )
    .option(
      '--consistency <file>',
      'proof between the size of your pin and that of an export or of tiles which do not show it, or are older than the pin ' +
        '(audit consistency)',
    )
    .option('--json', 'print the report as JSON', false)
    .addHelpText(
      'after',
      examples(
        'audit verify acme-2026.tar --trust trust.json',
        'audit verify acme-2026.tar --trust trust.json --update-pin',
        'audit verify --tiles ./mirror --trust trust.json',
        'audit verify --store ./data --trust trust.json',
      ),
    )
    .action(async (bundle: string | undefined, options: Options) => {
      if ([bundle, options.store, options.tiles].filter((given) => given !== undefined).length !== 1)
        throw new InvalidArgumentError(
          'give a bundle, or --store and the data directory of a stopped store, or --tiles and the directory of a mirror',
        );
      if (options.updatePin && options.tiles !== undefined)
        throw new InvalidArgumentError(
          '--update-pin: tiles do not show the trees of the tenants, which your pin vouches for, too; move it on with an export',
        );
      if (options.updatePin && (options.trust === undefined || bundle === undefined))
        throw new InvalidArgumentError(
          '--update-pin writes to the file of --trust, with what a bundle showed',
        );
      if (
        options.consistency !== undefined &&
        (options.trust === undefined || (bundle === undefined && options.tiles === undefined))
      )
        throw new InvalidArgumentError(
          '--consistency leads from a bundle, or from tiles, to the pin of --trust: give both',
        );
      const trust = options.trust === undefined ? undefined : await readTrust(options.trust);
      const ok =
        bundle !== undefined
          ? await ofBundle(bundle, trust, options, io)
          : options.tiles !== undefined
            ? await ofTiles(options.tiles, trust, options, io)
            : await ofStore(options.store ?? '', trust, options, io, actions);
      if (!ok) process.exitCode = EXIT.failed;
    });
};

const ofBundle = async (
  path: string,
  trust: Trust | undefined,
  { trust: file, updatePin, consistency, json }: Options,
  io: CliIo,
): Promise<boolean> => {
  // Loaded when it is needed: every other command, and the service, would load it for nothing.
  const { openBundle } = await import('../audit/bundle-source.ts');
  const { verifyBundle } = await import('../../app/audit/bundle/verify.ts');
  const source = await openBundle(path).catch((error: unknown) => {
    throw fileFailure(error, `cannot read ${path}`);
  });
  const later = consistency === undefined ? undefined : await readConsistency(consistency);
  const report = await verifyBundle(source, {
    ...(trust === undefined ? {} : { trust }),
    ...(later === undefined ? {} : { later }),
  });
  const other = report.findings.find(({ code }) => code === 'not-a-bundle');
  if (other !== undefined) throw new CliFailure(EXIT.usage, `${path}: ${other.message}`);
  if (json) io.out(`${JSON.stringify(report, null, 2)}\n`);
  else io.out(bundleText(report, report.ok ? await filterOf(source) : undefined));
  if (updatePin && file !== undefined && report.trust !== undefined) {
    await writeTrust(file, report.trust);
    io.err(`${file} now pins size ${report.checkpoint?.size}\n`);
  }
  if (updatePin && report.pin === 'leads to')
    io.err(`${file} still pins size ${report.pinSize}, which is behind this export\n`);
  return report.ok;
};

const ofTiles = async (
  path: string,
  trust: Trust | undefined,
  { consistency, json }: Options,
  io: CliIo,
): Promise<boolean> => {
  // Loaded when it is needed: see `ofBundle`.
  const { mirrorAt, tileDirectory } = await import('../audit/tile-directory.ts');
  const { KEYS_FILE, keysIn, verifyTileLog } = await import('../../app/audit/bundle/tile-log.ts');
  if ((await mirrorAt(path)) !== 'mirror')
    throw new CliFailure(
      EXIT.usage,
      `${path} holds no tiles: \`ledgerctl audit mirror ${path}\` fetches them`,
    );
  const { read, holds } = tileDirectory(path);
  const text = async (name: string): Promise<string | undefined> => {
    const bytes = await read(name);
    return bytes === undefined ? undefined : Buffer.from(bytes).toString('utf8');
  };
  const later = consistency === undefined ? undefined : await readConsistency(consistency);
  const keys = await text(KEYS_FILE);
  const log = {
    note: await text('checkpoint'),
    keys: keys === undefined ? undefined : keysIn(keys),
    read,
    holds,
  };
  const report = await verifyTileLog(log, {
    ...(trust === undefined ? {} : { trust }),
    ...(later === undefined ? {} : { later }),
  });
  io.out(json ? `${JSON.stringify(report, null, 2)}\n` : tilesText(report));
  return report.ok;
};

const ofStore = async (
  path: string,
  trust: Trust | undefined,
  { json }: Options,
  io: CliIo,
  actions: CliActions,
): Promise<boolean> => {
  await assertStorePath(path, '--store');
  const which = (await stat(path)).isDirectory() ? { dataDir: path } : { file: path };
  // First: it refuses a store that a service writes to.
  const report = await actions.verifyStore(which, trust);
  const file = await actions.checkStore(which);
  if (json) io.out(`${JSON.stringify({ ...report, file: file.findings }, null, 2)}\n`);
  else io.out(storeText(report, file.findings, trust));
  return report.ok && file.findings.length === 0;
};

const bundleText = (report: BundleReport, filter: JsonObject | undefined): string => {
  const { counts, range, checkpoint } = report;
  const lines = findingLines(report.findings, report.count);
  if (range !== undefined)
    lines.push(
      `export of ${printable(report.scope)}, sizes ${range.from} to ${range.to} of ${report.treeSize}: ${counted(counts.events, 'event')} ` +
        `(${counts.full} in full, ${counts.redacted} redacted, ${counts.withheld} withheld)`,
    );
  lines.push(...rangeText(report));
  if (report.ok) lines.push(...periodText(report.period));
  lines.push(...filterText(filter));
  if (checkpoint !== undefined) lines.push(`signed at size ${checkpoint.size}, ${checkpoint.time}`);
  lines.push(KEYS[report.keys], pinText(report));
  lines.push(...remarkLines(report));
  if (!report.ok) return ending(lines, report.count);
  lines.push('proven:', ...report.proven.map((text) => `  ${printable(text)}`));
  lines.push('not proven:', ...notProvenOf(report, filter).map((text) => `  ${text}`));
  lines.push(...redactedText(report), withheldText(report));
  return ending(lines, 0);
};

/** The range is the exporter's choice: what lies outside of it is said, and when its events happened. */
const rangeText = ({ range, treeSize, occurred }: BundleReport): string[] => {
  if (range === undefined || treeSize === undefined) return [];
  const begins =
    range.from === 0 ? 'from the beginning' : `without the ${counted(range.from, 'event')} before`;
  const ends =
    range.to === treeSize
      ? 'to the signed head'
      : `without the last ${counted(treeSize - range.to, 'event')}`;
  const times = occurred.first === '' ? [] : [`events shown: ${occurred.first} to ${occurred.last}`];
  return [`${begins}, ${ends}`, ...times.map(printable)];
};

/** Beside the verdict: of redacted events, those whose leaf proves what is shown of them. */
const redactedText = ({ counts: { redacted }, redactedProven }: BundleReport): string[] =>
  redacted === 0
    ? []
    : [
        `redacted: ${counted(redacted, 'event')}, all that is shown is proven of ${redactedProven === 0 ? 'none' : redactedProven} of them`,
      ];

/** Beside the verdict: of what is withheld nothing is known but that it is there. */
const withheldText = ({ counts, withheldBy }: BundleReport): string =>
  counts.withheld === 0
    ? 'withheld: nothing'
    : `withheld: ${counts.withheld} of ${counted(counts.events, 'event')}, by the service's word ${withheldBy.filter} left out by the ` +
      `filter, ${withheldBy.audience} not for this reader`;

const readText = ({ events, leaves, heads, signed, ended }: StoreReport, pinned: boolean): string => {
  const tree = `${leaves} of them in the audit tree`;
  if (ended !== true)
    return `${counted(events, 'event')}, ${tree}; compared with ${counted(heads, 'signed head')}${pinned ? ' and your pin' : ''}`;
  const compared =
    signed === 0 ? 'compared with no signed head' : `compared with the signed heads up to size ${signed}`;
  return `${counted(events, 'event')} could be read, ${tree}: reading ended there, and nothing behind it was looked at; ${compared}`;
};

const storeText = (report: StoreReport, file: readonly string[], trust: Trust | undefined): string => {
  const pinned = trust?.pin !== undefined && report.findings.every(({ code }) => code !== 'pin');
  const lines = [
    ...file.map((finding) => `wrong: ${printable(finding)}`),
    ...findingLines(report.findings, report.count),
    readText(report, pinned),
    report.keys === 'pinned'
      ? KEYS.pinned
      : 'keys: those that the store names; an attacker who can rewrite the store can name others (--trust)',
  ];
  if (report.tiles !== undefined)
    lines.push(`compared with the tree beside it that the service serves: ${counted(report.tiles, 'tile')}`);
  lines.push(...remarkLines(report));
  const unsigned = report.leaves - report.signed;
  if (unsigned > 0 && report.ok)
    lines.push(
      `the last ${counted(unsigned, 'event')} ${unsigned === 1 ? 'is' : 'are'} not signed yet: nothing is proven of ${unsigned === 1 ? 'it' : 'them'}`,
    );
  return ending(lines, report.count + file.length);
};
