import { expect } from 'chai';
import { finishDecommissions } from '../../../src/app/hubs/hub-decommission.ts';
import type { HubProblem } from '../../../src/app/hubs/management-cluster.ts';
import { hubCapacity } from '../../../src/app/hubs/scheduler.ts';
import type { HubCapacityCommand } from '../../../src/domain/hubs/capacity.ts';
import { DECOMMISSION_ANNOTATION } from '../../../src/domain/hubs/hub.resource.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { tenantSpaceAggregate } from '../../../src/domain/kinds.ts';
import { tenantSpaceId, type TenantSpaceCommand } from '../../../src/domain/tenancy/tenant-space.ts';
import { commandContext, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import { manualTime } from '../../support/manual-time.ts';
import {
  PRIVATE,
  PUBLIC,
  itemsOf,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { eventually } from '../../support/eventually.ts';
import { KUBECONFIG, startHubService, type HubService } from './hub-service.ts';
import { silentLogger } from '../../support/loggers.ts';

const HUBS = '/api/ledger/v1/hubs';
const missing: HubProblem = {
  code: 'CrdMissing',
  message: 'the API server has no kind clusterorders',
  subject: 'clusterorders',
};

describe('hubs over HTTP', () => {
  let service: TestService;
  let hubs: HubFixture;
  let admin: Caller;
  let user: Caller;
  let shown: HubService['shown'];
  let late: HubService['late'];
  let candidates: HubService['candidates'];

  before(async () => {
    ({ service, hubs, admin, user, shown, late, candidates } = await startHubService());
  });
  after(async () => {
    await hubs.stop();
    await service.close();
  });
  beforeEach(() => {
    shown.problems = [];
    shown.cluster = undefined;
  });
  const register = async (id: string, spec: JsonObject = {}): Promise<void> => {
    const body = {
      id,
      metadata: { name: id },
      spec: { namespace: 'osac-hub', kubeconfig: KUBECONFIG, ...spec },
    };
    const answer = await admin('POST', `${PRIVATE}/hubs`, body);
    expect(answer.status, answer.text).to.equal(200);
    await known(id);
  };
  /** The registry follows the log a few milliseconds behind. */
  const known = (id: string): Promise<void> =>
    eventually(`${id} is known`, () => hubs.registry.get(id) !== undefined);
  const conditionOf = async (id: string, type: string): Promise<JsonObject | undefined> => {
    const { json } = await admin('GET', `${PRIVATE}/hubs/${id}`);
    return listAt(objectAt(json as JsonObject, 'status'), 'conditions')
      .map((each) => each as JsonObject)
      .find((each) => each['type'] === type);
  };

  it('is there as soon as its registration is answered', async () => {
    late.add('hub-soon');
    const spec = { namespace: 'osac-hub', kubeconfig: KUBECONFIG };
    const made = await admin('POST', `${PRIVATE}/hubs`, {
      id: 'hub-soon',
      metadata: { name: 'hub-soon' },
      spec,
    });
    expect(made.status, made.text).to.equal(200);
    const shown = await admin('GET', `${HUBS}/hub-soon`);
    expect(shown.status, shown.text).to.equal(200);
    expect([...late]).to.deep.equal([]);
    const absent = await admin('GET', `${HUBS}/hub-never`);
    expect(absent.status).to.equal(404);
    await admin('DELETE', `${PRIVATE}/hubs/hub-soon`);
  });

  it('a registration is accepted whatever its kubeconfig is; a look says what is wrong, and the document shows it', async () => {
    await register('hub-1');
    expect(await conditionOf('hub-1', 'Ready')).to.deep.include({ reason: 'NotChecked' });
    shown.problems = [missing];
    const looked = await admin('POST', `${HUBS}/hub-1/check`);
    expect(looked.status, looked.text).to.equal(200);
    expect(looked.json).to.deep.equal({
      id: 'hub-1',
      ok: false,
      problems: [missing],
      version: 'v1.36.0',
      clock_skew_ms: 12,
      can_read_node_pools: false,
      can_read_agents: false,
      recommendation:
        "the hub's credentials may not list node pools, so that clusters with several node sets show no node counts: apply ops/rbac/node-counts.yaml, which shows free hosts as well",
    });
    expect(await conditionOf('hub-1', 'Compatible')).to.deep.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'CrdMissing',
      message: missing.message,
    });
    shown.problems = [];
    expect((await admin('POST', `${HUBS}/hub-1/check`)).json).to.deep.include({ ok: true, problems: [] });
    expect(await conditionOf('hub-1', 'Ready')).to.deep.include({ status: 'CONDITION_STATUS_TRUE' });
    const { text } = await admin('GET', `${PRIVATE}/hubs/hub-1`);
    expect(text).to.not.contain('a-secret-token');
  });
  it('a hub can be checked before it is registered, and new credentials before they are given to it', async () => {
    shown.problems = [missing];
    const body = { namespace: 'osac-hub', kubeconfig: KUBECONFIG };
    const looked = await admin('POST', `${HUBS}/check`, body);
    expect(looked.json, looked.text).to.deep.include({ ok: false, problems: [missing] });
    const before = await conditionOf('hub-1', 'Ready');
    const rotated = await admin('POST', `${HUBS}/hub-1/check`, { kubeconfig: KUBECONFIG });
    expect(rotated.json, rotated.text).to.deep.include({ id: 'hub-1', ok: false });
    expect(await conditionOf('hub-1', 'Ready'), 'nothing was recorded').to.deep.equal(before);
    expect(candidates.used).to.have.lengthOf(2);
    expect(candidates.used[0]).to.contain('a-secret-token');
    expect(candidates.closed).to.equal(2);
    expect((await admin('POST', `${HUBS}/check`, { kubeconfig: KUBECONFIG })).status).to.equal(400);
    expect((await admin('POST', `${HUBS}/check`, { namespace: 'n', kubeconfig: '' })).status).to.equal(400);
    expect((await user('POST', `${HUBS}/check`, body)).status).to.equal(403);
    shown.problems = [];
    const endpoints = { eda: 'https://rulebook:5000' };
    const automated = { ...body, mode: 'eda', endpoints, automation: { token: 'tok' } };
    expect(
      listAt((await admin('POST', `${HUBS}/check`, automated)).json as JsonObject, 'problems'),
    ).to.deep.equal([{ code: 'AutomationFailing', message: 'eda https://rulebook:5000 tok' }]);
    for (const wrong of [{ mode: 'magic' }, { endpoints: {} }])
      expect((await admin('POST', `${HUBS}/check`, { ...automated, ...wrong })).status).to.equal(400);
  });
  it('hubs that keep orders in the same namespace of one cluster are named: its hosts would count twice', async () => {
    shown.cluster = 'uid-shared';
    const shares = async (path: string, body: JsonObject): Promise<unknown> => {
      const answer = await admin('POST', `${HUBS}${path}`, body);
      expect(answer.status, answer.text).to.equal(200);
      return (answer.json as JsonObject)['also_in_namespace'];
    };
    await register('hub-shared', { namespace: 'shared-orders', namespaces: { t9: 'orders-of-t9' } });
    expect(await shares('/hub-shared/check', {})).to.equal(undefined);
    await eventually('it is known', () => hubs.registry.get('hub-shared')?.cluster === shown.cluster);
    const candidate = { kubeconfig: KUBECONFIG, namespace: 'shared-orders' };
    expect(await shares('/check', candidate)).to.deep.equal(['hub-shared']);
    expect(await shares('/check', { ...candidate, namespace: 'orders-of-t9' })).to.deep.equal(['hub-shared']);
    expect(await shares('/check', { ...candidate, namespace: 'others' })).to.equal(undefined);
    await register('hub-sharing', { namespace: 'orders-of-t9' });
    expect(await shares('/hub-sharing/check', {})).to.deep.equal(['hub-shared']);
    shown.cluster = 'uid-another';
    expect(await shares('/check', candidate)).to.equal(undefined);
  });
  it('other secrets or another mode of a hub are tried with what it has otherwise, and nothing is recorded', async () => {
    const url = 'https://rulebook:5000';
    const spec = { mode: 'eda', endpoints: { eda: url }, automation: { token: 'a-kept-token' } };
    await register('hub-eda', spec);
    const tried = async (body: JsonObject): Promise<string[]> => {
      const answer = await admin('POST', `${HUBS}/hub-eda/check`, body);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.text).not.to.contain('a-kept-token');
      const found = listAt(answer.json as JsonObject, 'problems');
      return found.map((each) => stringAt(each as JsonObject, 'message'));
    };
    const token = 'spec.automation.token';
    expect(await tried({ automation: { hmac_secret: 'k' } })).to.deep.equal([`eda ${url} ref:${token}`]);
    expect(await tried({ automation: { token: 'new' } })).to.deep.equal([`eda ${url} new`]);
    expect(await tried({ kubeconfig: KUBECONFIG }), 'automation is not what is asked').to.deep.equal([]);
    const moved = { endpoints: { eda: 'https://evil.example:5000' } };
    const refused = await admin('POST', `${HUBS}/hub-eda/check`, moved);
    expect([refused.status, refused.text], refused.text).to.satisfy(
      ([code, text]: [number, string]) =>
        code === 400 && text.includes("give 'automation.token' in the same request"),
    );
    const patch = await admin('PATCH', `${PRIVATE}/hubs/hub-eda`, { spec: moved } as never);
    expect(patch.status, patch.text).to.equal(400);
    expect(patch.text).to.include("give 'spec.automation.token' in the same request");
    expect(await tried({ ...moved, automation: { token: 'new' } })).to.deep.equal([
      'eda https://evil.example:5000 new',
    ]);
    const clear = { endpoints: { eda: 'http://evil.example' }, mode: 'magic', kubeconfig: '' };
    expect((await admin('POST', `${HUBS}/hub-eda/check`, clear)).text).to.include('the address is not https');
    const aap = 'https://aap.example/api/controller';
    const other = { mode: 'aap', endpoints: { aap }, automation: { token: 'aap-token' } };
    expect(await tried(other)).to.deep.equal([`aap ${aap} aap-token`]);
    expect(await tried({ mode: 'operator' })).to.deep.equal([]);
    const { status, text } = await admin('POST', `${HUBS}/hub-eda/check`, { mode: 'aap' });
    const shown = async (): Promise<unknown> =>
      ((await admin('GET', `${HUBS}/hub-eda`)).json as JsonObject)['former_automation'];
    const patched = async (change: JsonObject, came: () => Promise<boolean>): Promise<void> => {
      const answer = await admin('PATCH', `${PRIVATE}/hubs/hub-eda`, { spec: change } as never);
      expect(answer.status, answer.text).to.equal(200);
      await eventually('the registry has heard', came);
    };
    expect(await shown()).to.equal(undefined);
    await patched(other, async () => (await shown()) !== undefined);
    expect(await shown(), 'of orders that were begun before').to.deep.equal({ eda: url });
    expect(await tried({ mode: 'eda' })).to.deep.equal([`eda ${url} ref:${token}`]);
    expect(hubs.registry.get('hub-eda')?.formerAutomation).to.have.nested.property('eda.token');
    await patched({ automation: { eda: null } }, async () => (await shown()) === undefined);
    expect(hubs.registry.get('hub-eda')).not.to.have.property('formerAutomation');
    expect(hubs.registry.get('hub-eda')).to.have.nested.property('automation.token');
    expect(status).to.equal(400);
    expect(text).to.contain("field 'spec.endpoints.aap' is required in mode 'aap'");
  });

  it('a check refuses what no registration would take, before it looks at the hub', async () => {
    const body = { namespace: 'osac-hub', kubeconfig: KUBECONFIG };
    for (const [wrong, said] of [
      [{ namespace: 'a-namespace-of-more-than-23-characters' }, /'spec.namespace' may have at most 23/],
      [{ controller: 'ledger' }, /'spec.controller' may be 'ledger' only in mode 'eda' or 'aap'/],
      [{ mode: 'aap' }, /'spec.endpoints.aap' is required in mode 'aap'/],
    ] as const) {
      const { status, text } = await admin('POST', `${HUBS}/check`, { ...body, ...wrong });
      expect(status, text).to.equal(400);
      expect(text).to.match(said);
    }
  });
  it('hubs are listed with what is wrong, and one is shown with its capacity and its orders', async () => {
    const { status, text } = await admin('POST', `${PRIVATE}/hubs`, {
      id: 'hub-2',
      metadata: { name: 'hub-2' },
      spec: { namespace: 'osac-hub', scheduling: 'cordoned', capacity: { control_planes: 3 } },
    });
    expect(status, text).to.equal(200);
    await known('hub-2');
    const order = { metadata: { name: 'web' }, spec: { template: { id: 'osac.templates.small' } } };
    const id = textAt((await user('POST', `${PUBLIC}/clusters`, order)).json, 'id');
    const claim = { controlPlanes: 1, nodes: {} };
    for (const clusterId of [id, 'an-order-that-no-read-model-knows'])
      await hubs.commandRunner.execute(
        hubCapacity,
        'hub-2',
        {
          type: 'ReserveCapacity',
          at: '2026-11-21T12:00:00.000Z',
          holder: { kind: 'cluster', id: clusterId },
          claim,
        },
        commandContext(clusterId),
      );
    const listed = itemsOf(await admin('GET', HUBS));
    expect(listed.map((each) => [each['id'], each['health'], each['scheduling']])).to.deep.include.members([
      ['hub-1', 'ok', 'open'],
      ['hub-2', 'NoAdapter', 'cordoned'],
    ]);
    expect(listed.find((each) => textAt(each, 'id') === 'hub-2')).to.deep.include({
      limits: { controlPlanes: 3 },
      used: { controlPlanes: 2, nodes: {} },
    });
    const shown = (await admin('GET', `${HUBS}/hub-2`)).json;
    expect(shown).to.deep.include({ orders: { accepted: 1, unknown: 1 }, limits: { controlPlanes: 3 } });
    expect(shown).to.deep.include({
      ghosts: 0,
      watch: {
        namespaces: 1,
        synced: false,
        orders: 4,
        unknown: 1,
        orphans: 1,
        failures: 2,
        not_synced: ['osac-hub'],
        last_error: 'the watch broke',
        last_error_at: '2026-11-21T12:00:00.000Z',
      },
    });
    expect((await admin('GET', `${HUBS}/hub-1`)).json).not.to.have.property('watch');
    const first = (await admin('GET', `${HUBS}/hub-2/orders?limit=1`)).json;
    expect(first).to.deep.include({ total: 2, next_offset: 1 });
    const all = itemsOf(await admin('GET', `${HUBS}/hub-2/orders`));
    expect(all.find((each) => textAt(each, 'id') === id)).to.deep.include({
      name: 'web',
      tenant: 't1',
      state: 'accepted',
    });
    expect((await admin('GET', `${HUBS}/nope`)).status).to.equal(404);
    expect((await admin('POST', `${HUBS}/hub-2/check`)).json).to.deep.include({ ok: false });
    expect(textAt((await admin('GET', `${HUBS}/nope/orders`)).json, 'detail')).to.contain(
      "hub 'nope' not found",
    );
  });

  it('a hub with orders is given up only on purpose, stays to be seen with them, and goes with the last one', async () => {
    await register('hub-3');
    const capacity = (command: HubCapacityCommand): Promise<unknown> =>
      hubs.commandRunner.execute(hubCapacity, 'hub-3', command, commandContext(JSON.stringify(command)));
    const at = '2026-11-21T12:00:00.000Z';
    for (const clusterId of ['left-1', 'left-2'])
      await capacity({
        type: 'ReserveCapacity',
        at,
        holder: { kind: 'cluster', id: clusterId },
        claim: { controlPlanes: 1, nodes: {} },
      });
    const refused = await admin('DELETE', `${PRIVATE}/hubs/hub-3`);
    expect(refused.status).to.equal(400);
    expect(textAt(refused.json, 'message')).to.match(/2 orders have a place on it.*hubs orders hub-3/);

    const annotations = { [DECOMMISSION_ANNOTATION]: 'force' };
    const marked = await admin('PATCH', `${PRIVATE}/hubs/hub-3`, { metadata: { annotations } });
    expect(marked.status, marked.text).to.equal(200);
    expect((await admin('DELETE', `${PRIVATE}/hubs/hub-3`)).status).to.equal(200);
    expect(await conditionOf('hub-3', 'Leaving')).to.deep.include({ reason: 'OrdersLeft' });
    const credentials = { spec: { kubeconfig: KUBECONFIG, zone: 'east' } };
    expect((await admin('PATCH', `${PRIVATE}/hubs/hub-3`, credentials)).status).to.equal(200);
    expect((await admin('GET', `${HUBS}/hub-3`)).json).to.deep.include({ scheduling: 'leaving' });
    await ended(async () => true);
    expect((await admin('GET', `${PRIVATE}/hubs/hub-3`)).status, 'two orders are left').to.equal(200);

    await capacity({ type: 'ReleaseCapacity', at, holder: { kind: 'cluster', id: 'left-1' } });
    await capacity({ type: 'ReleaseCapacity', at, holder: { kind: 'cluster', id: 'left-2' } });
    await ended(async () => (await admin('GET', `${PRIVATE}/hubs/hub-3`)).status === 404);
    const again = { id: 'hub-4', metadata: { name: 'hub-3' }, spec: { namespace: 'osac-hub' } };
    expect((await admin('POST', `${PRIVATE}/hubs`, again)).status, 'its name is free').to.equal(200);
  });

  it('a hub that is given up goes once it holds nothing of tenants; what waits there is told with its reason', async () => {
    await register('hub-5');
    const at = '2026-11-21T12:00:00.000Z';
    const orders = (namespace: string) =>
      ({ hub: 'hub-5', namespace, namespaces: [], simulated: false, controller: 'operator' }) as const;
    const tell = (tenant: string, command: TenantSpaceCommand): Promise<unknown> =>
      hubs.commandRunner.execute(
        tenantSpaceAggregate,
        tenantSpaceId('hub-5', tenant),
        command,
        commandContext(JSON.stringify([tenant, command]), tenant),
      );
    for (const tenant of ['acme', 'globex'])
      await tell(tenant, { type: 'RequestSpace', at, tenant, ...orders('osac-hub') });
    await tell('acme', { type: 'RecordSpaceReady', at });
    await tell('globex', { type: 'RecordSpaceFailure', at, reason: 'Forbidden', message: 'not ours' });
    const spaces = () => hubs.registry.spacesOn('hub-5');
    await eventually('both are known', () => spaces().filter(({ failure }) => failure).length === 1);
    expect((await admin('GET', `${HUBS}/hub-5`)).json['tenants']).to.deep.equal({
      ready: 1,
      waiting: [{ tenant: 'globex', state: 'making', since: at, reason: 'Forbidden', message: 'not ours' }],
    });

    const annotations = { [DECOMMISSION_ANNOTATION]: 'force' };
    await admin('PATCH', `${PRIVATE}/hubs/hub-5`, { metadata: { annotations } });
    expect((await admin('DELETE', `${PRIVATE}/hubs/hub-5`)).status).to.equal(200);
    await ended(async () => spaces().every(({ status }) => status === 'removing'));
    expect((await admin('GET', `${PRIVATE}/hubs/hub-5`)).status).to.equal(200);
    for (const tenant of ['acme', 'globex']) await tell(tenant, { type: 'ConfirmSpaceRemoved', at });
    await eventually('nothing is left', () => spaces().length === 0);
    await ended(async () => (await admin('GET', `${PRIVATE}/hubs/hub-5`)).status === 404);
  });

  it('a hub that is given up and removes nothing of a tenant for an hour goes without it', async () => {
    await register('hub-6');
    const at = '2020-01-01T00:00:00.000Z';
    const place = { hub: 'hub-6', namespace: 'osac-hub', namespaces: [], simulated: false } as const;
    const space = tenantSpaceId('hub-6', 'acme');
    for (const command of [
      { type: 'RequestSpace', at, tenant: 'acme', ...place, controller: 'operator' },
      { type: 'RemoveSpace', at },
    ] as const)
      await hubs.commandRunner.execute(
        tenantSpaceAggregate,
        space,
        command,
        commandContext(`six-${command.type}`, 'acme'),
      );
    const annotations = { [DECOMMISSION_ANNOTATION]: 'force' };
    await admin('PATCH', `${PRIVATE}/hubs/hub-6`, { metadata: { annotations } });
    expect((await admin('DELETE', `${PRIVATE}/hubs/hub-6`)).status).to.equal(200);
    await ended(async () => (await admin('GET', `${PRIVATE}/hubs/hub-6`)).status === 404);
  });

  /** Lets hubs that are given up end, on time that passes when it is told to, until the condition holds. */
  const ended = async (condition: () => Promise<boolean>): Promise<void> => {
    const time = manualTime();
    const stop = new AbortController();
    const ending = finishDecommissions({
      registry: hubs.registry,
      commandRunner: hubs.commandRunner,
      commands: service.commands,
      ...time,
      logger: silentLogger,
      signal: stop.signal,
    });
    let met = false;
    for (let round = 0; round < 50 && !met; round += 1) {
      await time.pass(10_000);
      met = await condition();
    }
    stop.abort();
    await time.pass(0);
    await ending;
    expect(met).to.equal(true);
  };

  it('a candidate is checked for the rights that its way of working needs', async () => {
    const body = {
      kubeconfig: KUBECONFIG,
      namespace: 'osac-hub',
      mode: 'eda',
      endpoints: { eda: 'https://rulebook:5000' },
      controller: 'ledger',
      tenant_namespaces: true,
    };
    const checked = await admin('POST', `${HUBS}/check`, body);
    expect(checked.status, checked.text).to.equal(200);
    expect(candidates.connections.at(-1)).to.deep.include({ controller: 'ledger', tenantNamespaces: true });
    const wrong = await admin('POST', `${HUBS}/check`, { ...body, controller: 'nobody' });
    expect(wrong.status).to.equal(400);
    expect(wrong.text).to.include("field 'controller' must be operator or ledger");
  });
});
