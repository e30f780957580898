import { expect } from 'chai';
import fc from 'fast-check';
import { findingsOf, type HubFindings, type ReportHubCheck } from '../../../../src/domain/hubs/health.ts';
import { differentCluster } from '../../../../src/domain/hubs/identity.ts';
import { hub } from '../../../../src/domain/hubs/hub.resource.ts';
import type { HubEvent } from '../../../../src/domain/hubs/hub.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';

const at = '2026-11-21T12:00:00.000Z';
const minutes = (count: number): string => new Date(Date.parse(at) + count * 60_000).toISOString();
const ref = (version: string) => ({ id: 'k', version, kind: 'kubeconfig', fingerprint: 'f' }) as const;
const registered = (id = 'hub-1', spec: JsonObject = {}): HubEvent => ({
  type: 'HubRegistered',
  data: {
    id,
    at,
    tenant: 'shared',
    project: '',
    name: id,
    creator: 'system',
    document: { spec: { namespace: 'osac-hub', ...spec } },
    secrets: { 'spec.kubeconfig': ref('1') },
  },
});
const report = (findings: HubFindings, when = at): ReportHubCheck => ({
  type: 'ReportHubCheck',
  at: when,
  kubeconfig: '1',
  findings,
});
const EDA = { mode: 'eda', endpoints: { eda: 'http://rulebook:5000' } };
const WELL: HubFindings = { reachable: [], credentials: [], requirements: [], version: 'v1.36.0' };
const refusedConnection = { code: 'Unreachable', message: 'connection refused' };

describe('hubs: health', () => {
  const { given } = specify(hub.decider);
  const after = (...reports: readonly ReportHubCheck[]): HubEvent[] => seen(registered(), reports);
  const seen = (first: HubEvent, reports: readonly ReportHubCheck[]): HubEvent[] => {
    const events: HubEvent[] = [first];
    for (const each of reports) events.push(...(given(...events).when(each).decision as HubEvent[]));
    return events;
  };
  const statusOf = (events: readonly HubEvent[]): JsonObject => {
    const view = hub.view(given(...events).state());
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  const condition = (events: readonly HubEvent[], type: string): JsonObject | undefined =>
    listAt(statusOf(events), 'conditions')
      .map((each) => each as JsonObject)
      .find((each) => each['type'] === type);

  it('given a hub without a kind that clusters do not need: is ready, and says so until the kind is there', () => {
    const lacked = {
      kind: 'ExternalIPPool',
      code: 'CrdMissing',
      message: 'install its CRD',
      subject: 'pools',
    };
    expect(findingsOf({ problems: [], lacking: [lacked] })).to.deep.include({ lacking: [lacked] });
    expect(after(report({ ...WELL, lacking: [] })).map(({ type }) => type)).to.not.include('HubKindsSeen');
    const found = after(
      report({ ...WELL, lacking: [lacked] }),
      report({ ...WELL, lacking: [lacked] }, minutes(1)),
    );
    const told = { type: 'HubKindsSeen', data: { at, lacking: [lacked] } };
    expect(found.filter(({ type }) => type === 'HubKindsSeen')).to.deep.equal([told]);
    expect(condition(found, 'Ready')).to.deep.include({ status: 'CONDITION_STATUS_TRUE' });
    expect(condition(found, 'ServesAllKinds')).to.deep.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'CrdMissing',
      message: 'ExternalIPPool: install its CRD',
      last_transition_time: at,
    });
    given(...found)
      .when(report({ ...WELL, lacking: [] }, minutes(2)))
      .thenEvents({ type: 'HubKindsSeen', data: { at: minutes(2), lacking: [] } });
    const other = report({ identity: [], cluster: 'other', lacking: [lacked] });
    const known = after(report({ ...WELL, cluster: 'this' }), other);
    expect(known.map(({ type }) => type)).to.not.include('HubKindsSeen');
  });

  it('given a hub that another service drives: says so, is not ready, and tells when it is driven here again', () => {
    const elsewhere = { code: 'DrivenElsewhere', message: 'deployment east drives it', subject: 'copy' };
    const found = after(report(WELL), report({ driver: [] }), report({ driver: [elsewhere] }, minutes(1)));
    expect(found.at(-1)).to.deep.equal({
      type: 'HubFoundDrivenElsewhere',
      data: { at: minutes(1), problems: [elsewhere] },
    });
    expect(found.filter(({ type }) => type === 'HubDrivingResumed')).to.deep.equal([]);
    expect(condition(found, 'DrivenHere')).to.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'DrivenElsewhere',
    });
    expect(condition(found, 'Ready')).to.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'DrivenElsewhere',
    });
    const again = seen(registered(), [
      report(WELL),
      report({ driver: [elsewhere] }, minutes(1)),
      report({ driver: [] }, minutes(2)),
    ]);
    expect(again.at(-1)).to.deep.equal({ type: 'HubDrivingResumed', data: { at: minutes(2) } });
    expect(condition(again, 'Ready')).to.include({ status: 'CONDITION_STATUS_TRUE' });
  });

  it('a first look that finds nothing wrong tells that all is well, each thing once', () => {
    given(registered())
      .when(report(WELL))
      .thenEvents(
        { type: 'HubBecameReachable', data: { at } },
        { type: 'HubCredentialsAccepted', data: { at } },
        { type: 'HubFoundComplete', data: { at } },
        { type: 'HubVersionSeen', data: { at, version: 'v1.36.0' } },
      );
    given(...after(report(WELL)))
      .when(report(WELL, minutes(60)))
      .thenNothing();
    expect(statusOf(after(report(WELL)))).to.deep.include({ adapter: 'kubernetes', version: 'v1.36.0' });
    expect(condition(after(report(WELL)), 'Ready')).to.deep.include({ status: 'CONDITION_STATUS_TRUE' });
  });
  it('the first cluster that answers is the hub; another one is a state of its own, and nothing else of it counts', () => {
    const ours = { ...WELL, cluster: 'uid-1' };
    const first = after(report(WELL), report(ours, minutes(1)));
    expect(first.at(-1)).to.deep.equal({ type: 'HubIdentified', data: { at: minutes(1), cluster: 'uid-1' } });
    given(...first)
      .when(report(ours, minutes(60)))
      .thenNothing();
    const other = {
      ...WELL,
      version: 'v1.40.0',
      cluster: 'uid-2',
      hosts: { a: { free: 1, ours: 0, foreign: 0 } },
    };
    const events = after(report(ours), report({ ...other, requirements: [refusedConnection] }, minutes(2)));
    expect(events.slice(-1)[0]?.type).to.equal('HubFoundToBeAnotherCluster');
    expect(events.slice(-2)[0]?.type).to.equal('HubVersionSeen');
    const conditions = [condition(events, 'SameCluster'), condition(events, 'Ready')];
    for (const each of conditions) {
      expect(each).to.deep.include({ status: 'CONDITION_STATUS_FALSE', reason: 'DifferentCluster' });
      expect(each?.['message'])
        .to.include('uid-1')
        .and.include('uid-2')
        .and.include('--accept-cluster uid-2');
    }
    expect(condition(events, 'Compatible')).to.deep.include({ status: 'CONDITION_STATUS_TRUE' });
    const back = given(...events).when(report(ours, minutes(3))).decision;
    expect(back).to.deep.equal([{ type: 'HubIdentified', data: { at: minutes(3), cluster: 'uid-1' } }]);
    given(...events)
      .when(report({ ...WELL, version: 'v1.36.0' }, minutes(3)))
      .thenNothing();
  });

  it('a cluster that the document names is taken for the hub, and no other one', () => {
    const named = (uid: string): HubEvent => ({
      type: 'HubRevised',
      data: {
        at,
        secrets: { 'spec.kubeconfig': ref('1') },
        document: {
          metadata: { annotations: { 'fulfillment-ledger/cluster': uid } },
          spec: { namespace: 'osac-hub' },
        },
      },
    });
    const events = [...after(report({ ...WELL, cluster: 'uid-1' })), named('uid-2')];
    given(...events)
      .when(report({ ...WELL, cluster: 'uid-2' }, minutes(1)))
      .thenEvents({ type: 'HubIdentified', data: { at: minutes(1), cluster: 'uid-2' } });
    // Who looked did not know of it yet.
    given(...events)
      .when(
        report(findingsOf({ problems: [differentCluster('uid-1', 'uid-2')], cluster: 'uid-2' }), minutes(1)),
      )
      .thenEvents({ type: 'HubIdentified', data: { at: minutes(1), cluster: 'uid-2' } });
    for (const uid of ['uid-1', 'uid-3']) {
      const decision = given(...events).when(report({ ...WELL, cluster: uid }, minutes(1))).decision;
      expect((decision as readonly HubEvent[]).map(({ type }) => type)).to.deep.equal([
        'HubFoundToBeAnotherCluster',
      ]);
    }
  });

  it('who does not answer tells nothing of credentials and kinds, and keeps what was known of them', () => {
    const events = after(report(WELL), report(findingsOf({ problems: [refusedConnection] }), minutes(1)));
    expect(events.at(-1)).to.deep.equal({
      type: 'HubBecameUnreachable',
      data: { at: minutes(1), problems: [refusedConnection] },
    });
    expect(condition(events, 'Reachable')).to.deep.equal({
      type: 'Reachable',
      status: 'CONDITION_STATUS_FALSE',
      last_transition_time: minutes(1),
      reason: 'Unreachable',
      message: 'connection refused',
    });
    expect(condition(events, 'Compatible')).to.deep.include({ status: 'CONDITION_STATUS_TRUE' });
    expect(condition(events, 'Ready')).to.deep.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'Unreachable',
    });
  });
  it('refused credentials, missing kinds and failing automation are told apart', () => {
    expect(
      findingsOf({ problems: [{ code: 'CredentialsRefused', message: '401' }], version: 'v1' }),
    ).to.deep.equal({
      reachable: [],
      credentials: [{ code: 'CredentialsRefused', message: '401' }],
      version: 'v1',
    });
    const missing = { code: 'CrdMissing', message: 'no clusterorders', subject: 'clusterorders' };
    expect(findingsOf({ problems: [missing] })).to.deep.equal({
      reachable: [],
      credentials: [],
      requirements: [missing],
    });
    const failing = { code: 'AutomationFailing', message: 'no listener' };
    const events = seen(registered('hub-1', EDA), [
      report({ ...WELL, requirements: [missing], automation: [failing] }),
    ]);
    expect(condition(events, 'Compatible')).to.deep.include({ reason: 'CrdMissing' });
    expect(condition(events, 'AutomationReachable')).to.deep.include({ message: 'no listener' });
    expect(condition(events, 'Ready')).to.deep.include({ reason: 'CrdMissing' });
  });
  it('a failing listener counts only in a mode that has one, whenever the mode was left', () => {
    const failing = { code: 'AutomationFailing', message: 'no listener' };
    const failed = seen(registered('hub-1', EDA), [report({ ...WELL, automation: [failing] })]);
    expect(condition(failed, 'Ready')).to.deep.include({ reason: 'AutomationFailing' });
    const document = { spec: { namespace: 'osac-hub', mode: 'operator' } };
    const secrets = { 'spec.kubeconfig': ref('1') };
    const left: HubEvent[] = [...failed, { type: 'HubRevised', data: { at: minutes(1), document, secrets } }];
    expect(condition(left, 'AutomationReachable')).to.equal(undefined);
    expect(condition(left, 'Ready')).to.deep.include({
      status: 'CONDITION_STATUS_TRUE',
      last_transition_time: minutes(1),
    });
    given(...left)
      .when(report({ ...WELL, automation: [failing] }, minutes(2)))
      .thenNothing();
    const late: HubEvent = { type: 'HubAutomationFailed', data: { at: minutes(2), problems: [failing] } };
    expect(condition([...left, late], 'Ready')).to.deep.include({ status: 'CONDITION_STATUS_TRUE' });
  });
  it('another problem of the same thing is news; only another wording is, after ten minutes', () => {
    const missing = (subject: string, message = 'missing') => ({ code: 'CrdMissing', message, subject });
    const before = after(report({ ...WELL, requirements: [missing('a')] }));
    const next = (problem: ReturnType<typeof missing>, when: string) =>
      given(...before).when(report({ ...WELL, requirements: [problem] }, when)).decision;
    expect(next(missing('b'), minutes(1))).to.have.lengthOf(1);
    expect(next(missing('a', 'gone'), minutes(1))).to.deep.equal([]);
    expect(next(missing('a', 'gone'), minutes(10))).to.have.lengthOf(1);
    const events = [...before, ...(next(missing('b'), minutes(1)) as HubEvent[])];
    expect(condition(events, 'Compatible')).to.deep.include({ last_transition_time: at });
  });
  it('hosts are counted again only when they changed, and at most once a minute', () => {
    const hosts = (free: number) => ({ ...WELL, hosts: { fc430: { free, ours: 2, foreign: 0 } } });
    const before = after(report(hosts(4)));
    expect(statusOf(before)['hosts']).to.deep.equal({ fc430: { free: 4, ours: 2 } });
    given(...before)
      .when(report(hosts(3), new Date(Date.parse(at) + 59_000).toISOString()))
      .thenNothing();
    given(...before)
      .when(report(hosts(4), minutes(5)))
      .thenNothing();
    given(...before)
      .when(report(hosts(3), minutes(1)))
      .thenEvents({
        type: 'HubHostsCounted',
        data: { at: minutes(1), hosts: { fc430: { free: 3, ours: 2, foreign: 0 } } },
      });
  });
  it('keeps of a flood of problems and classes what a document can hold, and tells it once', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => ({
        code: 'RightMissing',
        message: 'm'.repeat(5_000),
        subject: `s${i}`,
      }));
    const hosts = Object.fromEntries(
      many(1_000).map(({ subject }) => [subject, { free: 1, ours: 0, foreign: 0 }]),
    );
    const flood = { ...WELL, requirements: many(1_000), hosts };
    const events = after(report(flood));
    expect(JSON.stringify(events).length).to.be.lessThan(100_000);
    given(...events)
      .when(report(flood, minutes(30)))
      .thenNothing();
  });
  it('news of credentials that were replaced meanwhile, or of a hub that is gone, are none', () => {
    const { kubeconfig: _used, ...unsaid } = report(WELL);
    given(registered()).when(unsaid).thenNothing();
    given(registered())
      .when({ ...report(WELL), kubeconfig: '0' })
      .thenNothing();
    given(registered(), { type: 'HubDeregistered', data: { at } }).when(report(WELL)).thenNothing();
    given().when(report(WELL)).thenNothing();
  });
  it('what was seen of a hub is not told of the next one under its id', () => {
    const events = [...after(report(WELL)), { type: 'HubDeregistered', data: { at } } as const, registered()];
    expect(condition(events, 'Ready')).to.deep.include({ reason: 'NotChecked' });
    const revised = {
      type: 'HubRevised',
      data: { at, document: { spec: {} }, secrets: { 'spec.kubeconfig': ref('1') } },
    } as const;
    expect(condition([...after(report(WELL)), revised], 'Ready')).to.deep.include({ reason: 'Checked' });
  });
  it('a simulated hub shows conditions only once something was wrong', () => {
    expect(statusOf([registered('sim-1')])).to.deep.equal({ adapter: 'simulated' });
  });
  it('whatever is reported, repeating it adds nothing, and Ready sums the others up', () => {
    const problem = fc.record({
      code: fc.constantFrom(
        'InvalidKubeconfig',
        'Unreachable',
        'CredentialsRefused',
        'CrdMissing',
        'RightMissing',
      ),
      message: fc.string(),
      subject: fc.constantFrom('a', 'b'),
    });
    const reports = fc.array(fc.array(problem, { maxLength: 3 }), { minLength: 1, maxLength: 8 });
    check(
      fc.property(reports, (found) => {
        const events = after(...found.map((problems, i) => report(findingsOf({ problems }), minutes(i))));
        const last = report(findingsOf({ problems: found.at(-1) ?? [] }), minutes(found.length));
        expect(given(...events).when(last).decision).to.deep.equal([]);
        const conditions = listAt(statusOf(events), 'conditions').map((each) => each as JsonObject);
        const [ready, ...others] = conditions;
        const good = others.every((each) => stringAt(each, 'status') === 'CONDITION_STATUS_TRUE');
        expect(ready?.['status']).to.equal(good ? 'CONDITION_STATUS_TRUE' : 'CONDITION_STATUS_FALSE');
      }),
    );
  });
});
