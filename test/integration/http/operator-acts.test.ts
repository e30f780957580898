import { expect } from 'chai';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { DECISION_NAMES } from '../../../src/http/ledger/order-decisions.ts';
import { ledgerRoutes, type LedgerServices } from '../../../src/http/ledger/routes.ts';
import { EMPTY_POOL, evolveAgents } from '../../../src/domain/agents/pool-state.ts';
import { agentPoolAggregate } from '../../../src/domain/kinds.ts';
import { discovered, look, seen } from '../../support/agents/pool-words.ts';
import { startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PRIVATE, PUBLIC, textAt, type Reply } from '../../support/http/service.ts';
import { commandContext, fakeCluster } from '../../support/hubs/hub-fixture.ts';
import { LEDGER } from './dispatching.ts';

const WATCHES = { admin: `${PRIVATE}/events/watch`, alice: '/api/events/v1/events' };
const KUBECONFIG = Buffer.from('kind: Config # a-secret-token').toString('base64');
const LANE = {
  lane: 'hub:hub-1',
  breaker: 'closed',
  paused: false,
  inFlight: 0,
  waiting: 0,
  failing: [],
  failingOrders: 0,
};
const HUB = {
  facts: { id: 'hub-1', mode: 'operator', namespace: 'osac', namespaces: {}, endpoints: {}, automation: {} },
  tenant: 'shared',
  health: {},
  adapter: fakeCluster('hub-1', {}),
};

const POOL = [discovered('agent-1')].reduce(evolveAgents, EMPTY_POOL);

/** The parts that operators reach, each of which does nothing but be there. */
const operated = (): Partial<LedgerServices> => {
  const check = { problems: [], findings: {} };
  const topic = { topic: 'osac.events.clusters.v1', parked: [{ stream: 'cluster-1' }] };
  const publisher = {
    status: () => ({ epoch: 1, topics: [topic] }),
    createTopics: async () => [],
    retry: async () => ({ outcome: 'published', records: 1 }),
    replay: () => (async function* nothing() {})(),
  };
  const processes = {
    status: () => ({ epoch: 1, lanes: [LANE] }),
    pauseLane: () => undefined,
    resumeLane: () => undefined,
    parkedFor: () => 'a bug',
    retryRun: async () => true,
  };
  return {
    publisher,
    processes,
    lanes: processes,
    hubRegistry: { hubs: () => [HUB], get: () => HUB, agentPool: () => POOL, onChange: () => () => true },
    hubHealth: { check: async () => ({ check }), checkCandidate: async () => check },
    clusters: { candidate: () => fakeCluster('tried', { close: async () => undefined }) },
    auditing: { keys: { rotate: async () => ({ vkey: 'k', since: 's' }) } },
    backupStore: async (file: string) => ({ file, bytes: 1 }),
    checkStore: async () => ({ events: 1, findings: [] }),
  } as unknown as Partial<LedgerServices>;
};

/** What operators do, and what they look at of tenants, under `/api/ledger/v1` and on the private surface. */
describe('acts and looks of operators', function () {
  this.timeout(30_000);
  let stage: AuditStage;
  let id: string;
  before(async () => {
    stage = await startAuditStage({ ledger: operated() });
    id = await stage.order(stage.alice, 'theirs');
    const { runner } = stage.service;
    const appeared = look([seen('agent-1')]);
    await runner.execute(agentPoolAggregate, 'hub-1', appeared, commandContext('agent-1 appeared'));
  });
  after(() => stage.service.close());

  /** What a call that is answered leaves in the log. */
  const leftBy = async (call: () => Promise<Reply>, status = 200): Promise<RecordedEvent[]> => {
    const { store } = stage.service;
    const before = (await store.lastPosition()) ?? '';
    const reply = await call();
    expect(reply.status, reply.text).to.equal(status);
    const events: RecordedEvent[] = [];
    for await (const event of store.readAll({ after: before, limit: 100 }))
      if (!event.stream.startsWith('sys-')) events.push(event);
    return events;
  };
  const actorOf = ({ metadata }: RecordedEvent): string => textAt(metadata as never, 'actor', 'subjectId');
  const opened = (event: RecordedEvent | undefined, field: string): string | undefined =>
    stage.service.people.open([event?.data[field] as never])[0];

  /** Bodies of acts that need one. */
  const BODIES: { readonly [path: string]: object } = {
    'hubs/check': { kubeconfig: KUBECONFIG, namespace: 'osac' },
    'kafka/topics/{topic}/replays': { name: 'again' },
    'store/backup': { file: '/backup/of-mallory.db' },
    'pools/agents/{hub}/{agent}/retire': { reason: 'a broken board' },
  };
  /** Commands about a document: they are events of it. */
  const COMMANDS: { readonly [path: string]: readonly string[] } = {
    'orders/{id}/cancel': ['ClusterDeletionRequested', 'ClusterDeleted', 'NameReleased'],
    // Pauses are events of their own, too: they outlive the process.
    'lanes/{lane}/pause': ['OperatorActed', 'LanePaused'],
    'lanes/{lane}/resume': ['OperatorActed', 'LaneResumed'],
    'pools/agents/{hub}/{agent}/retire': ['OperatorActed', 'AgentRetired'],
    'pools/agents/{hub}/{agent}/clean': ['OperatorActed', 'AgentCleaningStarted'],
  };

  it('are events with their actor, whatever is done', async () => {
    const { admin, callerFor } = stage;
    // Decisions are events of an order's run, where its kind allows them: order-decisions.test.ts.
    const decided = DECISION_NAMES.map((name) => `orders/{id}/${name}`);
    const routes = ledgerRoutes({} as LedgerServices).filter(
      // What is done to pools of VLANs and prefixes is events of theirs: pools.test.ts.
      ({ verb, path }) => verb !== 'GET' && !decided.includes(path) && !/^pools\/(vlan|prefix)/.test(path),
    );
    expect(routes.length).to.be.greaterThan(12);
    const me = actorOf((await leftBy(() => admin('GET', `${LEDGER}/events?limit=1`)))[0] as RecordedEvent);
    const left: { [path: string]: readonly string[] } = {};
    for (const { verb, path } of routes) {
      const order = await stage.order(stage.alice, `of-${path.replaceAll(/[^a-z]+/g, '-')}x`);
      const filled = path
        .replace('orders/{id}', `orders/${order}`)
        .replace('{id}', 'hub-1')
        .replace('{hub}', 'hub-1')
        .replace('{agent}', 'agent-1')
        .replace('{lane}', LANE.lane)
        .replace('{topic}', 'osac.events.clusters.v1')
        .replace('{stream}', 'cluster-1')
        .replace('{name}', 'resources');
      const nothingParked = path.startsWith('projections') && path.includes('parked');
      const call = () => admin(verb, `${LEDGER}/${filled}`, BODIES[path] ?? {});
      const events = await leftBy(call, nothingParked ? 404 : 200);
      for (const event of events) expect(actorOf(event), `${path}: ${event.type}`).to.equal(me);
      if (nothingParked) expect(events, 'nothing was done').to.deep.equal([]);
      else left[path] = events.map(({ type }) => type);
    }
    expect(left).to.deep.equal(
      Object.fromEntries(Object.keys(left).map((path) => [path, COMMANDS[path] ?? ['OperatorActed']])),
    );
    const other = await callerFor({ user: 'mallory', tenants: ['t1'] });
    expect(await leftBy(() => other('POST', `${LEDGER}/store/check`), 403)).to.deep.equal([]);
  });

  it('say what was done to what, and hold in clear nothing that was typed', async () => {
    const { admin } = stage;
    const [paused] = await leftBy(() => admin('POST', `${LEDGER}/lanes/${LANE.lane}/pause`));
    expect(paused?.data).to.include({ act: 'lanes/pause', on: LANE.lane });
    const [backup] = await leftBy(() => admin('POST', `${LEDGER}/store/backup`, BODIES['store/backup']));
    expect(JSON.stringify(backup)).to.not.include('mallory');
    expect(opened(backup, 'named')).to.equal('/backup/of-mallory.db');
    const tried = {
      endpoints: { eda: 'https://eda.example:8443/hook' },
      mode: 'eda',
      automation: { token: 'tok-1', hmac_secret: 'key-1' },
    };
    const [checked] = await leftBy(() => admin('POST', `${LEDGER}/hubs/hub-1/check`, tried));
    expect(checked?.data).to.deep.include({ kind: 'hub', resourceId: 'hub-1', hosts: ['eda.example:8443'] });
    expect(JSON.stringify(checked)).to.not.match(/tok-1|key-1|hook/);
    await stage.settled(false);
    const ofHub = await admin('GET', `/api/audit/v1/events?kind=hub&resource_id=hub-1&type=OperatorActed`);
    expect(ofHub.text, 'found by the hub').to.include('eda.example:8443');
    const theirs = await stage.auditor('GET', `/api/audit/v1/events?kind=operatorAct`);
    expect(theirs.text, "the provider's alone").to.not.include('eda.example');
  });

  it('looks at the history of a tenant are AuditRead, and the tenant is told who looked', async () => {
    const { admin } = stage;
    const looks: readonly (readonly [path: string, what: string])[] = [
      [`${LEDGER}/events?stream=cluster-${id}`, 'log'],
      [`${LEDGER}/events?tenant=t1&limit=5`, 'log'],
      [`${LEDGER}/events?limit=1000`, 'log'],
      [`${LEDGER}/usage?tenant=t1&from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z`, 'usage'],
      [`${LEDGER}/usage?by=resource&from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z`, 'usage'],
      [`${LEDGER}/orders/${id}`, 'timeline'],
      [`${PRIVATE}/clusters/${id}/timeline`, 'timeline'],
      [`${PUBLIC}/clusters/${id}/timeline`, 'timeline'],
    ];
    for (const [path, what] of looks) {
      const [read, ...notices] = await leftBy(() => admin('GET', path));
      expect([read?.type, read?.data['what']], path).to.deep.equal(['AuditRead', what]);
      if (what === 'usage') {
        // Nothing was used in this time: of nobody something was shown.
        expect(notices).to.deep.equal([]);
        continue;
      }
      const [told] = notices;
      expect(
        notices.map(({ type, metadata }) => [type, metadata['tenant']]),
        path,
      ).to.deep.include(['AuditReadNoticed', 't1']);
      expect(actorOf(told as RecordedEvent)).to.equal(actorOf(read as RecordedEvent));
      if (path.includes(id)) expect(told?.data).to.include({ kind: 'cluster', resourceId: id });
    }
    await stage.settled(false);
    const seen = await stage.auditor('GET', '/api/audit/v1/events?type=AuditReadNoticed');
    expect(seen.text).to.include('"what":"timeline"');
  });

  it('looks at what is typed and not there hold it under a key; own looks of a tenant are none of this', async () => {
    const { admin, alice } = stage;
    const [read, ...more] = await leftBy(() =>
      admin('GET', `${LEDGER}/events?stream=user-mallory&tenant=mallory`),
    );
    expect(more).to.deep.equal([]);
    expect(JSON.stringify(read)).to.not.include('mallory');
    expect(await leftBy(() => alice('GET', `${PUBLIC}/clusters/${id}/timeline`))).to.deep.equal([]);
    expect(await leftBy(() => admin('GET', `${LEDGER}/lanes`)), 'shows nobody').to.deep.equal([]);
  });

  it('of an admin whose token names a tenant are in the history of the provider all the same', async () => {
    const { callerFor } = stage;
    const insider = await callerFor({ user: 'insider', tenants: ['t2'], admin: true });
    const looks: readonly (readonly [path: string, told: readonly string[]])[] = [
      [`${LEDGER}/orders/${id}`, ['t1']],
      [`${LEDGER}/usage?from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z`, []],
      [`/api/audit/v1/events?tenant=t1&limit=5`, ['t1']],
    ];
    const tenants = (events: readonly RecordedEvent[]) =>
      events.map(({ type, metadata }) => [type, metadata['tenant']]);
    for (const [path, told] of looks)
      expect(tenants(await leftBy(() => insider('GET', path))), path).to.deep.equal([
        ['AuditRead', 'shared'],
        ...told.map((tenant) => ['AuditReadNoticed', tenant]),
      ]);
    const acted = await leftBy(() => insider('POST', `${LEDGER}/lanes/${LANE.lane}/pause`));
    expect(tenants(acted)).to.deep.equal([['OperatorActed', 'shared']]);
  });

  it('a watch that begins in the past is one look of an admin', async () => {
    const { service, alice } = stage;
    const tokens = {
      admin: await service.token({ user: 'root', admin: true }),
      alice: await service.token({ user: 'alice', tenants: ['t1'] }),
    };
    const watch = async (who: keyof typeof tokens, from?: string): Promise<Reply> => {
      const ends = new AbortController();
      const query = from === undefined ? '' : `?from=${encodeURIComponent(from)}`;
      const { status, headers } = await fetch(`${service.url}${WATCHES[who]}${query}`, {
        headers: { authorization: `Bearer ${tokens[who]}` },
        signal: ends.signal,
      });
      ends.abort();
      return { status, headers, text: '', json: {} };
    };
    const nowOf = async (): Promise<string> => (await watch('admin')).headers.get('x-ledger-watch-id') ?? '';
    const old = await nowOf();
    await stage.order(alice, 'watched');
    await stage.settled(false);
    const [read, ...more] = await leftBy(() => watch('admin', old));
    expect(more).to.deep.equal([]);
    expect([read?.type, read?.metadata['tenant']]).to.deep.equal(['AuditRead', 'shared']);
    expect(read?.data).to.deep.include({ what: 'watch', query: { from: old } });
    const now = await nowOf();
    expect(await leftBy(() => watch('admin', now)), 'nothing old').to.deep.equal([]);
    expect(await leftBy(() => watch('admin')), 'from now on').to.deep.equal([]);
    expect(await leftBy(() => watch('alice', old)), 'her own').to.deep.equal([]);
  });

  it('the line of a request in the log names who called', async () => {
    const { admin, service } = stage;
    const [read] = await leftBy(() => admin('GET', `${LEDGER}/orders/${id}`));
    const line = service.logger.lines.findLast(
      ({ fields }) => (fields as { readonly route?: string }).route === `${LEDGER}/orders/{id}`,
    );
    expect(line?.fields).to.include({ subject: actorOf(read as RecordedEvent) });
  });
});
