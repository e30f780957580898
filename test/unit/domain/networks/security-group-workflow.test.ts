import { expect } from 'chai';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import { securityGroup } from '../../../../src/domain/networks/security-group.resource.ts';
import { actingSecurityGroup } from '../../../../src/domain/networks/security-group.workflow.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done, refused, unknown } from '../../../support/domain/step-run.ts';

const PLACE = { hub: 'munich', namespace: 'osac', simulated: false, controller: 'operator' } as const;
const READY = { place: { ...PLACE, objectName: 'of-the-network' }, state: 'VIRTUAL_NETWORK_STATE_READY' };
const rule = (port: number) => ({
  protocol: 'PROTOCOL_TCP',
  port_from: port,
  port_to: port,
  ipv4_cidr: '0.0.0.0/0',
});
const onHub = (port: number) => ({ protocol: 'tcp', portFrom: port, portTo: port, sourceCidr: '0.0.0.0/0' });
const network = { virtual_network: { id: 'n1', name: 'net' } };
const seen = (phase: string, version: string) => ({ object: { phase, version }, hub: PLACE.hub });

const orderGroup = () => {
  const run = createStepRun(
    actingSecurityGroup.workflow as Workflow<{ readonly since: object }, RunEvent>,
    securityGroup.decider,
  );
  const of = { id: run.id, name: 'web', tenant: 't1', project: '', creator: 'ann' };
  const document = { metadata: { name: 'web' }, spec: { ...network, ingress: [rule(443)] } };
  run.command({ type: 'CreateDocument', at: run.now(), ...of, document });
  const state = () => {
    const view = securityGroup.view(run.subject());
    return view.exists ? objectAt(view.document, 'status')['state'] : undefined;
  };
  const revise = (more: object) =>
    run.command({ type: 'ReviseDocument', at: run.now(), document: { ...document, ...more } });
  const change = (ingress: object[]) => revise({ spec: { ...network, ingress } });
  const readyAs = (version: string) => {
    run.perform('place', done(READY));
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen('Ready', version));
    expect(state()).to.equal('SECURITY_GROUP_STATE_READY');
  };
  return { ...run, state, revise, change, readyAs };
};

describe('the way of a security group', () => {
  it('waits for its network, and goes to the hub of it with its rules', () => {
    const run = orderGroup();
    run.perform('place', done({ place: READY.place, state: 'VIRTUAL_NETWORK_STATE_PENDING' }));
    run.commands();
    expect([run.effects(), run.timers()]).to.deep.equal([[], ['ask-again:n1']]);
    run.fire('ask-again:n1');
    run.perform('place', done(READY));
    const { args } = run.effect('apply');
    expect(args).to.deep.include({ object: 'SecurityGroup', hub: 'munich' });
    expect(args['name']).to.match(/^securitygroup-[a-z2-7]{13}$/);
    expect(args['spec']).to.deep.equal({
      virtualNetwork: 'n1',
      implementationStrategy: 'network_policy',
      ingressRules: [onHub(443)],
      egressRules: [],
    });
    expect(run.isFolded()).to.equal(true);
  });
  it('is sent again when its rules change, and ready once the hub shows the new ones', () => {
    const run = orderGroup();
    run.readyAs('v1');
    run.change([]);
    expect(run.state()).to.equal('SECURITY_GROUP_STATE_PENDING');
    run.observe(seen('Ready', 'v1'));
    expect(objectAt(run.effect('apply').args, 'spec')['ingressRules']).to.deep.equal([]);
    run.perform('apply', done({ uid: 'u', did: 'patched' }));
    // The operator has not looked at it yet.
    run.observe(seen('Ready', 'v1'));
    expect(run.state()).to.equal('SECURITY_GROUP_STATE_PENDING');
    expect(run.effects(), 'it is looked at until then').to.deep.equal(['read']);
    run.observe(seen('Progressing', 'v2'));
    run.observe(seen('Ready', 'v2'));
    expect([run.state(), run.effects()]).to.deep.equal(['SECURITY_GROUP_STATE_READY', []]);
    expect(run.isFolded()).to.equal(true);
  });
  it('stays ready while it is sent again for a change that a hub does not carry out', () => {
    const run = orderGroup();
    run.readyAs('v1');
    run.revise({ metadata: { name: 'web', labels: { app: 'shop' } } });
    expect(run.state()).to.equal('SECURITY_GROUP_STATE_READY');
    run.perform('apply', done({ uid: 'u', did: 'unchanged' }));
    run.observe(seen('Ready', 'v1'));
    expect([run.state(), run.effects()]).to.deep.equal(['SECURITY_GROUP_STATE_READY', []]);
  });
  it('settles an attempt that has no answer before the changed rules are sent', () => {
    const run = orderGroup();
    run.perform('place', done(READY));
    const { effectId } = run.start('apply');
    run.result(effectId, unknown);
    run.change([rule(22)]);
    expect(run.effect('apply').effectId).to.equal(effectId);
    run.perform('apply', done({ uid: 'u' }));
    const again = run.effect('apply');
    expect(again.effectId).to.not.equal(effectId);
    expect(objectAt(again.args, 'spec')['ingressRules']).to.deep.equal([onHub(22)]);
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen('Ready', 'v2'));
    expect(run.state()).to.equal('SECURITY_GROUP_STATE_READY');
    expect(run.isFolded()).to.equal(true);
  });
  it('is tried again with changed rules after its hub refused the former ones', () => {
    const run = orderGroup();
    run.perform('place', done(READY));
    run.perform('apply', refused);
    run.commands();
    expect(run.state()).to.equal('SECURITY_GROUP_STATE_FAILED');
    run.change([rule(22)]);
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen('Ready', 'v1'));
    expect(run.state()).to.equal('SECURITY_GROUP_STATE_READY');
  });
  it('changes nothing on its hub once it is being deleted or was aborted', () => {
    const run = orderGroup();
    run.readyAs('v1');
    run.command({ type: 'DeleteDocument', at: run.now() });
    run.change([rule(22)]);
    expect(run.effects()).to.deep.equal(['undo-apply']);
    run.perform('undo-apply', done({ existed: true }));
    run.perform('undo-apply', done({ existed: false }));
    run.commands();
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['SecurityGroupDeleted', true]);
    expect(run.isFolded()).to.equal(true);
  });
});
