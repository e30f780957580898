import { expect } from 'chai';
import { actingComputeInstance } from '../../../../src/domain/compute/compute-instance.workflow.ts';
import { computeInstance } from '../../../../src/domain/compute/compute-instance.resource.ts';
import { COMPUTE_INSTANCE, USER_DATA_SECRET } from '../../../../src/domain/compute/hub-objects.ts';
import type { Metering } from '../../../../src/domain/metering/meter.ts';
import { lifecycleRecords } from '../../../../src/domain/metering/records.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { SECURITY_GROUP, SUBNET } from '../../../../src/domain/networks/hub-objects.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { SecretRef } from '../../../../src/domain/secret-ref.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;
const named = (id: string) => ({ id, name: id, revision: 0 });
const RESOLVED = {
  template: named('osac.templates.vm'),
  instanceType: { ...named('small'), cores: 2, memoryGib: 4 },
  diskImage: { ...named('fedora'), sourceRef: 'quay.example/fedora:42', guestOs: 'linux' },
};
const REF: SecretRef = { id: 's', version: '1', kind: 'user-data', fingerprint: '0'.repeat(16) };
const SPEC: JsonObject = {
  template: { id: 'osac.templates.vm', name: 'vm' },
  instance_type: { id: 'small', name: 'small' },
  disk_image: { id: 'fedora', name: 'fedora' },
  boot_disk: { size_gib: 20 },
  run_strategy: 'Always',
  network_attachments: [{ subnet: { id: 's1', name: 's' }, security_groups: [{ id: 'g1', name: 'g' }] }],
};

/** `hub`: what its object there shows besides the spec that was sent last. */
const order = (spec: JsonObject = {}, secrets: { [path: string]: SecretRef } = {}) => {
  const run = createStepRun(actingComputeInstance.workflow as AnyWorkflow, computeInstance.decider);
  const document = { spec: { ...SPEC, ...spec } };
  const common = { id: run.id, tenant: 't1', project: '', creator: 'ann', name: 'm' };
  const made = { type: 'CreateDocument', at: run.now(), ...common, document, resolved: RESOLVED } as const;
  run.command({ ...made, ...(Object.keys(secrets).length === 0 ? {} : { secrets }) });
  let sent: JsonObject = {};
  let generation = 0;
  const shown = (): JsonObject => {
    const view = computeInstance.view(run.subject());
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  return {
    ...run,
    shown,
    sent: () => sent,
    place: () => run.perform('place', done({ place: HUB, state: 'SUBNET_STATE_READY' })),
    apply: () => {
      sent = objectAt(run.effect('apply').args, 'spec');
      run.perform('apply', done({ uid: 'u', generation: (generation += 1) }));
    },
    hub: (phase: string, more: object = {}) => {
      const object = { phase, spec: sent, generation, conditions: [], ...more };
      run.observe({ object, hub: HUB.hub });
      run.commands();
    },
    change: (changes: JsonObject) => {
      const spec = {
        ...objectAt((run.subject() as never as { document: JsonObject }).document, 'spec'),
        ...changes,
      };
      return run.command({ type: 'ReviseDocument', at: run.now(), document: { spec } });
    },
  };
};
const stateIn = (status: JsonObject): string =>
  stringAt(status, 'state').replace('COMPUTE_INSTANCE_STATE_', '');

const ready = (is: boolean, lastTransitionTime: string) => ({
  conditions: [{ type: 'Ready', status: is ? 'True' : 'False', lastTransitionTime }],
});

describe('the bill of a compute instance', () => {
  it("counts the seconds that its hub states it ran, in OSAC's form", () => {
    const run = order();
    const meter = actingComputeInstance.meter;
    if (meter === undefined) throw new TypeError('it is metered');
    const records = () => {
      let before = meter.initial();
      return run.subjectLog().flatMap((event, index) => {
        const { meter: after, changes } = meter.fold(before, event as never);
        before = after;
        return lifecycleRecords(`e${index}`, after as Metering, changes);
      });
    };
    run.place();
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    run.after(60 * 60_000);
    // The service was away when it stopped.
    run.hub('Stopped', ready(false, '2026-11-21T12:30:00Z'));
    expect(records().map(({ type }) => type.split('.')[2])).to.deep.equal([
      'created',
      'started',
      'suspended',
    ]);
    const [, started, stopped] = records();
    expect(started?.id).to.match(/^e\d+$/);
    expect(stopped?.data).to.deep.include({
      resource_type: 'compute_instance',
      template_id: 'vm',
      previous_state: 'RUNNING',
      current_state: 'STOPPED',
      transition_time: '2026-11-21T12:30:00.000000000Z',
      billing_dimensions: { instance_type: 'small', image_ref: 'fedora', boot_disk_size_gib: 20 },
    });
    expect(Number(stopped?.data['duration_seconds'])).to.be.closeTo(1_800, 1);
  });
});

describe('a compute instance whose change fails', () => {
  it('runs on as its hub shows it and says why; one that never ran has failed', () => {
    const fail = (run: ReturnType<typeof order>) =>
      run.command({
        type: 'RecordFailure',
        at: run.now(),
        reason: 'HubRefused',
        message: 'the hub refused it',
      });
    const run = order();
    run.place();
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    run.change({ ssh_public_key: 'k' });
    fail(run);
    expect(stateIn(run.shown())).to.equal('RUNNING');
    const provisioned = listAt(run.shown(), 'conditions').find((one) =>
      stringAt(one, 'type').endsWith('_PROVISIONED'),
    );
    expect(provisioned).to.include({ status: 'CONDITION_STATUS_FALSE', message: 'the hub refused it' });
    const never = order();
    never.place();
    fail(never);
    expect(stateIn(never.shown())).to.equal('FAILED');
  });
});

describe('a restart that nobody saw', () => {
  const meter = actingComputeInstance.meter;
  const billed = (run: ReturnType<typeof order>): readonly string[] => {
    let before = meter?.initial();
    return run.subjectLog().flatMap((event) => {
      if (before === undefined || meter === undefined) return [];
      const { meter: after, closed } = meter.fold(before, event as never);
      before = after;
      return closed.map(({ sinceMs, untilMs }) =>
        [sinceMs, untilMs].map((ms) => new Date(ms).toISOString().slice(11, 19)).join('-'),
      );
    });
  };
  const running = () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    run.after(3 * 60 * 60_000);
    return run;
  };

  it('is not billed, from when its hub began it until the machine ran again', () => {
    const run = running();
    const restarted = { ...ready(true, '2026-11-21T13:00:40Z'), lastRestartedAt: '2026-11-21T13:00:10Z' };
    run.hub('Running', restarted);
    run.hub('Running', restarted);
    run.hub('Stopped', { ...ready(false, '2026-11-21T14:00:00Z'), lastRestartedAt: '2026-11-21T13:00:10Z' });
    expect(billed(run)).to.deep.equal(['12:00:00-13:00:10', '13:00:40-14:00:00']);
  });

  it('of which its hub tells one moment only leaves the bill as it is', () => {
    const run = running();
    const at = '2026-11-21T13:00:40Z';
    run.hub('Running', { ...ready(true, at), lastRestartedAt: at });
    run.after(60 * 60_000);
    run.hub('Stopped', { ...ready(false, '2026-11-21T15:30:00Z'), lastRestartedAt: at });
    expect(billed(run)).to.deep.equal(['12:00:00-15:30:00']);
  });
});

describe('the way of a compute instance', () => {
  it('takes a status that comes back as it was read for no report of a caller', () => {
    const run = order();
    run.place();
    run.apply();
    run.after(60 * 60_000);
    run.hub('Running', ready(true, '2026-11-21T12:10:00Z'));
    const document = (state: string) => {
      const state_transition_time = '2026-11-21T12:10:00Z';
      return {
        spec: { ...SPEC, ssh_public_key: 'k' },
        status: { ...run.shown(), state, state_transition_time },
      };
    };
    expect(run.shown()['state_transition_time']).to.equal('2026-11-21T12:10:00.000Z');
    const revise = (state: string) =>
      run.command({ type: 'ReviseDocument', at: run.now(), document: document(state) });
    const told = () => run.subjectLog().filter(({ type }) => type === 'ComputeInstanceStatusReported').length;
    revise(stringAt(run.shown(), 'state'));
    expect(told()).to.equal(0);
    revise('COMPUTE_INSTANCE_STATE_PAUSED');
    expect(told()).to.equal(1);
  });

  it('needs no other restart where it was off when that was due', () => {
    const run = order({ run_strategy: 'Halted' });
    run.place();
    run.apply();
    run.hub('Stopped', ready(false, '2026-11-21T12:00:00Z'));
    const later = '2026-11-21T13:00:00.000Z';
    run.change({ restart_requested_at: later });
    run.apply();
    run.fire(`due:${later}`);
    run.commands();
    run.apply();
    run.change({ restart_requested_at: later, run_strategy: 'Always' });
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T13:30:00Z'));
    expect('done' in run.subject()).to.equal(true);
    expect(run.isFolded()).to.equal(true);
  });

  it('closes a console session that was cut off a minute after its limit', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    const until = '2026-11-21T12:30:00.000Z';
    const over = '2026-11-21T12:31:00.000Z';
    const common = { clientId: 'c', subjectId: 'ann', ticketUntil: until, until, instance: 'i' };
    const open = (session: string, console: 'serial' | 'vnc') =>
      run.command({ type: 'OpenConsole', at: run.now(), session, console, alone: false, ...common });
    open('s1', 'serial');
    open('s2', 'vnc');
    run.command({ type: 'CloseConsole', at: run.now(), session: 's2', reason: 'left' });
    const closings = () =>
      run
        .subjectLog()
        .filter(({ type }) => type === 'ComputeInstanceConsoleClosed')
        .map(
          ({ data }) =>
            `${stringAt(data as JsonObject, 'session')} ${stringAt(data as JsonObject, 'reason')}`,
        );
    run.commands();
    expect(closings()).to.deep.equal(['s2 left']);
    run.fire(`consoles:${over}`);
    run.commands();
    expect(closings()).to.deep.equal(['s2 left', 's1 interrupted']);
    expect(run.isFolded()).to.equal(true);
  });

  it('gives no new console from the moment it is to be stopped until it runs again', () => {
    const run = order();
    const without = () => actingComputeInstance.consoles?.without(run.subject());
    run.place();
    run.apply();
    expect(without()).to.equal('stopped');
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    expect(without()).to.equal(undefined);
    run.change({ run_strategy: 'Halted' });
    expect(stateIn(run.shown())).to.equal('RUNNING');
    expect(without()).to.equal('stopping');
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    expect(without()).to.equal('stopping');
    run.hub('Stopped', ready(false, '2026-11-21T12:01:00Z'));
    expect(without()).to.equal('stopped');
    run.change({ run_strategy: 'Always' });
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:02:00Z'));
    expect(without()).to.equal(undefined);
  });

  it('follows its first subnet to its hub and sends what was resolved with the order', () => {
    const run = order({ additional_disks: [{ size_gib: 5 }] });
    expect(run.effect('place').args).to.deep.equal({ parent: { kind: 'subnet', id: 's1' } });
    expect(stateIn(run.shown())).to.equal('');
    run.place();
    expect(stateIn(run.shown())).to.equal('STARTING');
    const { args } = run.effect('apply');
    expect(args['spec']).to.deep.equal({
      templateID: 'osac.templates.vm',
      templateParameters: '{}',
      cores: 2,
      memoryGiB: 4,
      image: { sourceType: 'registry', sourceRef: 'quay.example/fedora:42' },
      bootDisk: { sizeGiB: 20 },
      additionalDisks: [{ sizeGiB: 5 }],
      runStrategy: 'Always',
      guestOSFamily: 'linux',
      networkAttachments: [
        { subnetRef: SUBNET.nameOf('s1'), securityGroupRefs: [SECURITY_GROUP.nameOf('g1')] },
      ],
    });
    expect(args['labels']).to.deep.equal({ 'osac.openshift.io/instance-type-name': 'small' });
    expect(COMPUTE_INSTANCE.spec.safeParse(args['spec']).success).to.equal(true);
    run.apply();
    run.hub('Starting');
    run.hub('Running', { ipAddress: '10.0.1.5' });
    expect(run.shown()).to.include({ internal_ip_address: '10.0.1.5', hub: 'sim-1' });
    expect(stateIn(run.shown())).to.equal('RUNNING');
    expect(run.isFolded()).to.equal(true);
  });

  it('has its user data on the hub before it, as a reference to the secret, and takes it away after it', () => {
    const run = order({}, { 'spec.user_data': REF });
    run.place();
    expect(run.effects()).not.to.include('apply');
    const { args } = run.effect('user-data');
    expect(args).to.deep.include({
      name: USER_DATA_SECRET.nameOf('one'),
      secrets: { userData: REF },
      spec: {},
    });
    run.perform('user-data', done({ uid: 's', generation: 1 }));
    expect(objectAt(run.effect('apply').args, 'spec')['userDataSecretRef']).to.deep.equal({
      name: USER_DATA_SECRET.nameOf('one'),
    });
    run.apply();
    run.command({ type: 'DeleteDocument', at: run.now() });
    expect(stateIn(run.shown())).to.equal('DELETING');
    expect(run.effects()).not.to.include('undo-user-data');
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-user-data', done({ existed: false }));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceDeleted');
  });

  it('shows each phase of its hub and keeps the time at which it was entered', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Running');
    const since = run.shown()['state_transition_time'];
    run.hub('Running', { ipAddress: '10.0.1.5' });
    expect(run.shown()['state_transition_time']).to.equal(since);
    run.hub('Paused');
    expect(stateIn(run.shown())).to.equal('PAUSED');
    expect(run.shown()['state_transition_time']).not.to.equal(since);
    run.hub('Failed', { message: 'no room on the node' });
    expect(stateIn(run.shown())).to.equal('FAILED');
    run.hub('Running');
    expect(stateIn(run.shown())).to.equal('RUNNING');
  });

  it('is sent again where somebody changed it on the hub, and not where only the hub is behind', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Running');
    run.hub('Running', { spec: { ...run.sent(), runStrategy: 'Halted' }, generation: 0 });
    expect(run.subjectTypes()).not.to.include('ComputeInstanceDriftSeen');
    run.hub('Running', { spec: { ...run.sent(), runStrategy: 'Halted' }, generation: 2 });
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceDriftSeen');
    expect(objectAt(run.effect('apply').args, 'spec')['runStrategy']).to.equal('Always');
  });

  it('is restarted at the time that was asked for, once', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Running');
    const later = '2026-11-21T13:00:00.000Z';
    run.change({ restart_requested_at: later });
    run.apply();
    expect(run.sent()['restartRequestedAt']).to.equal(undefined);
    run.fire(`due:${later}`);
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('ComputeInstanceRestartDue');
    run.apply();
    expect(run.sent()['restartRequestedAt']).to.equal(later);
    run.hub('Running');
    expect(computeInstance.view(run.subject())).to.include({ state: 'COMPUTE_INSTANCE_STATE_RUNNING' });
    expect('done' in run.subject()).to.equal(false);
    run.hub('Running', { lastRestartedAt: '2026-11-21T13:00:00Z' });
    expect('done' in run.subject()).to.equal(true);
    expect(run.isFolded()).to.equal(true);
  });

  it('shows the six conditions of its hub, and what stands in its way before that', () => {
    const run = order();
    run.perform('place', done({ place: null, state: '' }));
    run.commands();
    expect(listAt(run.shown(), 'conditions')[0]).to.include({
      type: 'COMPUTE_INSTANCE_CONDITION_TYPE_PROVISIONED',
      status: 'CONDITION_STATUS_FALSE',
      message: 'its subnet is on no hub yet',
    });
    run.fire('ask-again:s1');
    run.place();
    run.apply();
    const types = ['ConfigurationApplied', 'Ready', 'Provisioned', 'RestartInProgress', 'RestartFailed'];
    const conditions = [...types, 'RestartRequired', 'SomethingElse'].map((type) => ({
      type,
      status: 'True',
    }));
    run.hub('Running', { conditions });
    expect(listAt(run.shown(), 'conditions').map((one) => stringAt(one, 'type'))).to.have.length(6);
  });
});

describe('a machine that runs while a change of it fails', () => {
  const failed = () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Running', ready(true, '2026-11-21T12:00:00Z'));
    run.change({ run_strategy: 'Halted' });
    run.command({ type: 'RecordFailure', at: run.now(), reason: 'HubUnavailable', message: 'no answer' });
    return run;
  };

  it('is shown as its hub shows it, with the reason, and stays on the bill', () => {
    const run = failed();
    expect(stateIn(run.shown())).to.equal('RUNNING');
    const [provisioned] = listAt(run.shown(), 'conditions').filter(
      (one) => stringAt(one, 'type') === 'COMPUTE_INSTANCE_CONDITION_TYPE_PROVISIONED',
    );
    expect(provisioned).to.deep.include({ reason: 'HubUnavailable', message: 'no answer' });
    let last = actingComputeInstance.meter?.initial();
    for (const event of run.subjectLog())
      last = last && actingComputeInstance.meter?.fold(last, event as never).meter;
    expect(last?.open).to.have.length(1);
  });

  it('is shown as failed once it was given up', () => {
    const run = failed();
    run.command({ type: 'AbortOrder', at: run.now(), reason: 'not needed' });
    expect(stateIn(run.shown())).to.equal('FAILED');
  });
});
