import { expect } from 'chai';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openDeploymentKeys } from '../../src/adapters/keys/deployment-keys.ts';
import { openFileSecretStore } from '../../src/adapters/secrets/file-secret-store.ts';
import { systemClock } from '../../src/adapters/system/system-ports.ts';
import { createCommandRunner } from '../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../src/app/log/event-codec.ts';
import type { SecretStore } from '../../src/app/ports.ts';
import { createSecretSweeper, createSecretUses } from '../../src/app/secrets/stored-secrets.ts';
import { kinds } from '../../src/domain/kinds.ts';
import { eventTypes } from '../../src/domain/registry.ts';
import { callerOf, type Caller } from '../support/service/caller.ts';
import { readLog } from '../support/service/stored-log.ts';
import { CLUSTERS, E2E_STORE, PRIVATE, createStack, until, type Stack } from '../support/service/stack.ts';

const HOUR = 3_600_000;

/** Found nowhere but sealed in the secret store and on hubs, in any of the encodings of a careless writer. */
const canary = (name: string): string => `canary-${name}-9b41c7d0`;
const NAMES = ['pull-1', 'pull-2', 'note', 'order', 'kube-1', 'kube-2'] as const;
const spellings = (text: string): string[] => [
  text,
  Buffer.from(text).toString('base64').replace(/=+$/, ''),
  Buffer.from(text).toString('hex'),
  encodeURIComponent(text),
];
const b64 = (text: string): string => Buffer.from(text).toString('base64');
const pullSecret = (name: string): string =>
  JSON.stringify({
    auths: { 'registry.example': { auth: b64(`user:${canary(name)}`), email: canary(name) } },
  });
const kubeconfig = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://hub.invalid:6443' } }],
    users: [{ name: 'u', user: { token: canary(name) } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });

for (const store of [E2E_STORE]) {
  describe(`the values of secrets (${store})`, function () {
    this.timeout(180_000);
    let stack: Stack;
    let root: Caller;
    let alice: Caller;
    let answers = '';

    before(async () => {
      stack = await createStack(store);
      await stack.start({ LEDGER_LOG_LEVEL: 'trace' });
      root = await callerOf(stack, { admin: true, user: 'root' });
      alice = await callerOf(stack, { tenant: 'acme', user: 'alice' });
    });
    after(() => stack.dispose());

    const ask = async (who: Caller, method: string, path: string, body?: object) => {
      const reply = await who(method, path, body === undefined ? {} : { body });
      answers += `${reply.text}\n${JSON.stringify([...reply.headers])}\n`;
      expect(reply.status, `${method} ${path}: ${reply.text}`).to.equal(200);
      return reply.json() as { readonly id: string; readonly object?: { readonly id: string } };
    };
    const refuse = async (who: Caller, method: string, path: string, body: object, status: number) => {
      const reply = await who(method, path, { body });
      answers += reply.text;
      expect(reply.status, reply.text).to.equal(status);
    };
    const gone = (path: string): Promise<void> =>
      until(`${path} is gone`, async () => (await alice('GET', path)).status === 404);
    const values = async (): Promise<SecretStore> => {
      const directory = join(stack.dataDir, 'secrets');
      const keys = await openDeploymentKeys(directory);
      const clock = systemClock();
      return openFileSecretStore({ directory: join(directory, 'values'), keys, now: () => clock.now() });
    };
    const stored = async (): Promise<string[]> => {
      const ids: string[] = [];
      for await (const { id } of (await values()).list()) ids.push(id);
      return ids.toSorted();
    };

    it('are in no event, read model, answer or log line, and gone after their objects', async () => {
      const before = await stored();
      const secrets = '/api/fulfillment/v1/secrets';
      const made = await ask(alice, 'POST', secrets, {
        metadata: { name: 'registry' },
        data: { 'pull-secret': b64(pullSecret('pull-1')), note: b64(canary('note')) },
      });
      const secret = (made.object ?? made).id;
      const registered = await ask(root, 'POST', `${PRIVATE}/hubs`, {
        id: 'sim-secretive',
        metadata: { name: 'sim-secretive' },
        spec: { namespace: 'osac', kubeconfig: b64(kubeconfig('kube-1')), capacity: { control_planes: 0 } },
      });
      const hub = (registered.object ?? registered).id;
      const order = (name: string, spec: object): object => ({
        metadata: { name, annotations: { simulation: 'factor=0.05' } },
        spec: { template: { id: 'osac.templates.ocp_small' }, ...spec },
      });
      const named = await ask(
        alice,
        'POST',
        CLUSTERS,
        order('named', { pull_secret_secret: { id: secret } }),
      );
      const own = await ask(alice, 'POST', CLUSTERS, order('own', { pull_secret: pullSecret('order') }));
      expect(await stored()).to.have.length(before.length + 4);

      // What is referred to stays; refusals repeat nothing.
      const inUse = await alice('DELETE', `${secrets}/${secret}`);
      answers += inUse.text;
      expect(inUse.status).to.equal(400);
      const both = { pull_secret: pullSecret('pull-2'), pull_secret_secret: { id: secret } };
      await refuse(alice, 'POST', CLUSTERS, order('both', both), 400);
      await refuse(alice, 'PATCH', `${secrets}/${secret}`, { data: { note: `!${canary('note')}!` } }, 400);

      await ask(alice, 'PATCH', `${secrets}/${secret}`, {
        data: { 'pull-secret': b64(pullSecret('pull-2')) },
      });
      await ask(root, 'PATCH', `${PRIVATE}/hubs/${hub}`, { spec: { kubeconfig: b64(kubeconfig('kube-2')) } });
      for (const path of [`${secrets}/${secret}`, secrets, `${CLUSTERS}/${named.id}`, CLUSTERS])
        await ask(alice, 'GET', path);
      for (const path of [`hubs/${hub}`, `secrets/${secret}`, `clusters/${own.id}`, 'hubs', 'secrets'])
        await ask(root, 'GET', `${PRIVATE}/${path}`);
      await ask(root, 'GET', `/api/ledger/v1/orders/${own.id}`);
      const events = await root('GET', '/api/ledger/v1/events');
      answers += events.text;

      for (const { id } of [named, own]) {
        await ask(alice, 'DELETE', `${CLUSTERS}/${id}`);
        await gone(`${CLUSTERS}/${id}`);
      }
      await ask(alice, 'DELETE', `${secrets}/${secret}`);
      await ask(root, 'DELETE', `${PRIVATE}/hubs/${hub}`);
      // At once what they had to the end; what was replaced before, and an order may have taken over, waits for the sweep.
      const left = (await stored()).filter((id) => !before.includes(id));
      expect(left).to.deep.equal([
        `cluster.${own.id}.spec.pull_secret`,
        `secret.${secret}.data.note`,
        `secret.${secret}.data.pull-secret`,
      ]);

      expect(await stack.stop('SIGTERM')).to.equal(0);
      const places = new Map([
        ['answers', answers],
        ['log lines', stack.service().log.join('\n')],
        ['events', JSON.stringify(await readLog(stack))],
      ]);
      for (const entry of await readdir(stack.dataDir, { withFileTypes: true, recursive: true })) {
        const path = join(entry.parentPath, entry.name);
        // The far side: a simulated hub keeps what it is given, as a real one does.
        if (!entry.isFile() || relative(stack.dataDir, path).startsWith('hubs')) continue;
        places.set(path, (await readFile(path)).toString('latin1'));
      }
      expect([...places.keys()].filter((path) => path.includes('read-models'))).not.to.deep.equal([]);
      expect(answers.length).to.be.greaterThan(5_000);
      for (const [place, text] of places)
        for (const spelling of NAMES.map(canary).flatMap(spellings))
          expect(text.includes(spelling), `${spelling} in ${place}`).to.equal(false);
      if (store === 'sqlite') await sweep(before);
    });

    /** The sweep of some hours later, on the log and the files that the service left. */
    const sweep = async (before: readonly string[]): Promise<void> => {
      const log = await openSqliteEventStore({ dataDir: stack.dataDir });
      try {
        const clock = systemClock();
        const runner = createCommandRunner({
          store: log,
          codec: createEventCodec(eventTypes),
          clock,
          instance: 'sweep',
          recordRejection: () => undefined,
        });
        const sweeper = createSecretSweeper({
          secrets: await values(),
          use: createSecretUses({
            runner,
            kinds: kinds.filter((kind) => kind.secrets.length > 0),
            // Nobody is left who could have taken anything over.
            referencedBy: () => [],
            refsOfRun: async () => [],
          }),
          olderThanMs: HOUR,
          rest: async () => undefined,
        });
        for (const hours of [2, 4])
          await sweeper.sweep(
            new Date(Date.now() + hours * HOUR).toISOString(),
            new AbortController().signal,
          );
        expect(await stored()).to.deep.equal(before);
      } finally {
        await log.close();
      }
    };
  });
}
