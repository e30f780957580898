import { expect } from 'chai';
import { poolDecider } from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import { actingExternalIpPool } from '../../../../src/domain/networks/external-ip-pool.workflow.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done, unknown } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
const PLACED = { placed: true, ...HUB, mode: 'operator', steps: {}, decision: { candidates: [] } };
const HOLDER = { kind: 'externalIpPool', id: 'one' };

const orderPool = () => {
  const run = createStepRun(
    actingExternalIpPool.workflow as Workflow<{ readonly since: object }, RunEvent>,
    poolDecider,
  );
  const spec = { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' };
  const metadata = { name: 'p', finalizers: ['somebody/else'] };
  const document = { metadata, spec } as JsonObject;
  const owner = { tenant: 't1', project: '', creator: 'ann' };
  run.command({ type: 'CreateDocument', at: run.now(), id: run.id, name: 'p', ...owner, document });
  return run;
};
const remove = (run: ReturnType<typeof orderPool>): void =>
  void run.command({ type: 'DeleteDocument', at: run.now() });

describe('the place of an external IP pool on its hub', () => {
  it('is given back once the absence of its object was observed, and not before', () => {
    const run = orderPool();
    run.perform('place', done(PLACED));
    run.perform('apply', done({ uid: 'u' }));
    remove(run);
    expect(run.effects()).to.deep.equal(['undo-apply']);
    run.perform('undo-apply', done({ existed: true }));
    expect(run.effects()).to.not.include('undo-place');
    run.perform('undo-apply', done({ existed: false }));
    const { port, operation, args } = run.effect('undo-place');
    expect([port, operation, args]).to.deep.equal(['scheduler', 'release', { holder: HOLDER, hub: 'sim-1' }]);
    expect(run.pending().commands, 'it has its place until then').to.deep.equal([]);
    run.perform('undo-place', done());
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
    expect(run.subjectTypes().at(-1)).to.equal('ExternalIPPoolWithdrawn');
    expect(run.isFolded()).to.equal(true);
  });
  it('is given back wherever it is where nobody knows whether it was reserved', () => {
    const run = orderPool();
    const { effectId } = run.start('place');
    run.result(effectId, unknown);
    remove(run);
    expect(run.effect('place')).to.deep.include({ operation: 'release', args: { holder: HOLDER } });
    run.perform('place', done());
    run.perform('undo-place', done());
    expect(run.effects()).to.deep.equal([]);
  });
  it('is given back when the answer comes after the deletion', () => {
    const run = orderPool();
    const { effectId } = run.start('place');
    remove(run);
    run.result(effectId, done(PLACED));
    expect(run.effect('undo-place').args).to.deep.equal({ holder: HOLDER, hub: 'sim-1' });
  });
});
