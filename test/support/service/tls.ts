import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { get } from 'node:https';
import { runMain } from './run-main.ts';
import { createStack, type Stack } from './stack.ts';
import { eventually } from '../eventually.ts';

/** A service that speaks TLS with a certificate of `ledgerctl dev-cert`. */
export type SecureStack = {
  readonly stack: Stack;
  /** PEM file of the authority, and what it holds. */
  readonly authority: string;
  readonly ca: string;
  /** `host:port` of the gRPC listener. */
  readonly grpc: string;
};

export const startSecureStack = async (
  settings: Readonly<Record<string, string>> = {},
): Promise<SecureStack> => {
  const stack = await createStack('sqlite', { LEDGER_GRPC_ADDRESS: '127.0.0.1:0', ...settings });
  const folder = join(stack.dataDir, '../tls');
  const made = await runMain(['dev-cert', '--out', folder]);
  if (made.code !== 0) throw new Error(made.err);
  const files = {
    LEDGER_TLS_CERT_FILE: join(folder, 'tls.crt'),
    LEDGER_TLS_KEY_FILE: join(folder, 'tls.key'),
  };
  const service = await stack.start(files, { until: 'listening' });
  const authority = join(folder, 'ca.crt');
  const ca = readFileSync(authority, 'utf8');
  await eventually(
    'the service is ready',
    async () => (await statusOf(`${service.http}/readyz`, ca)) === 200,
  );
  return { stack, authority, ca, grpc: service.grpc ?? '' };
};

const statusOf = (url: string, ca: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(url, { ca }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).once('error', reject);
  });

/** Runs a program to its end; what it printed, and how it ended. */
export const runProgram = async (
  [program = '', ...argv]: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> => {
  const child = spawn(program, argv, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, out, err };
};
