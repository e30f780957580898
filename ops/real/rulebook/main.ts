import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { rulebookEnvironment } from './environment.ts';
import { startRealRulebook } from './server.ts';

/**
 * `node ops/real/rulebook/main.ts`: a real ansible-rulebook on loopback with our rulebook until SIGINT or SIGTERM. Prints
 * one JSON line `{url, token, hmacSecret, given}`; `given` is the folder in which its playbooks leave what they get.
 */
const given = mkdtempSync(join(tmpdir(), 'ledger-given-'));
const token = process.env['RULEBOOK_TOKEN'] ?? randomBytes(16).toString('hex');
const hmacSecret = process.env['RULEBOOK_HMAC_SECRET'] ?? randomBytes(16).toString('hex');
const rulebook = await startRealRulebook({
  environment: rulebookEnvironment((line) => process.stderr.write(`${line}\n`)),
  token,
  hmacSecret,
  env: { GIVEN_FOLDER: given },
});
// Signals alone do not run what is to be done at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void rulebook.close().finally(() => process.exit(0));
  });
}
process.stdout.write(`${JSON.stringify({ url: rulebook.url, token, hmacSecret, given })}\n`);
setInterval(() => undefined, 60_000);
