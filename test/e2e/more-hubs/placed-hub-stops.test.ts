import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { KIND_SAMPLES, makeHousePool } from '../../support/http/kind-samples.ts';
import { callerOf, PRIVATE, seedCatalogue, textAt, type Caller } from '../../support/http/service.ts';
import { grantHubAccess } from '../../support/hubs/kubernetes-hub.ts';
import { ok } from '../../support/hubs/network-story.ts';
import { NS, PLACED, playOperator, readyOf } from '../../support/hubs/placed-suite.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { createStack, until, type Stack } from '../../support/service/stack.ts';

const BOUND_MS = 120_000;
type Placed = (typeof PLACED)[number];
const idOf = (prefix: string, { kind }: Placed): string => `${prefix}-${kind.kind.toLowerCase()}`;

/** The API server of a hub stops while objects of every kind are made, changed and deleted, and the service dies meanwhile. */
describe('placed kinds on a hub that stops and starts again', function () {
  this.timeout(300_000);
  const around = { user: () => '' };
  let stack: Stack;
  let server: KubeApiServer;
  let stopOperator: () => Promise<void>;
  let admin: Caller;

  const health = async (): Promise<string> =>
    textAt((await admin('GET', '/api/ledger/v1/hubs/munich')).json, 'health');
  const healthIs = (wanted: boolean): Promise<void> =>
    until(
      `the hub is ${wanted ? 'there' : 'away'}`,
      async () => ((await health()) === 'ok') === wanted,
      BOUND_MS,
    );
  const login = async (): Promise<void> => {
    admin = callerOf({ url: stack.http() }, await stack.token({ admin: true, user: 'root' }));
  };
  const at = (prefix: string, one: Placed): string =>
    `${PRIVATE}/${one.kind.collection}/${idOf(prefix, one)}`;
  const make = async (prefix: string, one: Placed): Promise<void> => {
    const id = idOf(prefix, one);
    const sample = KIND_SAMPLES[one.kind.kind]?.body(id, around);
    ok(await admin('POST', `${PRIVATE}/${one.kind.collection}`, { ...sample, id }));
  };
  const stateOf = async (prefix: string, one: Placed): Promise<string> => {
    const { status, json } = await admin('GET', at(prefix, one));
    if (status === 404) return 'gone';
    return stringAt(objectAt(json as unknown as JsonObject, 'status'), 'state');
  };
  const allReady = (prefix: string): Promise<void> =>
    until(
      `every ${prefix} one is as wanted`,
      async () => {
        const states = await Promise.all(
          PLACED.map(async (one) => (await stateOf(prefix, one)).endsWith(readyOf(one.kind.kind))),
        );
        return states.every(Boolean);
      },
      BOUND_MS,
    );
  const remove = (prefix: string) => Promise.all(PLACED.map((one) => admin('DELETE', at(prefix, one))));
  /** Whatever refers to another one goes before it: what is refused is asked again. */
  const allGone = (...prefixes: readonly string[]): Promise<void> =>
    until(
      `${prefixes.join(' and ')} are gone`,
      async () => {
        await Promise.all(prefixes.map(remove));
        const states = await Promise.all(
          prefixes.flatMap((prefix) => PLACED.map((one) => stateOf(prefix, one))),
        );
        return states.every((state) => state === 'gone');
      },
      BOUND_MS,
    );
  const there = (prefix: string): readonly string[] =>
    PLACED.filter(
      (one) => server.find(one.object.plural, NS, one.object.nameOf(idOf(prefix, one))) !== undefined,
    ).map((one) => idOf(prefix, one));

  before(async () => {
    server = await startKubeApiServer();
    const token = await grantHubAccess(server.call, NS);
    stopOperator = playOperator(server);
    stack = await createStack('sqlite', { LEDGER_CATALOG: '' });
    await stack.start();
    await login();
    const kubeconfig = Buffer.from(server.kubeconfig({ token })).toString('base64');
    const spec = { namespace: NS, kubeconfig };
    ok(await admin('POST', `${PRIVATE}/hubs`, { id: 'munich', metadata: { name: 'munich' }, spec }));
    await healthIs(true);
    await seedCatalogue(admin);
    await makeHousePool(admin);
    for (const one of PLACED) await make('first', one);
    await allReady('first');
  });
  after(async () => {
    await stack.dispose();
    await stopOperator();
    await server.close();
  });

  it('what was asked meanwhile is carried out once, and what was to go goes', async () => {
    const made = server.audit().length;
    await server.pause();
    for (const one of PLACED) {
      await make('second', one);
      ok(await admin('PATCH', at('first', one), { metadata: { labels: { changed: 'yes' } } }));
      await make('brief', one);
    }
    await Promise.all([remove('brief'), remove('first')]);
    await healthIs(false);
    await stack.stop('SIGKILL');
    await stack.start();
    await login();
    expect(there('second'), 'made on a hub that is away').to.deep.equal([]);
    expect(await Promise.all(PLACED.map((one) => stateOf('first', one)))).to.not.include('gone');

    await server.resume();
    await allReady('second');
    await allGone('first', 'brief');
    expect(there('second')).to.deep.equal(PLACED.map((one) => idOf('second', one)));
    expect([...there('first'), ...there('brief')]).to.deep.equal([]);
    const creations = server
      .audit()
      .slice(made)
      .filter(({ method, code }) => method === 'POST' && code === 201)
      .map(({ path }) => path.split('/').at(-1));
    for (const { object } of PLACED)
      expect(creations.filter((plural) => plural === object.plural).length, object.plural).to.be.at.most(2);
    await allGone('second');
    expect(there('second')).to.deep.equal([]);
  });
});
