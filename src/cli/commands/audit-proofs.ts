import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import { queryText, type ApiClient } from '../api-client.ts';
import { proofText } from '../audit/proof-text.ts';
import { assertTarget } from '../audit/target.ts';
import { heldTrust, readTrust, trustIn, writeTrust } from '../audit/trust-file.ts';
import type { CliIo, Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { EXIT } from '../exit.ts';
import { fileFailure } from '../file-errors.ts';
import { counted } from '../output.ts';
import { AUDIT } from './audit-events.ts';

/** Milliseconds after which somebody wonders: who is refused, or finds no service, is told so before that. */
const WONDERED_MS = 2_000;

/** Says what it waits for, where it waits at all. */
const saying = async <T>(io: CliIo, text: string, answer: Promise<T>): Promise<T> => {
  const timer = setTimeout(() => io.err(text), WONDERED_MS);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
};

/** What a service shows in place of what is held; in words what became of that. Throws CliFailure when it must not be. */
const replacing = async (api: ApiClient, held: Trust, shown: Trust, file: string): Promise<string> => {
  // Loaded when it is needed: every other command would load it for nothing.
  const { assertReplaces } = await import('../audit/trust-replacing.ts');
  const { betweenOf } = await import('../audit/head-service.ts');
  return assertReplaces(held, shown, file, betweenOf(api, AUDIT));
};

type ConsistencyOptions = {
  readonly from: string;
  readonly to: string;
  readonly output?: string;
  readonly force: boolean;
};

/** `ledgerctl audit proof|consistency|trust`: that an event is in the signed history, and what to keep for later. */
export const addAuditProofCommands = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('proof')
    .description('fetch the proof of one event, and check it here')
    .argument('<event>', 'id of the event, or <stream>@<revision>')
    .option('--trust <file>', 'your trust.json (default: the keys that the service names)')
    .option('--json', 'print the proof as it came, after checking it', false)
    .addHelpText('after', examples('audit proof cluster-readme-1@0 --trust trust.json'))
    .action(async (event: string, options: { trust?: string; json: boolean }) => {
      const trust = options.trust === undefined ? undefined : await readTrust(options.trust);
      const api = await client();
      // Loaded when it is needed: every other command would load it for nothing.
      const { checkEventProof, readEventProof } = await import('../audit/event-proof.ts');
      const { headAskedOf } = await import('../audit/head-service.ts');
      const proof = readEventProof(
        await api.get<unknown>(`${AUDIT}/events/${encodeURIComponent(event)}/proof`),
      );
      const report = await checkEventProof(proof, {
        ...(await headAskedOf(api, AUDIT)),
        trust,
        asked: event,
      });
      const text = proofText(proof, report, trust !== undefined);
      if (options.json) io.out(`${JSON.stringify(proof, null, 2)}\n`);
      else io.out(text);
      if (options.json && !report.ok) io.err(text);
      if (!report.ok) process.exitCode = EXIT.failed;
    });
  audit
    .command('consistency')
    .description(
      'the proof that the log of one size continues that of another: for audit verify --consistency',
    )
    .requiredOption('--from <size>', 'the smaller size, for example of the export')
    .requiredOption('--to <size>', 'the larger size, for example of your pin')
    .option('-o, --output <file>', 'output file (default: printed)')
    .option('--force', 'replace a file that is there', false)
    .addHelpText('after', examples('audit consistency --from 1200 --to 3400 -o proof.json'))
    .action(async ({ from, to, output, force }: ConsistencyOptions) => {
      if (output !== undefined)
        await assertTarget(output, force ? undefined : 'another name keeps both, --force replaces it');
      const proof = await (await client()).get<object>(`${AUDIT}/consistency${queryText({ from, to })}`);
      const text = `${JSON.stringify(proof, null, 2)}\n`;
      if (output === undefined) {
        io.out(text);
        return;
      }
      await writeFile(output, text).catch((error: unknown) => {
        throw fileFailure(error, `cannot write ${output}`, EXIT.failed);
      });
      io.err(
        `${output} holds what is to lead from size ${from} to size ${to}: audit verify --consistency checks it\n`,
      );
    });
  audit
    .command('trust')
    .description(
      'the keys of the log and a signed head over all that is recorded by now: keep the file, later exports are held against it',
    )
    .option('-o, --output <file>', 'output file (default: printed)')
    .option('--force', 'replace a file that is there, unless it shows that this is another history', false)
    .addHelpText('after', examples('audit trust -o trust.json'))
    .action(async ({ output, force }: { output?: string; force: boolean }) => {
      if (output !== undefined)
        await assertTarget(
          output,
          force
            ? undefined
            : `your trust hangs on this file: \`audit verify --trust ${output} --update-pin\` moves its pin on, another ` +
                'name keeps both, --force replaces it',
        );
      const api = await client();
      const trust = await trustIn(
        await saying(
          io,
          'waiting until what is recorded by now is signed: 10 seconds at most, as a rule\n',
          api.get<unknown>(`${AUDIT}/trust.json`),
        ),
      );
      if (output === undefined) {
        io.out(`${JSON.stringify(trust, null, 2)}\n`);
        return;
      }
      const held = force ? await heldTrust(output) : undefined;
      const said = held === undefined ? undefined : await replacing(api, held, trust, output);
      await writeTrust(output, trust);
      io.err(
        `${output} holds ${counted(trust.keys.length, 'key')} of ${trust.origin}` +
          `${said === undefined ? '' : `; ${said}`}\n`,
      );
    });
};
