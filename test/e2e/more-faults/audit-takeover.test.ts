import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { createApiClient } from '../../../src/cli/api-client.ts';
import { startService, type ServiceProcess } from '../../../src/cli/demo/service-process.ts';
import { parseCheckpoint } from '../../../src/app/audit/merkle/checkpoint.ts';
import { rootOf } from '../../../src/app/audit/merkle/compact-range.ts';
import { isLeafStream, leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import { verifyNote } from '../../../src/app/audit/merkle/note.ts';
import { TREE_HEADS_STREAM } from '../../../src/app/audit/tree-heads.ts';
import { readLog } from '../../support/service/stored-log.ts';
import { CLUSTERS, SERVE, createStack, until, untilReady, type Stack } from '../../support/service/stack.ts';

type Tree = {
  readonly state: string;
  readonly failures: number;
  readonly signed_size: number;
  readonly unsigned_leaves: number;
  readonly keys: readonly { readonly vkey: string }[];
};

describe('two instances with the role auditor', function () {
  this.timeout(120_000);
  let stack: Stack;
  let second: ServiceProcess | undefined;
  beforeEach(async () => {
    stack = await createStack('eventstoredb-peer');
  });
  afterEach(async () => {
    await second?.stop('SIGKILL');
    await stack.dispose();
  });

  it('one signs; when it is killed the other goes on with the same key, and no head contradicts another', async () => {
    const roles = { LEDGER_ROLES: 'api,auditor' };
    const first = await stack.start(roles);
    const dataDir = join(stack.dataDir, '../second');
    mkdirSync(dataDir);
    second = await startService({
      command: SERVE,
      environment: {
        ...stack.environment,
        ...roles,
        LEDGER_DATA_DIR: dataDir,
        LEDGER_SECRETS_DIR: join(stack.dataDir, 'secrets'),
      },
    });
    await untilReady(second);
    const token = await stack.token({ admin: true, user: 'root' });
    const [here, there] = [first, second].map(({ http }) => createApiClient(http, token));
    if (here === undefined || there === undefined) throw new Error('there are two services');
    const tree = (client: typeof here): Promise<Tree> => client.get('/api/ledger/v1/audit/tree');
    await until('everything is signed', async () => (await tree(here)).unsigned_leaves === 0);
    expect([(await tree(here)).state, (await tree(there)).state]).to.deep.equal(['signing', 'standby']);
    const before = await tree(there);

    await first.stop('SIGKILL');
    const alice = createApiClient(second.http, await stack.token({ tenant: 'acme', user: 'alice' }));
    await alice.send('POST', CLUSTERS, {
      metadata: { name: 'later' },
      spec: { template: { id: 'osac.templates.ocp_ci_small' } },
    });
    const took = async (): Promise<boolean> => {
      const { signed_size: signed, unsigned_leaves: unsigned } = await tree(there);
      return signed > before.signed_size && unsigned === 0;
    };
    await until('the other one signs what is new', took, 60_000);
    const after = await tree(there);
    expect(after).to.deep.include({ state: 'signing', failures: 0, keys: before.keys });

    const log = await readLog(stack);
    const hashes = log.filter(({ stream }) => isLeafStream(stream)).map((event) => leafHashOf(leafOf(event)));
    const heads = log.filter(({ stream }) => stream === TREE_HEADS_STREAM);
    expect(heads.length).to.be.greaterThan(1);
    for (const { data } of heads) {
      const { text } = verifyNote(
        String(data['note'] as string),
        after.keys.map(({ vkey }) => vkey),
      );
      const { size, root } = parseCheckpoint(text);
      expect(root).to.deep.equal(rootOf(hashes.slice(0, size)));
    }
    expect(new Set(heads.map(({ metadata }) => metadata['instance'])).size).to.equal(2);
  });
});
