import { CLUSTER_ORDER, relaunchParameters } from '../../../../src/domain/clusters/hub-objects.ts';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { configVersion, sameSpec } from '../../../../src/domain/clusters/config-version.ts';
import { assess } from '../../../../src/domain/clusters/observation.ts';
import type { ObservedHosted, ObservedOrder } from '../../../../src/domain/clusters/observed.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { onHub } from './automated-run.ts';
import { createOrderRun, done, refused, unknown } from './order-run.ts';
import { scale } from './order-steps.ts';
import { healthy, observedOrder, time } from './samples.ts';

/** A ClusterOrder as a real operator left it. */
const recorded = (file: string): ObservedOrder => {
  const text = readFileSync(
    new URL(`../../../../fixtures/operator/snapshots/${file}`, import.meta.url),
    'utf8',
  );
  const order = CLUSTER_ORDER.shown(JSON.parse(text) as JsonObject);
  if (order === undefined) throw new Error(`${file} holds no order`);
  return order;
};
const FAILED = '08-job-failed.json';
const LOST = '33-hosted-cluster-lost.json';
const relaunched = (order: ObservedOrder): ObservedOrder => {
  const templateParameters = relaunchParameters(order, order.spec.templateParameters);
  if (templateParameters === undefined) throw new Error('nothing is to be written');
  return { ...order, spec: { ...order.spec, templateParameters } };
};
const verdictOf = (
  order: ObservedOrder,
  wanted: ObservedOrder,
  hostedCluster: ObservedHosted | null = null,
): string => {
  const assessment = assess(
    { order, hostedCluster },
    {
      spec: wanted.spec,
      nodeSets: { workers: { hostType: { id: 'fc430' }, size: 2 } },
      controller: 'operator',
      wasAvailable: false,
      wasReady: false,
    },
  );
  return assessment.found ? assessment.verdict.kind : 'not found';
};

describe('clusters: what a retry stores so that the operator launches again', () => {
  it('changes the hash of what was recorded as failed or lost, and nothing that is ordered', () => {
    for (const file of [FAILED, LOST]) {
      const before = recorded(file);
      const after = relaunched(before);
      expect(configVersion(before.spec), 'the hash is the operator’s').to.equal(before.desiredConfigVersion);
      expect(configVersion(after.spec), file).to.not.equal(configVersion(before.spec));
      expect(JSON.parse(after.spec.templateParameters)).to.deep.equal(
        JSON.parse(before.spec.templateParameters),
      );
      expect(sameSpec(after.spec, before.spec), 'no drift').to.equal(true);
    }
  });

  it('has failed by its job before that, and progresses after it', () => {
    const before = recorded(FAILED);
    expect(verdictOf(before, before)).to.equal('failed');
    expect(verdictOf(relaunched(before), before)).to.equal('progressing');
    // The operator has seen it and launched; the phase stays Failed until the job succeeds.
    const { spec } = relaunched(before);
    const version = configVersion(spec);
    const [job] = before.jobs;
    if (job === undefined) throw new Error('no job was recorded');
    const running = { ...job, jobId: '103', state: 'Running', configVersion: version };
    const seen = { ...before, spec, desiredConfigVersion: version, jobs: [job, running] };
    expect(verdictOf(seen, before)).to.equal('progressing');
    const failed = { ...seen, jobs: [job, { ...running, state: 'Failed' }] };
    expect(verdictOf(failed, before)).to.equal('failed');
    const lost = recorded(LOST);
    expect(verdictOf(relaunched(lost), lost)).to.equal('progressing');
  });

  it('is another text each time, in the same place', () => {
    const job = { jobId: '1', type: 'provision', state: 'Failed', timestamp: time(1) };
    const texts = ['{"a":"{ }"}', '{ "a":"{ }"}', '{  "a":"{ }"}'];
    const [wanted = ''] = texts;
    for (const [i, templateParameters] of texts.slice(0, -1).entries())
      expect(
        relaunchParameters({ spec: { ...observedOrder().spec, templateParameters }, jobs: [job] }, wanted),
      ).to.equal(texts[i + 1]);
  });

  it('is nothing while a job is under way, before the first one, and where another spec is not launched yet', () => {
    const { spec } = observedOrder();
    const of = (...jobs: ObservedOrder['jobs']) => relaunchParameters({ spec, jobs }, '{}');
    const job = { jobId: '1', type: 'provision', timestamp: time(1) };
    for (const state of ['Pending', 'Waiting', 'Running', 'Unknown'])
      expect(of({ ...job, state }), state).to.equal(undefined);
    expect(of()).to.equal(undefined);
    expect(of({ ...job, state: 'Failed', configVersion: '0123456789abcdef' })).to.equal(undefined);
    for (const state of ['Succeeded', 'Failed', 'Canceled']) expect(of({ ...job, state })).to.equal('{ }');
  });

  it('white space within a parameter is ordered, and counts', () => {
    const { spec } = observedOrder();
    const withText = (templateParameters: string) => ({ ...spec, templateParameters });
    expect(sameSpec(withText('{ "a": "b \\" c" }'), withText('{"a":"b \\" c"}'))).to.equal(true);
    expect(sameSpec(withText('{"a":"b  c"}'), withText('{"a":"b c"}'))).to.equal(false);
    expect(sameSpec(withText('{"a":"\\"b  c"}'), withText('{"a":"\\"b c"}'))).to.equal(false);
  });
});

describe('cluster order: the first sending of a retry', () => {
  const failedJob = healthy({
    order: observedOrder({
      jobs: [{ jobId: '1', type: 'provision', state: 'Failed', timestamp: time(4) }],
    }),
    hostedCluster: null,
  });
  const asks = (run: ReturnType<typeof createOrderRun>) => run.effect('apply').args['relaunch'];

  it('asks for a launch, also when its answer was lost; what comes after it does not', () => {
    const run = createOrderRun();
    run.toHub();
    run.observe(failedJob);
    run.commands();
    run.command({ type: 'RetryCluster', at: time(45) });
    expect(asks(run)).to.equal(true);
    run.perform('apply', unknown);
    expect(asks(run)).to.equal(true);
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    scale(run, 4);
    run.commands();
    run.perform('resize', done({ resized: true }));
    expect(run.effect('apply').args).to.not.have.property('relaunch');
  });

  it('is like any other where nobody retried', () => {
    const run = createOrderRun();
    run.toHub();
    scale(run, 4);
    run.commands();
    run.perform('resize', done({ resized: true }));
    expect(run.effect('apply').args).to.not.have.property('relaunch');
  });

  it('asks for none where the ledger asks the automation itself', () => {
    const run = onHub('aap');
    run.perform('trigger', refused);
    run.commands();
    expect(run.command({ type: 'RetryCluster', at: time(45) }).accepted).to.equal(true);
    expect(run.effect('apply').args).to.not.have.property('relaunch');
  });
});
