import { stat } from 'node:fs/promises';
import { InvalidArgumentError, type Command } from 'commander';
import { findingText, type Finding } from '../../app/audit/bundle/findings.ts';
import type { BundleReport } from '../../app/audit/bundle/verify.ts';
import type { StoreReport } from '../../app/audit/bundle/verify-store.ts';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import { readConsistency, readTrust, writeTrust } from '../audit/trust-file.ts';
import type { CliActions, CliIo } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { fileFailure } from '../file-errors.ts';
import { counted, printable } from '../output.ts';

type Options = {
  readonly store?: string;
  readonly trust?: string;
  readonly updatePin: boolean;
  readonly consistency?: string;
  readonly json: boolean;
};

/** Checks an export bundle, or a stopped store, without a service and without network. */
export const addAuditVerifyCommand = (audit: Command, io: CliIo, actions: CliActions): void => {
  audit
    .command('verify')
    .description('check an export bundle, or a stopped store, without a service and without network')
    .argument('[bundle]', 'directory or tar of an export')
    .option('--store <directory>', 'data directory of a stopped embedded store, or a backup of one, instead')
    .option(
      '--trust <file>',
      'your trust.json: keys and pin that you trust (default: those of the bundle itself)',
    )
    .option(
      '--update-pin',
      'with --trust: when nothing is wrong, pin the checkpoint of the bundle there',
      false,
    )
    .option(
      '--consistency <file>',
      'of an export that is older than your pin: the proof from its size to that of the pin (audit consistency)',
    )
    .option('--json', 'print the report as JSON', false)
    .addHelpText(
      'after',
      examples(
        'audit verify acme-2026.tar --trust trust.json',
        'audit verify acme-2026.tar --trust trust.json --update-pin',
        'audit verify --store ./data --trust trust.json',
      ),
    )
    .action(async (bundle: string | undefined, options: Options) => {
      if ((bundle === undefined) === (options.store === undefined))
        throw new InvalidArgumentError('give a bundle, or --store and the data directory of a stopped store');
      if (options.updatePin && (options.trust === undefined || bundle === undefined))
        throw new InvalidArgumentError(
          '--update-pin writes to the file of --trust, with what a bundle showed',
        );
      if (options.consistency !== undefined && (options.trust === undefined || bundle === undefined))
        throw new InvalidArgumentError('--consistency leads from a bundle to the pin of --trust: give both');
      const trust = options.trust === undefined ? undefined : await readTrust(options.trust);
      const ok =
        bundle === undefined
          ? await ofStore(options.store ?? '', trust, options, io, actions)
          : await ofBundle(bundle, trust, options, io);
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
  io.out(json ? `${JSON.stringify(report, null, 2)}\n` : bundleText(report));
  if (updatePin && file !== undefined && report.trust !== undefined) {
    await writeTrust(file, report.trust);
    io.err(`${file} now pins size ${report.checkpoint?.size}\n`);
  }
  if (updatePin && report.pin === 'leads to')
    io.err(`${file} still pins size ${report.pinSize}, which is behind this export\n`);
  return report.ok;
};

const ofStore = async (
  path: string,
  trust: Trust | undefined,
  { json }: Options,
  io: CliIo,
  actions: CliActions,
): Promise<boolean> => {
  const found = await stat(path).catch((error: unknown) => {
    throw fileFailure(error, `--store: cannot read ${path}`);
  });
  const which = found.isDirectory() ? { dataDir: path } : { file: path };
  // First: it refuses a store that a service writes to.
  const report = await actions.verifyStore(which, trust);
  const file = await actions.checkStore(which);
  if (json) io.out(`${JSON.stringify({ ...report, file: file.findings }, null, 2)}\n`);
  else io.out(storeText(report, file.findings, trust));
  return report.ok && file.findings.length === 0;
};

const findingLines = (findings: readonly Finding[], count: number): string[] => [
  ...findings.map((finding) => `wrong: ${printable(findingText(finding))}`),
  ...(count > findings.length ? [`… and ${count - findings.length} more`] : []),
];

const bundleText = (report: BundleReport): string => {
  const { counts, range, checkpoint } = report;
  const lines = findingLines(report.findings, report.count);
  if (range !== undefined)
    lines.push(
      `export of ${printable(report.scope)}, sizes ${range.from} to ${range.to} of ${report.treeSize}: ${counted(counts.events, 'event')} ` +
        `(${counts.full} in full, ${counts.redacted} redacted, ${counts.withheld} withheld)`,
    );
  lines.push(...rangeText(report));
  if (checkpoint !== undefined) lines.push(`signed at size ${checkpoint.size}, ${checkpoint.time}`);
  lines.push(KEYS[report.keys], pinText(report));
  if (!report.ok) return ending(lines, report.count);
  lines.push('proven:', ...report.proven.map((text) => `  ${printable(text)}`));
  lines.push('not proven:', ...report.notProven.map((text) => `  ${text}`));
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

/** Beside the verdict: redacted events whose leaf is older than the release that proves their visible part. */
const redactedText = ({ counts: { redacted }, redactedProven }: BundleReport): string[] =>
  redacted === 0
    ? []
    : [`redacted: ${redacted} events, all that is shown is proven of ${redactedProven} of them`];

/** Beside the verdict: of what is withheld nothing is known but that it is there. */
const withheldText = ({ counts, withheldBy }: BundleReport): string =>
  counts.withheld === 0
    ? 'withheld: nothing'
    : `withheld: ${counts.withheld} of ${counted(counts.events, 'event')}, by the service's word ${withheldBy.filter} left out by the ` +
      `filter, ${withheldBy.audience} not for this reader`;

const KEYS = {
  pinned: 'keys: yours',
  'from the bundle':
    'keys: those that came with the bundle: this shows that it fits together, not who made it (--trust)',
} as const;

const pinText = (report: BundleReport): string => {
  const { pin, pinSize, checkpoint } = report;
  switch (pin) {
    case 'none':
      return 'pin: none: a history that was rewritten as a whole would not be noticed (--trust)';
    case 'continued':
      return 'pin: continued';
    case 'leads to':
      return `pin: the export ends before your pin, which continues it (size ${checkpoint?.size} < ${pinSize})`;
    case 'ends before':
      return `pin: the export ends before your pin (size ${checkpoint?.size} < ${pinSize})`;
    case 'not shown':
      return `pin: not shown: the export does not prove that it continues your pin of size ${pinSize}`;
    case 'not checked':
      return `pin: not checked (${whyUnchecked(report)}, see above)`;
    case 'broken':
      return 'pin: BROKEN: this is not the history that you pinned';
  }
};

const whyUnchecked = ({ findings, pinSize, checkpoint }: BundleReport): string => {
  const of = (...codes: readonly Finding['code'][]): boolean =>
    findings.some(({ code }) => codes.includes(code));
  if (of('origin')) return 'the files are of another log';
  if (pinSize === undefined && of('pin')) return 'the pin cannot be used';
  if (checkpoint === undefined && of('checkpoint')) return 'the signed head does not count';
  return 'the files are damaged';
};

const storeText = (report: StoreReport, file: readonly string[], trust: Trust | undefined): string => {
  const pinned = trust?.pin !== undefined && report.findings.every(({ code }) => code !== 'pin');
  const lines = [
    ...file.map((finding) => `wrong: ${printable(finding)}`),
    ...findingLines(report.findings, report.count),
    `${counted(report.events, 'event')}, ${report.leaves} of them in the audit tree; compared with ${counted(report.heads, 'signed head')}${pinned ? ' and your pin' : ''}`,
    report.keys === 'pinned'
      ? KEYS.pinned
      : 'keys: those that the store names: whoever can rewrite it can name others (--trust)',
  ];
  lines.push(...report.remarks.map((remark) => `remark: ${printable(remark)}`));
  const unsigned = report.leaves - report.signed;
  if (unsigned > 0 && report.ok)
    lines.push(
      `the last ${counted(unsigned, 'event')} ${unsigned === 1 ? 'is' : 'are'} not signed yet: nothing is proven of ${unsigned === 1 ? 'it' : 'them'}`,
    );
  return ending(lines, report.count + file.length);
};

const ending = (lines: readonly string[], count: number): string =>
  `${lines.join('\n')}\n${count === 0 ? 'nothing wrong' : counted(count, 'finding')}\n`;
