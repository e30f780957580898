import { join } from 'node:path';
import { checkSqliteLog, checkSqliteStore } from '../../../src/adapters/event-store/sqlite/check-store.ts';
import { mintToken } from '../../../src/adapters/identity/development-issuer.ts';
import type { CliActions, CliIo } from '../../../src/cli/connection.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';
import type { Run } from './run-main.ts';
import type { Stack } from './stack.ts';

const ofAProcess = (): Promise<never> =>
  Promise.reject(new Error('for this command start a process: runMain of run-main.ts'));

/**
 * `ledgerctl` against the running service of a stack, but in this process: the same commands, output and exit statuses
 * without the half second that a start of node costs each time. What only a process has (its start, signals, pipes,
 * environment) is for `runMain`. One at a time: a command tells its status by `process.exitCode`.
 */
export const ledgerctlOn =
  (stack: Pick<Stack, 'dataDir' | 'http'>) =>
  async (...argv: readonly string[]): Promise<Run> => {
    const actions: CliActions = {
      serve: ofAProcess,
      demo: ofAProcess,
      verifyStore: ofAProcess,
      showEvent: ofAProcess,
      restoreStore: ofAProcess,
      mintToken: (request) => mintToken(join(stack.dataDir, 'secrets'), { ...request, now: Date.now() }),
      checkStore: async (which) => {
        const { events, findings } = await ('file' in which
          ? checkSqliteLog(which.file)
          : checkSqliteStore(which.dataDir));
        return { events, findings: findings.map((finding) => Object.values(finding).join(': ')) };
      },
      defaultDataDir: stack.dataDir,
      eventStore: 'sqlite',
      version: '0',
    };
    let out = '';
    let err = '';
    const io: CliIo = { out: (text) => (out += text), err: (text) => (err += text) };
    const { exitCode } = process;
    process.exitCode = undefined;
    try {
      const code = await runCli(await createCli(actions, io), ['--url', stack.http(), ...argv], io);
      return { code, out, err };
    } finally {
      process.exitCode = exitCode;
    }
  };
