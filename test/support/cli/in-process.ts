import type { CliActions, RawStreams } from '../../../src/cli/connection.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: unused,
  checkStore: unused,
  verifyStore: unused,
  showEvent: unused,
  restoreStore: unused,
  defaultDataDir: 'data',
  eventStore: 'memory',
  version: '1',
};

type Access = { readonly url: string; readonly token: string };

/** `ledgerctl` in this process, on a service: what it said so far, and its exit status once it ended. */
export const startCli = (
  access: Access | Promise<Access>,
  argv: readonly string[],
  stdin = '',
  interrupted?: AbortSignal,
  rawStreams?: RawStreams,
) => {
  const said = { out: '', err: '' };
  const io = {
    out: (text: string) => void (said.out += text),
    err: (text: string) => void (said.err += text),
    stdin: async () => stdin,
    ...(interrupted === undefined ? {} : { interrupted }),
    ...(rawStreams === undefined ? {} : { rawStreams: () => rawStreams }),
  };
  const ended = (async () => {
    const { url, token } = await access;
    return runCli(await createCli(actions, io), ['--url', url, '--token', token, ...argv], io);
  })();
  return { said, ended };
};
