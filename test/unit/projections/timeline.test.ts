import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { clusterEventTypes } from '../../../src/domain/clusters/event-types.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { processEventTypes } from '../../../src/domain/process/event-types.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { actingCluster } from '../../../src/domain/clusters/acting.ts';
import { summaryOf as tell, timelineView } from '../../../src/projections/timeline/timeline-view.ts';
import { openReadConnection } from '../../../src/projections/runner/read-connection.ts';
import { timelineReader } from '../../../src/projections/timeline/timeline-reader.ts';
import { createViews } from '../../../src/projections/views.ts';
import { recorded } from '../../support/streams/samples.ts';
import { toyKind } from '../../support/process-runner/toy-kind.ts';
import { createTestLog, type TestLog } from '../../support/projections/log.ts';
import { settle } from '../../support/projections/open-notes.ts';

const summaryOf = (type: string, data: JsonObject) => tell(actingCluster, type, data);
const AT = '2026-01-01T00:00:00.000Z';

describe('view timeline', () => {
  let log: TestLog;
  let models: ReadModels;
  const of = (audience: 'tenant' | 'provider', after?: string, limit = 100) =>
    models.timeline.of('cluster', 'c1', { audience, limit, ...(after !== undefined && { after }) });

  beforeEach(async () => {
    log = createTestLog();
    models = await openReadModels({
      dir: undefined,
      views: createViews(),
      source: { kind: 'inline', reader: log.store },
    });
  });
  afterEach(() => models.close());

  it('joins the events of an order and of its workflow run, oldest first', async () => {
    await log.append('cluster-c1', { type: 'ClusterLabelled', data: { at: AT, labels: { a: 'b' } } });
    await log.append('clusterOrder-c1', {
      type: 'EffectStarted',
      data: { at: AT, effectId: 'place', attempt: 1, epoch: 1 },
    });
    await log.append('cluster-c2', { type: 'ClusterBecameReady', data: { at: AT } });
    const position = await log.append('cluster-c1', { type: 'ClusterBecameReady', data: { at: AT } });
    await settle(models, log, 'timeline');
    expect(of('provider').map(({ type }) => type)).to.deep.equal([
      'ClusterLabelled',
      'EffectStarted',
      'ClusterBecameReady',
    ]);
    expect(of('tenant').map(({ type }) => type)).to.deep.equal(['ClusterLabelled', 'ClusterBecameReady']);
    expect(of('provider').at(-1)).to.deep.equal({
      position,
      at: '2026-01-01T00:00:04.000Z',
      type: 'ClusterBecameReady',
      audience: 'tenant',
      summary: 'The cluster is ready.',
      data: JSON.stringify({ at: AT }),
      actor: 'somebody',
      correlationId: 'correlation-4',
    });
  });

  it('goes on behind a position, in bounded pages', async () => {
    const positions: string[] = [];
    for (let i = 0; i < 5; i += 1)
      positions.push(await log.append('cluster-c1', { type: 'ClusterBecameReady', data: { at: AT } }));
    await settle(models, log, 'timeline');
    expect(of('tenant', undefined, 2).map(({ position }) => position)).to.deep.equal(positions.slice(0, 2));
    expect(of('tenant', positions[1], 2).map(({ position }) => position)).to.deep.equal(
      positions.slice(2, 4),
    );
    expect(of('tenant', positions[4])).to.deep.equal([]);
    const data = JSON.stringify({ at: AT }).length;
    for (const [characters, entries] of [
      [1, 1],
      [data, 1],
      [data + 1, 2],
      [5 * data, 5],
    ] as const)
      expect(
        models.timeline.of('cluster', 'c1', { audience: 'tenant', limit: 100, characters }),
      ).to.have.length(entries);
  });

  it('shows tenants neither fields nor words that only the provider may see', async () => {
    await log.append('cluster-c1', {
      type: 'HubSelected',
      data: {
        at: AT,
        hub: 'hub-x',
        namespace: 'ns-x',
        mode: 'operator',
        simulated: false,
        controller: 'ledger',
        steps: { agents: 'hub' },
        orderName: 'order-x',
        decision: { weightsVersion: 1, candidates: [] },
      },
    });
    await settle(models, log, 'timeline');
    const [provider] = of('provider');
    const [tenant] = of('tenant');
    expect(provider?.summary).to.contain('hub-x');
    expect(provider?.data).to.contain('ns-x');
    expect(tenant?.summary).to.equal('A management cluster was selected.');
    expect(JSON.stringify(tenant)).not.to.match(/hub-x|ns-x|order-x|candidates/);
  });

  it('leaves out internal events and types it does not know', async () => {
    await log.append('cluster-c1', {
      type: 'AutomationTried',
      data: { at: AT, purpose: 'provision', repeats: 1, wording: '0.0' },
    });
    await log.append('cluster-c1', { type: 'OfANewerRelease', data: { anything: 'x' } });
    await settle(models, log, 'timeline');
    expect(of('provider')).to.deep.equal([]);
  });
});

describe('view timeline of several kinds', () => {
  it('keeps objects of one id apart, each told as its kind declares', () => {
    const view = timelineView({
      words: { decode: ({ type, data }) => ({ type, data }), redact: (event) => event },
      kinds: [toyKind, actingCluster],
    });
    const db = new DatabaseSync(':memory:');
    db.exec(view.schema);
    const apply = view.open(db);
    for (const [revision, [stream, type, data]] of [
      ['toy-c1', 'ToyMade', {}],
      ['toyRun-c1', 'EffectSucceeded', { effectId: 'wind:1' }],
      ['toyRun-c1', 'TimerFired', { timerId: 'nap' }],
      ['cluster-c1', 'ClusterBecameReady', {}],
      ['toy-c1', 'ToyBroken', { reason: 'rust' }],
      ['hub-c1', 'HubRevised', {}],
    ].entries() as Iterable<[number, [string, string, JsonObject]]>)
      apply(recorded(type, data, { stream, revision }));
    const { of } = timelineReader(openReadConnection(db));
    const told = (kind: string) =>
      of(kind, 'c1', { limit: 9, audience: 'provider' }).map(({ summary }) => summary);
    expect(told('toy')).to.have.members([
      'A toy was made.',
      'Step wind:1 (to wind it up) is done.',
      'It has slept enough.',
      'The toy broke: rust.',
    ]);
    expect(told('cluster')).to.deep.equal(['The cluster is ready.']);
    expect(view.filter).to.deep.equal({ streamPrefixes: ['toy-', 'toyRun-', 'cluster-', 'clusterOrder-'] });
  });
});

describe('summaries', () => {
  for (const { type } of [...clusterEventTypes, ...processEventTypes]) {
    it(`${type} has a sentence, also when everything in it was redacted`, () => {
      const summary = summaryOf(type, {});
      expect(summary).to.match(/^[A-Z].*\.$/);
      expect(summary).not.to.match(/undefined|null|NaN|\[object/);
    });
  }

  it('a type of a newer release shows its name', () => {
    expect(summaryOf('SomethingNew', {})).to.equal('SomethingNew');
  });

  it('say why a hub was chosen, and what a step is for', () => {
    const candidates = [
      { hub: 'east', fits: true, reasons: [], scores: {}, total: 1.25 },
      { hub: 'west', fits: false, reasons: ['hub is cordoned', 'full'], scores: {}, total: 0 },
    ];
    expect(summaryOf('HubSelected', { hub: 'east', decision: { candidates } })).to.equal(
      'Hub "east" was selected from 2 candidates: east scores 1.25; west: hub is cordoned, full.',
    );
    const many = Array.from({ length: 7 }, (_, n) => ({ hub: `h${n}`, fits: true, total: n }));
    expect(summaryOf('HubSelected', { hub: 'h6', decision: { candidates: many } })).to.match(/; 2 more\.$/);
    expect(summaryOf('EffectStarted', { effectId: 'trigger:0.0.0', attempt: 2 })).to.equal(
      'Step trigger:0.0.0 (to ask the automation to build or change it) was started, attempt 2.',
    );
    expect(summaryOf('EffectSucceeded', { effectId: 'constructor:1' })).to.equal(
      'Step constructor:1 is done.',
    );
  });

  it('read like sentences', () => {
    const ordered = {
      name: 'web',
      template: { id: 'ocp', name: 'OpenShift', revision: 1 },
      version: { id: 'v', name: '4.20', version: '4.20.1', releaseImage: 'secret.example/image' },
      nodeSets: { workers: { hostType: { id: 'h', name: 'large' }, size: 3 } },
    };
    expect(summaryOf('ClusterOrdered', ordered)).to.equal(
      'Cluster "web" was ordered from template OpenShift, version 4.20.1 (workers 3 nodes of type large).',
    );
    expect(summaryOf('ClusterOrdered', { ...ordered, catalogItem: { id: 'i', name: 'dev' } })).to.contain(
      'was ordered from catalogue item dev, template OpenShift, version',
    );
    expect(summaryOf('NodeSetResized', { name: 'workers', from: 3, to: 0 })).to.equal(
      'Node set "workers" is to be resized from 3 to 0 nodes.',
    );
    // Whether its controller takes it up is another thing.
    expect(summaryOf('ClusterOrderPlaced', { hub: 'east-1' })).to.equal('The hub "east-1" stored the order.');
    expect(summaryOf('ClusterSpecSynced', { hub: 'east-1' })).to.equal(
      'The hub "east-1" stored the changed specification.',
    );
    expect(
      summaryOf('AutomationRequested', {
        hub: 'east-1',
        mode: 'aap',
        purpose: 'provision',
        repeats: 1,
        job: '7',
      }),
    ).to.equal(
      'The automation of the hub "east-1" was asked to build or change the cluster: job 7, attempt 2: the job before failed.',
    );
    expect(summaryOf('AutomationRequested', { purpose: 'deprovision', repeats: 0 })).to.equal(
      'The automation of the hub was asked to tear down the cluster.',
    );
    expect(
      summaryOf('AutomationJobChanged', {
        purpose: 'provision',
        job: '7',
        state: 'Failed',
        outputTail: 'x\nno hosts.\n',
      }),
    ).to.equal('The job 7 to build or change the cluster has failed: no hosts.');
    const spec = { network: { podCidr: '10.0.0.0/14' }, version: { id: 'v2', version: '4.22.0' } };
    expect(summaryOf('ClusterSpecRevised', { spec, changed: ['version'] })).to.equal(
      'The specification was changed: version to 4.22.0.',
    );
    expect(
      summaryOf('ClusterSpecRevised', { spec, changed: ['network', 'pullSecret', 'pullSecretSecret'] }),
    ).to.equal('The specification was changed: network, pull secret.');
    expect(summaryOf('ClusterDeletionOverdue', { since: 'noon', waitingFor: ['HostedCluster c'] })).to.equal(
      'The deletion is overdue since noon; it waits for HostedCluster c. It goes on.',
    );
    expect(summaryOf('ClusterFailed', { reason: 'Quota', message: '', permanent: true })).to.equal(
      'The order failed: Quota. It waits for a retry or a deletion.',
    );
    expect(
      summaryOf('ClusterChangeFailed', {
        change: "resize of node set 'workers' from 2 to 3",
        message: "the provider's automation failed (correlation id c-1)",
      }),
    ).to.equal(
      "The resize of node set 'workers' from 2 to 3 failed: the provider's automation failed (correlation id c-1). The cluster runs on as before.",
    );
    expect(summaryOf('ClusterConditionsObserved', { conditions: {}, ready: {} })).to.equal(
      'The hub no longer shows node counts.',
    );
    const counted = { conditions: { NodesReady: { status: 'True' } }, ready: { workers: 2 } };
    expect(summaryOf('ClusterConditionsObserved', counted)).to.equal(
      'Conditions: NodesReady True. Ready nodes: workers 2.',
    );
    expect(summaryOf('PlacementDeferred', { message: 'waiting for 2 × h100', runs: true })).to.equal(
      'The change is waiting for 2 × h100; the cluster runs on as before.',
    );
    expect(summaryOf('PlacementDeferred', { message: 'waiting for 2 × h100 in zone east' })).to.equal(
      'The order is waiting for 2 × h100 in zone east.',
    );
    expect(
      summaryOf('ClusterConditionsObserved', { conditions: { NodesReady: { status: 'True' } } }),
    ).to.equal('Conditions: NodesReady True.');
  });

  it('say why a condition is what it is, as the hub told it, each in bounded length and one line', () => {
    const conditions = {
      ClusterAvailable: { status: 'True', reason: 'AsExpected', message: '' },
      TemplateApplied: { status: 'False', reason: 'JobFailed', message: 'no free hosts\nof type fc430.' },
      NodesReady: { status: 'NotObservable', reason: 'NotObservable', message: 'not shown' },
      InfrastructureReady: { status: 'False', reason: 'R'.repeat(90), message: `${'é'.repeat(198)}😀😀😀` },
    };
    expect(summaryOf('ClusterConditionsObserved', { conditions })).to.equal(
      'Conditions: ClusterAvailable True, TemplateApplied False (JobFailed: no free hosts of type fc430), ' +
        `NodesReady NotObservable (not shown), InfrastructureReady False (${'R'.repeat(79)}…: ${'é'.repeat(198)}…).`,
    );
  });

  it('say who does each step of an order', () => {
    const steps = ['agents', 'dns', 'install'];
    const rules = (rule: string) => Object.fromEntries(steps.map((step) => [step, rule]));
    const told = (hub: string, assigned: object): string =>
      summaryOf('HubSelected', { hub, steps: assigned as JsonObject }).replace(/^.*? candidates\. /, '');
    expect(told('sim-east-1', rules('ledger'))).to.equal(
      'Steps of the order: the ledger does agents, dns, install.',
    );
    expect(told('sim-east-1', rules('hub'))).to.equal(
      'The simulated hub "sim-east-1" plays every step itself (agents, dns, install): nothing real is set up.',
    );
    expect(told('hub-1', rules('hub'))).to.equal(
      'Steps of the order: hub "hub-1" does agents, dns, install.',
    );
    expect(told('hub-1', { agents: 'hub', dns: 'none', install: 'ledger' })).to.equal(
      'Steps of the order: hub "hub-1" does agents; left out: dns; the ledger does install.',
    );
  });
});
