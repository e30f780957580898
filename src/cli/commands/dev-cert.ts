import { existsSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { CliIo } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';

const HOSTS = ['localhost', '127.0.0.1', '::1'];
/** Days that a certificate for development holds. */
const DAYS = 365;
const DAY_MS = 86_400_000;

/** Owner only: who has the key speaks for the service. */
const KEY_MODE = 0o600;
const CERT_MODE = 0o644;

/** `ledgerctl dev-cert`: TLS on a machine of one's own, for clients that send a token over TLS alone. */
export const addDevCertCommand = (program: Command, io: CliIo): void => {
  program
    .command('dev-cert')
    .description('write a certificate for loopback, and the authority that clients have to trust for it')
    .option('--out <folder>', 'directory for ca.crt, tls.crt and tls.key', 'dev-cert')
    .option('--force', 'overwrite them', false)
    .addHelpText('after', examples('dev-cert', 'dev-cert --out /etc/ledger/tls --force'))
    .addHelpText(
      'after',
      `\nThe certificate is for ${HOSTS.join(', ')} and holds ${DAYS} days. The key of the authority is not written:\n` +
        'nobody can sign a second certificate with it. Development only.',
    )
    .action(async ({ out, force }: { out: string; force: boolean }) => {
      const [ca, cert, key] = ['ca.crt', 'tls.crt', 'tls.key'].map((name) => join(out, name)) as [
        string,
        string,
        string,
      ];
      const there = [ca, cert, key].filter((file) => existsSync(file));
      if (there.length > 0 && !force)
        throw new CliFailure(EXIT.usage, `${there.join(', ')}: there already; --force overwrites`);
      const made = await loopbackCertificate(new Date());
      await mkdir(out, { recursive: true });
      await write(key, made.key, KEY_MODE);
      await write(cert, made.cert, CERT_MODE);
      await write(ca, made.ca, CERT_MODE);
      io.out(
        `wrote ${ca}, ${cert}, ${key}: for ${HOSTS.join(', ')}, until ${made.until.toISOString()}\n` +
          `serve with it:  LEDGER_TLS_CERT_FILE=${cert} LEDGER_TLS_KEY_FILE=${key} npm start\n` +
          `trust it:       LEDGERCTL_SERVICE_CA=${ca} LEDGERCTL_URL=https://127.0.0.1:8001 npx ledgerctl get clusters\n`,
      );
    });
};

/** The mode of a file that is overwritten, too. */
const write = async (file: string, text: string, mode: number): Promise<void> => {
  await writeFile(file, '', { mode });
  await chmod(file, mode);
  await writeFile(file, text);
};

const loopbackCertificate = async (now: Date) => {
  const { generate } = await import('selfsigned');
  const until = new Date(now.getTime() + DAYS * DAY_MS);
  const keys = {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(now.getTime() - DAY_MS),
    notAfterDate: until,
  } as const;
  const authority = await generate([{ name: 'commonName', value: 'fulfillment-ledger development' }], {
    ...keys,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  });
  const server = await generate([{ name: 'commonName', value: 'localhost' }], {
    ...keys,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: HOSTS.map((host) =>
          host === 'localhost' ? { type: 2, value: host } : { type: 7, ip: host },
        ),
      },
    ],
  });
  return { ca: authority.cert, cert: server.cert, key: server.private, until };
};
