import type { Command } from 'commander';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { duration } from '../output.ts';

/** `GET /api/ledger/v1/audit/tree`. */
type Tree = {
  readonly origin: string;
  readonly state: string;
  readonly error?: string;
  readonly signed_size: number;
  readonly unsigned_leaves: number;
  readonly head_age_seconds: number;
  readonly keys: readonly { readonly vkey: string; readonly since: string }[];
};

/** `ledgerctl audit tree` and `rotate-key`: the signed tree over the log, for whoever runs the service. */
export const addAuditTreeCommands = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('tree')
    .description(
      'how far the signed heads of the tree over the log are; exit 1 when it is not what was signed',
    )
    .addHelpText('after', examples('audit tree'))
    .action(async () => {
      const tree = await (await client()).get<Tree>('/api/ledger/v1/audit/tree');
      io.out(
        `${tree.origin}: ${tree.state}\n` +
          `signed: ${tree.signed_size} events, ${duration(tree.head_age_seconds)} ago; ` +
          `not signed yet: ${tree.unsigned_leaves}\n` +
          tree.keys.map(({ vkey, since }) => `key ${vkey} since ${since}\n`).join(''),
      );
      if (tree.state === 'mismatch') throw new CliFailure(EXIT.failed, tree.error ?? tree.state);
      if (tree.error !== undefined) io.err(`${tree.error}\n`);
    });
  audit
    .command('rotate-key')
    .description('replace the key that signs tree heads: the old one announces the new one, and is destroyed')
    .option('--lost', 'the present key is gone for good: begin with one that nothing announces', false)
    .addHelpText('after', examples('audit rotate-key'))
    .action(async ({ lost }: { lost: boolean }) => {
      const body = lost ? { lost } : {};
      const key = await (await client()).send<{ vkey: string }>('POST', '/api/ledger/v1/audit/keys', body);
      io.out(`${key.vkey}\n`);
    });
};
