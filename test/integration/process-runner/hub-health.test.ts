import { expect } from 'chai';
import type { Automations } from '../../../src/app/automation.ts';
import { createHubHealth, type HubHealthMonitor } from '../../../src/app/hub-health.ts';
import type { HubProblem, HubReport, ManagementCluster } from '../../../src/app/management-cluster.ts';
import { CLUSTER_ANNOTATION } from '../../../src/domain/hubs/identity.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { systemIds } from '../../../src/adapters/system/system-ports.ts';
import { fakeCluster, hubFixture, type HubFixture } from '../../support/hub-fixture.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { silentLogger } from '../../support/loggers.ts';

const refused: HubProblem = { code: 'Unreachable', message: 'connection refused' };
const unauthorized: HubProblem = { code: 'CredentialsRefused', message: 'the token is not accepted' };

describe('hub health', () => {
  let hubs: HubFixture;
  let time: ManualTime;
  let monitor: HubHealthMonitor;
  let running: Promise<void>;
  const stop = { controller: new AbortController() };
  /** What each hub answers now; `hang` never does. */
  const answers = new Map<string, readonly HubProblem[] | 'hang'>();
  const looks = new Map<string, number>();
  /** Which cluster answers as a hub, and which one its adapter was told last. */
  const clusters = new Map<string, string>();
  const told = new Map<string, string | undefined>();
  let automationProblems: readonly string[] = [];
  let recovered: string[] = [];

  const adapter = (id: string): ManagementCluster =>
    fakeCluster(id, {
      simulated: false,
      check: async (): Promise<HubReport> => {
        looks.set(id, (looks.get(id) ?? 0) + 1);
        const problems = answers.get(id) ?? [];
        if (problems === 'hang') return new Promise<never>(() => undefined);
        const cluster = clusters.get(id);
        return {
          problems,
          version: 'v1.36.0',
          canReadAgents: true,
          ...(cluster === undefined ? {} : { cluster }),
        };
      },
      inventory: async () => ({ fc430: { free: 3, ours: 1, foreign: 2 } }),
    });
  const automations: Automations = {
    of: () => ({
      trigger: async () => ({ kind: 'queued' }),
      check: async () => ({ problems: automationProblems }),
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
    clusters.clear();
    told.clear();
    automationProblems = [];
    recovered = [];
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
