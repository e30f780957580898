import { InvalidArgumentError, type Command } from 'commander';
import type { Checkpoint } from '../../http/audit/answers.ts';
import type { AuditTree, NewKey } from '../../http/ledger/audit-tree-operations.ts';
import { queryText } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { JSON_LINES, printList } from '../audit/lists.ts';
import { counted, duration } from '../output.ts';
import { AUDIT } from './audit-events.ts';

/** `ledgerctl audit tree|checkpoints|rotate-key`: the signed tree over the log. */
export const addAuditTreeCommands = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('tree')
    .description(
      'how far the signed heads of the tree over the log are; exit 1 when it is not what was signed (provider admins)',
    )
    .option('--json', 'print it as JSON', false)
    .addHelpText('after', examples('audit tree'))
    .action(async ({ json }: { json: boolean }) => {
      const tree = await (await client()).get<AuditTree>('/api/ledger/v1/audit/tree');
      if (json) io.out(`${JSON.stringify(tree, null, 2)}\n`);
      else
        io.out(
          `${tree.origin}: ${tree.state}\n` +
            `signed: ${counted(tree.signed_size, 'event')}, ${duration(tree.head_age_seconds)} ago; ` +
            `not signed yet: ${unsignedText(tree)}\n` +
            tree.keys.map((key, n) => keyLine(key, n === tree.keys.length - 1)).join(''),
        );
      if (tree.state === 'mismatch') throw new CliFailure(EXIT.failed, tree.error ?? tree.state);
      if (tree.error !== undefined) io.err(`${tree.error}\n`);
    });
  audit
    .command('checkpoints')
    .description('signed heads of the tree: the newest one, or with --after those of more events')
    .option('--after <size>', 'heads over more events than this, smallest first')
    .option('--limit <n>', 'with --after: at most so many (default: 100)')
    .option(...JSON_LINES)
    .addHelpText('after', examples('audit checkpoints', 'audit checkpoints --after 1000 --json'))
    .action(async ({ after, limit, json }: { after?: string; limit?: string; json: boolean }) => {
      if (after === undefined && limit !== undefined)
        throw new InvalidArgumentError(
          '--limit is for heads behind one: give --after, for example --after 0',
        );
      const query = after === undefined ? '' : queryText({ after, limit: limit ?? '100' });
      const api = await client();
      const { items } = await api.get<{ items: readonly Checkpoint[] }>(`${AUDIT}/checkpoints${query}`);
      printList(io, items, json, {
        none: after === undefined ? 'nothing has been signed yet' : `no head is larger than ${after}`,
        header: ['size', 'signed', 'position', 'key', 'root'],
        row: ({ size, time, position, key_id: key, root }) => [size, time, position, key, root],
      });
    });
  audit
    .command('rotate-key')
    .description(
      'replace the key that signs tree heads: the old one announces the new one, and is destroyed; this cannot be undone',
    )
    .option('--lost', 'the present key is gone for good: begin with one that nothing announces', false)
    .requiredOption('--yes', 'confirm')
    .addHelpText('after', examples('audit rotate-key --yes'))
    .action(async ({ lost }: { lost: boolean }) => {
      const body = lost ? { lost } : {};
      const { vkey, announced } = await (await client()).send<NewKey>(
        'POST',
        '/api/ledger/v1/audit/keys',
        body,
      );
      io.out(`${vkey}\n`);
      // One that was called lost, and is there, has announced the new one all the same.
      io.err(`${announced ? NOTHING_TO_DO : TO_TELL}\n`);
    });
};

/** What an instance has not read yet, it cannot count. */
const unsignedText = ({ unsigned_leaves: unsigned, caught_up: caughtUp }: AuditTree): string =>
  caughtUp ? String(unsigned) : `at least ${unsigned} (this instance has not read all of the log)`;

const NOTHING_TO_DO =
  'auditors need to do nothing: the old key announces the new one, and who trusts the old one follows it';
const TO_TELL =
  'nothing announces this key, and auditors refuse it until they trust it: tell them this key by another way than this service';

/** The last key that was added is the one that signs. */
const keyLine = ({ vkey, since }: AuditTree['keys'][number], isLast: boolean): string =>
  `key ${vkey} since ${since}, ${isLast ? 'signs' : 'replaced'}\n`;
