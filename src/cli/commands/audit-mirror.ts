import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { MirrorReport } from '../../app/audit/bundle/mirror.ts';
import { JSON_ANSWER } from '../audit/lists.ts';
import { tilesText } from '../audit/tiles-text.ts';
import { readTrust } from '../audit/trust-file.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { counted, jsonText } from '../output.ts';
import { AUDIT } from './audit-events.ts';

type Options = { readonly trust?: string; readonly json: boolean };

/** `ledgerctl audit mirror`: the tiles of a running service, checked as they come, and kept. */
export const addAuditMirrorCommand = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('mirror')
    .description(
      'fetch the tiles of the log (C2SP tlog-tiles) into a directory, and check them; tiles in it are not fetched again',
    )
    .argument('<directory>', 'made when it is not there; audit verify --tiles checks it without a service')
    .option(
      '--trust <file>',
      'your trust.json: keys and pin that you trust (default: the keys that the mirror began with)',
    )
    .option(...JSON_ANSWER)
    .addHelpText('after', examples('audit mirror ./mirror --trust trust.json'))
    .action(async (directory: string, { trust: file, json }: Options) => {
      // Loaded when it is needed: every other command, and the service, would load it for nothing.
      const { mirrorAt, tileDirectory } = await import('../audit/tile-directory.ts');
      const { tilesOfService } = await import('../audit/tile-service.ts');
      const { mirrorLog } = await import('../../app/audit/bundle/mirror.ts');
      if ((await mirrorAt(directory)) === 'other')
        throw new CliFailure(
          EXIT.usage,
          `${directory} holds other things than tiles: name a directory that is empty, or not there yet`,
        );
      const trust = file === undefined ? undefined : await readTrust(file);
      const log = await tilesOfService(await client(), AUDIT);
      const report = await mirrorLog(log, tileDirectory(directory), trust === undefined ? {} : { trust });
      io.out(json ? jsonText(report) : tilesText(report, doneText(report, resolve(directory))));
      if (!report.ok) process.exitCode = EXIT.failed;
    });
};

const doneText = (
  { ok, fetched, mended, heldSize, checkpoint }: MirrorReport,
  directory: string,
): string[] => [
  ...mended.map((path) => `mended: ${path} was damaged in the mirror, and was fetched again`),
  `fetched: ${counted(fetched, 'file')}`,
  ok
    ? `${directory} holds the tree of ${counted(checkpoint?.size ?? 0, 'event')}` +
      (heldSize === undefined ? '' : ` (before: ${heldSize})`)
    : `${directory} holds ${heldSize === undefined ? 'no signed head yet' : `the tree of ${counted(heldSize, 'event')} as before`}`,
];
