import { expect } from 'chai';
import { AutomationError, type Automations } from '../../../src/app/automation/automation.ts';
import { createHubHealth, type HubHealthMonitor } from '../../../src/app/hubs/hub-health.ts';
import type { HubProblem, HubReport, ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ANNOTATION } from '../../../src/domain/hubs/identity.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { systemIds } from '../../../src/adapters/system/system-ports.ts';
import { fakeCluster, hubFixture, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { silentLogger } from '../../support/loggers.ts';

const refused: HubProblem = { code: 'Unreachable', message: 'connection refused' };
const forbidden: HubProblem = { code: 'RightMissing', message: 'may not list', subject: 'list secrets' };
const unauthorized: HubProblem = { code: 'CredentialsRefused', message: 'the token is not accepted' };

const lackedKinds = (kinds: readonly string[]) =>
  kinds.map((kind) => ({ kind, code: 'Missing', message: `no ${kind}` }));

describe('hub health', () => {
  let hubs: HubFixture;
  let time: ManualTime;
  let monitor: HubHealthMonitor;
  let running: Promise<void>;
  const stop = { controller: new AbortController() };
  /** What each hub answers now; `hang` never does. */
  const answers = new Map<string, readonly HubProblem[] | 'hang'>();
  const looks = new Map<string, number>();
  /** Which of a hub's looks, counted from 1, were thorough. */
  const thorough = new Map<string, number[]>();
  /** Milliseconds that each look gave the hub for its answer. */
  let patience: number[] = [];
  /** Which cluster answers as a hub, and which one its adapter was told last. */
  const clusters = new Map<string, string>();
  const told = new Map<string, string | undefined>();
  let automationProblems: readonly string[] = [];
  let lackedByHub: readonly string[] = [];
  /** Undefined: it cannot be asked. */
  let lackedByAutomation: readonly string[] | undefined = [];
  let recovered: string[] = [];
  /** Hubs whose effects are held up. */
  const parked = new Set<string>();

  const adapter = (id: string): ManagementCluster =>
    fakeCluster(id, {
      simulated: false,
      check: async (asked): Promise<HubReport> => {
        const look = (looks.get(id) ?? 0) + 1;
        looks.set(id, look);
        patience.push(asked.deadlineMs);
        if (asked.thorough === true) thorough.set(id, [...(thorough.get(id) ?? []), look]);
        const problems = answers.get(id) ?? [];
        if (problems === 'hang') return new Promise<never>(() => undefined);
        const cluster = clusters.get(id);
        return {
          problems,
          version: 'v1.36.0',
          canReadAgents: true,
          lacking: lackedKinds(lackedByHub),
          ...(cluster === undefined ? {} : { cluster }),
        };
      },
      inventory: async () => ({ fc430: { free: 3, ours: 1, foreign: 2 } }),
    });
  const automations: Automations = {
    of: () => ({
      trigger: async () => ({ kind: 'queued' }),
      check: async () => ({ problems: automationProblems }),
      lacking: async () => {
        if (lackedByAutomation === undefined) throw new AutomationError('unavailable', 'not there');
        return lackedKinds(lackedByAutomation);
      },
    }),
    close: async () => undefined,
  };
  const eventsOf = async (id: string): Promise<readonly string[]> => {
    const types: string[] = [];
    for await (const event of hubs.store.readStream(`hub-${id}`)) types.push(event.type);
    return types.slice(1);
  };
  const newsOf = async (id: string): Promise<readonly string[]> =>
    (await eventsOf(id)).filter((type) => type !== 'HubRevised');

  beforeEach(async () => {
    time = manualTime();
    answers.clear();
    looks.clear();
    thorough.clear();
    patience = [];
    clusters.clear();
    told.clear();
    automationProblems = [];
    lackedByHub = [];
    lackedByAutomation = [];
    recovered = [];
    parked.clear();
    const adapters = new Map<string, ManagementCluster>();
    hubs = hubFixture({
      of: ({ id, cluster }) => {
        told.set(id, cluster);
        const known = adapters.get(id) ?? adapter(id);
        adapters.set(id, known);
        return known;
      },
    });
    await hubs.registry.ready();
    stop.controller = new AbortController();
    monitor = createHubHealth({
      registry: hubs.registry,
      commandRunner: hubs.commandRunner,
      automations,
      ...time,
      ids: systemIds(),
      logger: silentLogger,
      recovered: (id) => recovered.push(id),
      isHeldUp: (id) => parked.has(id),
    });
    running = monitor.run(stop.controller.signal);
  });
  afterEach(async () => {
    stop.controller.abort();
    await time.pass(0);
    await running;
    await hubs.stop();
  });
  const register = async (id: string, spec: JsonObject = {}): Promise<void> => {
    await hubs.register(id, spec);
    await time.pass(50);
  };

  const WELL = [
    'HubBecameReachable',
    'HubCredentialsAccepted',
    'HubFoundComplete',
    'HubVersionSeen',
    'HubHostsCounted',
  ];

  it('looks at a hub as soon as it is registered, and then every half minute without a word', async () => {
    await register('hub-1');
    expect(await newsOf('hub-1')).to.deep.equal(WELL);
    await time.pass(10 * 60_000);
    expect(looks.get('hub-1')).to.be.within(18, 23);
    expect(await newsOf('hub-1')).to.deep.equal(WELL);
    expect(hubs.registry.get('hub-1')?.limits).to.deep.equal({ nodes: { fc430: 4 } });
  });
  it('looks thoroughly at a new hub, at a changed one and when it is asked to, otherwise only at rights', async () => {
    await register('hub-1');
    await time.pass(5 * 60_000);
    expect(thorough.get('hub-1')).to.deep.equal([1]);
    const before = looks.get('hub-1') ?? 0;
    answers.set('hub-1', [refused]);
    await hubs.revise('hub-1', { zone: 'east' });
    await time.pass(50);
    answers.delete('hub-1');
    await time.pass(5 * 60_000);
    // The first of these did not reach it.
    expect(thorough.get('hub-1')).to.deep.equal([1, before + 1, before + 2]);
    const last = looks.get('hub-1') ?? 0;
    const hub = hubs.registry.get('hub-1');
    if (hub === undefined) throw new Error('not registered');
    await monitor.check(hub, stop.controller.signal);
    expect(thorough.get('hub-1')?.at(-1)).to.equal(last + 1);
  });
  it('has more patience where somebody waits for the answer: nothing looks again by itself', async () => {
    await register('hub-1');
    expect(patience).to.deep.equal([10_000]);
    const hub = hubs.registry.get('hub-1');
    if (hub === undefined) throw new Error('not registered');
    await monitor.check(hub, stop.controller.signal);
    await monitor.checkCandidate(adapter('hub-2'), undefined, stop.controller.signal);
    expect(patience.slice(-2)).to.deep.equal([30_000, 30_000]);
  });
  it('tells at once what is wrong with a new hub, and at once when it was mended by a change', async () => {
    answers.set('hub-1', [unauthorized]);
    await register('hub-1');
    expect(await newsOf('hub-1')).to.deep.equal([
      'HubBecameReachable',
      'HubCredentialsRefused',
      'HubVersionSeen',
    ]);
    answers.delete('hub-1');
    await hubs.revise('hub-1', { zone: 'east' });
    await time.pass(50);
    expect((await newsOf('hub-1')).slice(3)).to.deep.equal([
      'HubCredentialsAccepted',
      'HubFoundComplete',
      'HubHostsCounted',
    ]);
    expect(recovered).to.deep.equal(['hub-1']);
  });
  it('which cluster a hub is becomes known to its adapter; another one is told, and again when it is itself', async () => {
    clusters.set('hub-1', 'uid-1');
    await register('hub-1');
    expect(await newsOf('hub-1')).to.deep.equal(WELL.toSpliced(2, 0, 'HubIdentified'));
    expect(told.get('hub-1')).to.equal('uid-1');
    clusters.set('hub-1', 'uid-2');
    await time.pass(40_000);
    expect(hubs.registry.get('hub-1')?.health.ready?.ok).to.equal(false);
    clusters.set('hub-1', 'uid-1');
    await time.pass(40_000);
    expect((await newsOf('hub-1')).slice(6)).to.deep.equal(['HubFoundToBeAnotherCluster', 'HubIdentified']);
    expect(hubs.registry.get('hub-1')?.health.ready?.ok).to.equal(true);
    expect(recovered.at(-1)).to.equal('hub-1');
  });
  it('a hub that was rebuilt is told by its document', async () => {
    clusters.set('hub-1', 'uid-1');
    await register('hub-1');
    clusters.set('hub-1', 'uid-2');
    await hubs.revise('hub-1', {}, { [CLUSTER_ANNOTATION]: 'uid-2' });
    await time.pass(50);
    expect(told.get('hub-1')).to.equal('uid-2');
    expect(hubs.registry.get('hub-1')?.health).to.include({ cluster: 'uid-2' });
    expect(hubs.registry.get('hub-1')?.health.ready?.ok).to.equal(true);
  });
  it('one answer that is missing does not make a hub unreachable, a second one does', async () => {
    await register('hub-1');
    answers.set('hub-1', [refused]);
    monitor.lookSoon('hub-1');
    await time.pass(100);
    expect(looks.get('hub-1')).to.equal(2);
    expect(await newsOf('hub-1')).to.deep.equal(WELL);
    await time.pass(5_000);
    expect((await newsOf('hub-1')).at(-1)).to.equal('HubBecameUnreachable');
    answers.delete('hub-1');
    await time.pass(5_000);
    expect((await newsOf('hub-1')).at(-1)).to.equal('HubBecameReachable');
  });
  it('a single missing answer leaves no trace', async () => {
    await register('hub-1');
    answers.set('hub-1', [refused]);
    monitor.lookSoon('hub-1');
    await time.pass(100);
    answers.delete('hub-1');
    await time.pass(60_000);
    expect(await newsOf('hub-1')).to.deep.equal(WELL);
  });
  it('an API server that starts answers 403 for a moment: that is no missing right, a second time it is', async () => {
    await register('hub-1');
    parked.add('hub-1');
    answers.set('hub-1', [forbidden]);
    monitor.lookSoon('hub-1');
    await time.pass(100);
    // An effect that is refused as well asks for a look: two in one moment are one.
    monitor.lookSoon('hub-1');
    await time.pass(400);
    answers.delete('hub-1');
    await time.pass(5_000);
    expect(await newsOf('hub-1')).to.deep.equal(WELL);
    expect(recovered).to.deep.equal(['hub-1', 'hub-1']);
    answers.set('hub-1', [forbidden]);
    monitor.lookSoon('hub-1');
    await time.pass(5_100);
    expect((await newsOf('hub-1')).at(-1)).to.equal('HubFoundIncomplete');
  });
  it('what was unreachable before its first 403 is looked at once more as well', async () => {
    await register('hub-1');
    answers.set('hub-1', [refused]);
    monitor.lookSoon('hub-1');
    await time.pass(100);
    answers.set('hub-1', [forbidden]);
    await time.pass(5_000);
    answers.delete('hub-1');
    await time.pass(5_000);
    expect(await newsOf('hub-1')).to.deep.equal(WELL);
  });
  it('a hub without a right is looked at again within seconds while effects are held up for it', async () => {
    answers.set('hub-1', [forbidden]);
    parked.add('hub-1');
    await register('hub-1');
    const before = looks.get('hub-1') ?? 0;
    await time.pass(20_000);
    expect((looks.get('hub-1') ?? 0) - before).to.be.within(3, 4);
    answers.delete('hub-1');
    await time.pass(5_000);
    expect(recovered).to.deep.equal(['hub-1']);
    answers.set('hub-1', [forbidden]);
    parked.clear();
    await time.pass(40_000);
    const rested = looks.get('hub-1') ?? 0;
    await time.pass(20_000);
    expect((looks.get('hub-1') ?? 0) - rested).to.be.at.most(1);
  });
  it('a hub that hangs counts as away after its time, and delays no other', async () => {
    answers.set('hub-1', 'hang');
    await register('hub-1');
    await register('hub-2');
    expect(await newsOf('hub-1')).to.deep.equal([]);
    expect(await newsOf('hub-2')).to.deep.equal(WELL);
    await time.pass(31_000);
    expect(await newsOf('hub-1')).to.deep.equal(['HubBecameUnreachable']);
  });
  it('looks at the automation where the hub has one', async () => {
    automationProblems = ['nobody listens at https://rulebook:5000'];
    await register('hub-1', { mode: 'eda', endpoints: { eda: 'https://rulebook:5000' } });
    expect(await newsOf('hub-1')).to.include('HubAutomationFailed');
    automationProblems = [];
    await time.pass(40_000);
    expect((await newsOf('hub-1')).at(-1)).to.equal('HubAutomationAnswered');
  });
  it('records which kinds a hub cannot carry, by its API server or its automation, and what it can later', async () => {
    const kindsOf = (id: string) => hubs.registry.get(id)?.health.lacking?.kinds.map(({ kind }) => kind);
    lackedByAutomation = ['Subnet'];
    lackedByHub = ['Volume'];
    const endpoints = { eda: 'https://rulebook.example:5000' };
    await register('hub-1', { mode: 'eda', endpoints });
    expect(kindsOf('hub-1')).to.deep.equal(['Volume', 'Subnet']);
    lackedByHub = [];
    await time.pass(60_000);
    expect(kindsOf('hub-1')).to.deep.equal(['Subnet']);
    lackedByAutomation = undefined;
    await time.pass(5 * 60_000);
    expect(kindsOf('hub-1'), 'what cannot be asked is no news').to.deep.equal(['Subnet']);
    lackedByAutomation = [];
    await time.pass(60_000);
    expect(kindsOf('hub-1')).to.deep.equal([]);
    expect((await newsOf('hub-1')).filter((type) => type === 'HubKindsSeen')).to.have.length(3);
  });
  it('a hub that leaves the mode of a failing listener is well at once, and after a restart', async () => {
    automationProblems = ['nobody listens at https://rulebook:5000'];
    await register('hub-1', { mode: 'eda', endpoints: { eda: 'https://rulebook:5000' } });
    expect(hubs.registry.get('hub-1')?.health.ready?.ok).to.equal(false);
    await hubs.revise('hub-1', { mode: 'operator' });
    await time.pass(50);
    expect(hubs.registry.get('hub-1')?.health).to.not.have.property('automation');
    expect(hubs.registry.get('hub-1')?.health.ready?.ok).to.equal(true);
    const restarted = hubFixture({ of: () => undefined }, hubs.store);
    await restarted.registry.ready();
    expect(restarted.registry.get('hub-1')?.health.ready?.ok).to.equal(true);
    await restarted.stop();
  });
  it('leaves simulated hubs and hubs that are gone alone, but looks at what it is asked for', async () => {
    await register('sim-1');
    await register('hub-1');
    await hubs.deregister('hub-1');
    const before = looks.get('hub-1');
    await time.pass(120_000);
    expect(looks.get('sim-1')).to.equal(undefined);
    expect(looks.get('hub-1')).to.equal(before);
    const hub = hubs.registry.get('sim-1');
    if (hub === undefined) throw new Error('not registered');
    answers.set('sim-1', [refused]);
    const asked = await monitor.check(hub, stop.controller.signal);
    expect(asked?.check.problems).to.deep.equal([refused]);
    expect(await newsOf('sim-1')).to.deep.equal(['HubBecameUnreachable']);
  });
});
