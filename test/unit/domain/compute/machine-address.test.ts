import { expect } from 'chai';
import { actingComputeInstance } from '../../../../src/domain/compute/compute-instance.workflow.ts';
import { computeInstance } from '../../../../src/domain/compute/compute-instance.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done, failed } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;
const named = (id: string) => ({ id, name: id, revision: 0 });
const EXTERNAL_IP = { pool: { id: 'p1', name: 'public' }, ip: '11111111-ip', attachment: 'a-own' };
const holder = (id: string) => ({ kind: 'externalIpAttachment', id });

/** `externalIp`: it was ordered with one. */
const order = (externalIp?: typeof EXTERNAL_IP) => {
  const run = createStepRun(actingComputeInstance.workflow as AnyWorkflow, computeInstance.decider);
  const resolved = {
    template: named('vm'),
    instanceType: { ...named('small'), cores: 2, memoryGib: 4 },
    diskImage: { ...named('fedora'), sourceRef: 'quay.example/fedora:42', guestOs: 'linux' },
    ...(externalIp === undefined ? {} : { externalIp }),
  };
  const spec = { run_strategy: 'Always', network_attachments: [{ subnet: { id: 's1', name: 's' } }] };
  const common = { id: run.id, tenant: 't1', project: '', creator: 'ann', name: 'web' };
  run.command({ type: 'CreateDocument', at: run.now(), ...common, document: { spec }, resolved });
  return {
    ...run,
    place: () => run.perform('place', done({ place: HUB, state: 'SUBNET_STATE_READY' })),
    apply: () => run.perform('apply', done({ uid: 'u', generation: 1 })),
    attach: (id: string) => run.command({ type: 'AttachTo', at: run.now(), holder: holder(id) }),
    detach: (id: string, generation: number) =>
      run.command({ type: 'DetachFrom', at: run.now(), holder: holder(id), generation }),
    remove: () => run.command({ type: 'DeleteDocument', at: run.now() }),
    status: () => {
      const view = computeInstance.view(run.subject());
      return view.exists ? objectAt(view.document, 'status') : {};
    },
  };
};
const groupsOf = (args: JsonObject): readonly (readonly string[])[] =>
  (listAt(args, 'groups') as readonly JsonObject[][]).map((group) => group.map((one) => stringAt(one, 'id')));

describe('external IPs of a compute instance', () => {
  it('show their address once it is known, until they are detached', () => {
    const run = order();
    run.attach('a1');
    expect(run.status()).not.to.have.property('external_ip_address');
    const tell = (id: string) =>
      run.command({ type: 'AttachTo', at: run.now(), holder: holder(id), address: '192.0.2.7' });
    tell('a1');
    tell('a1');
    expect(run.status()['external_ip_address']).to.equal('192.0.2.7');
    const told = run.subjectTypes().filter((type) => type === 'ComputeInstanceAddressAttached');
    expect(told).to.have.length(2);
    run.detach('a1', 1);
    expect(run.status()).not.to.have.property('external_ip_address');
  });

  it('are made for it where it was ordered so: one and its attachment, with names, labels and annotation', () => {
    const { args } = order(EXTERNAL_IP).effect('make-objects');
    const [ip, attachment] = listAt(args, 'objects') as readonly JsonObject[];
    const metadata = {
      labels: { 'osac.openshift.io/auto-created': 'true', 'osac.openshift.io/auto-created-for': 'one' },
      annotations: { 'osac.openshift.io/owner-reference': 'one' },
    };
    const name = 'web-11111111';
    expect(ip).to.deep.equal({
      kind: 'externalIp',
      id: EXTERNAL_IP.ip,
      name,
      document: { metadata, spec: { pool: EXTERNAL_IP.pool } },
    });
    expect(attachment).to.deep.equal({
      kind: 'externalIpAttachment',
      id: EXTERNAL_IP.attachment,
      name,
      document: {
        metadata,
        spec: {
          external_ip: { id: EXTERNAL_IP.ip, name },
          compute_instance: { id: 'one', name: 'web' },
        },
      },
    });
    expect(order().effects()).not.to.include('make-objects');
  });

  it('do not hold it up, and nobody else attaches one before that', () => {
    const run = order(EXTERNAL_IP);
    expect(run.effects()).to.include.members(['place', 'make-objects']);
    expect(JSON.stringify(run.attach('foreign'))).to.include('already has an external IP');
    run.attach(EXTERNAL_IP.attachment);
    run.detach(EXTERNAL_IP.attachment, 1);
    run.attach('foreign');
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceAddressAttached');
  });

  it('that cannot be made are told of once, with the reason, and hold nothing up until they are made', () => {
    const run = order(EXTERNAL_IP);
    const waiting = (): unknown => actingComputeInstance.order.details(run.subject() as never).waiting;
    run.place();
    const spec = objectAt(run.effect('apply').args, 'spec');
    run.apply();
    const full = {
      outcome: 'refused',
      reason: 'POOL_FULL',
      message: "pool 'public' has no free address",
    } as const;
    run.perform('make-objects', full);
    run.commands();
    expect(waiting()).to.deep.equal({ waiting: { message: full.message } });
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: run.now() }];
    for (let look = 0; look < 3; look += 1) {
      run.observe({ object: { phase: 'Running', generation: 1, conditions, spec }, hub: HUB.hub });
      run.commands();
      run.after(20 * 60_000);
      run.perform('make-objects', full);
      run.commands();
    }
    expect(run.status()['state']).to.equal('COMPUTE_INSTANCE_STATE_RUNNING');
    const told = () => run.subjectTypes().filter((type) => type === 'ComputeInstanceLacking').length;
    expect(run.subjectTypes()).not.to.include('ComputeInstanceFailed');
    expect(told()).to.equal(1);
    run.after(20 * 60_000);
    run.perform('make-objects', done({}));
    run.commands();
    expect(waiting()).to.deep.equal({});
    expect(told()).to.equal(2);
    expect(run.isFolded()).to.equal(true);
  });

  it('go before it: attachments first, whoever made them, then its own address, then the machine', () => {
    const run = order(EXTERNAL_IP);
    run.perform('make-objects', done({}));
    run.attach(EXTERNAL_IP.attachment);
    run.place();
    run.apply();
    run.remove();
    expect(run.effects()).not.to.include('undo-apply');
    expect(groupsOf(run.effect('remove-objects').args)).to.deep.equal([
      [EXTERNAL_IP.attachment],
      [EXTERNAL_IP.ip],
    ]);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      run.perform('remove-objects', failed('StillThere'));
      run.after(60_000);
    }
    run.commands();
    expect(JSON.stringify(run.status())).to.include('what belongs to it is still being removed');
    expect(run.effects()).not.to.include('undo-apply');
    run.detach(EXTERNAL_IP.attachment, 1);
    run.perform('remove-objects', done({}));
    run.perform('undo-apply', done({ existed: false }));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceDeleted');
    expect(run.isFolded()).to.equal(true);
  });

  it('that were attached by hand go before it too', () => {
    const run = order();
    run.place();
    run.apply();
    run.attach('by-hand');
    run.remove();
    expect(groupsOf(run.effect('remove-objects').args)).to.deep.equal([['by-hand'], []]);
  });

  it('hold a machine that has no place yet, whose deletion takes them along', () => {
    const run = order(EXTERNAL_IP);
    run.perform('make-objects', done({}));
    run.remove();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceDeletionRequested');
    run.perform('remove-objects', done({}));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceDeleted');
    const plain = order();
    plain.remove();
    expect(plain.subjectTypes().at(-1)).to.equal('ComputeInstanceDeleted');
  });

  it('stay while it is aborted, for a retry', () => {
    const run = order(EXTERNAL_IP);
    run.perform('make-objects', done({}));
    run.place();
    run.apply();
    run.command({ type: 'AbortOrder', at: run.now(), reason: 'too slow' });
    expect(run.effects()).not.to.include('remove-objects');
    run.perform('undo-apply', done({ existed: false }));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceWithdrawn');
    run.remove();
    run.perform('remove-objects', done({}));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceDeleted');
  });

  it('are gone with what others still hold', () => {
    const run = order(EXTERNAL_IP);
    run.command({
      type: 'ReviseDocument',
      at: run.now(),
      document: {
        metadata: { finalizers: ['x'] },
        spec: objectAt((run.subject() as never as { document: JsonObject }).document, 'spec'),
      },
    });
    run.place();
    run.remove();
    run.perform('remove-objects', done({}));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceWithdrawn');
    run.commands();
    expect(run.subjectTypes().filter((type) => type === 'ComputeInstanceWithdrawn')).to.have.length(1);
  });
});
