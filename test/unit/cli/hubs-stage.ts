import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCliStub, type Answer, type Asked, type CliStub } from '../../support/cli/stub-service.ts';

export const HUBS = '/api/ledger/v1/hubs';
export const DOCUMENTS = '/api/private/v1/hubs';
export const WELL = { id: 'hub-1', ok: true, problems: [], version: 'v1.36.0', can_read_agents: true };
export const WRONG = {
  id: 'hub-1',
  ok: false,
  problems: [
    { code: 'CrdMissing', message: 'the API server has no kind clusterorders', subject: 'clusterorders' },
    { code: 'RightMissing', message: 'may not create clusterorders in namespace osac-hub' },
  ],
};

/** What the service's own first look found. */
export const LOOKED = { [`GET ${HUBS}/hub-1`]: { id: 'hub-1', health: 'ok', scheduling: 'open' } };

/** What specs of `ledgerctl hubs` start from: to be called in their `describe`. */
export const hubsStage = () => {
  let stub: CliStub;
  const folder = mkdtempSync(join(tmpdir(), 'hubs-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const kubeconfig = file('kubeconfig', 'kind: Config');
  const encoded = Buffer.from('kind: Config').toString('base64');
  const answers = (table: { readonly [call: string]: unknown }): void => {
    stub.asked.length = 0;
    stub.answers(({ verb, path }: Asked): Answer | undefined => {
      const body = table[`${verb} ${path}`];
      return body === undefined ? undefined : { body, headers: { etag: '"hub-3"' } };
    });
  };
  const bodyOf = (call: string): unknown =>
    stub.asked.find(({ verb, path }) => `${verb} ${path}` === call)?.body;

  before(async () => {
    stub = await startCliStub();
  });
  after(() => {
    stub.close();
    rmSync(folder, { recursive: true });
  });

  const ADD = ['hubs', 'add', '--id', 'hub-1', '--kubeconfig', kubeconfig, '--namespace', 'osac-hub'];
  return { stub: () => stub, folder, file, kubeconfig, encoded, answers, bodyOf, ADD };
};
