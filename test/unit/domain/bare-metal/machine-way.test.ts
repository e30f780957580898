import { expect } from 'chai';
import {
  bareMetalDecider,
  bareMetalInstance,
} from '../../../../src/domain/bare-metal/bare-metal-instance.resource.ts';
import { actingBareMetalInstance } from '../../../../src/domain/bare-metal/bare-metal-instance.workflow.ts';
import { bareMetalMeter } from '../../../../src/domain/bare-metal/bare-metal-meter.ts';
import { BARE_METAL_INSTANCE, BARE_METAL_USER_DATA } from '../../../../src/domain/bare-metal/hub-objects.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { Metering } from '../../../../src/domain/metering/meter.ts';
import { lifecycleRecords } from '../../../../src/domain/metering/records.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { SecretRef } from '../../../../src/domain/secret-ref.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;
const named = (id: string) => ({ id, name: id, revision: 0 });
const RESOLVED = {
  template: named('osac.templates.server'),
  catalogItem: named('server'),
  hostType: 'h100',
  instanceType: { ...named('h100'), selector: { class: 'h100' } },
};
const REF: SecretRef = { id: 's', version: '1', kind: 'user-data', fingerprint: '0'.repeat(16) };
const ATTACHED = {
  network_attachments: [
    {
      subnet: { id: 's1', name: 's' },
      security_groups: [{ id: 'g1', name: 'g' }],
      interface: 'ens1',
      primary: true,
    },
  ],
};
const HALTED = 'BARE_METAL_INSTANCE_RUN_STRATEGY_HALTED';

const order = (spec: JsonObject = ATTACHED, secrets: { [path: string]: SecretRef } = {}) => {
  const run = createStepRun(actingBareMetalInstance.workflow as AnyWorkflow, bareMetalDecider);
  const document = { spec: { catalog_item: { id: 'server', name: 'server' }, ...spec } };
  const common = { id: run.id, tenant: 't1', project: '', creator: 'ann', name: 'm' };
  const made = { type: 'CreateDocument', at: run.now(), ...common, document, resolved: RESOLVED } as const;
  run.command({ ...made, ...(Object.keys(secrets).length === 0 ? {} : { secrets }) });
  let sent: JsonObject = {};
  let generation = 0;
  return {
    ...run,
    sent: () => sent,
    shown: (): JsonObject => {
      const view = bareMetalInstance.view(run.subject());
      return view.exists ? objectAt(view.document, 'status') : {};
    },
    place: () => run.perform('place', done({ place: HUB, state: 'SUBNET_STATE_READY' })),
    apply: () => {
      sent = objectAt(run.effect('apply').args, 'spec');
      run.perform('apply', done({ uid: 'u', generation: (generation += 1) }));
    },
    /** `power`: condition PowerSynced, as status and reason. */
    hub: (phase: string, power?: string, more: object = {}) => {
      const [status, reason, lastTransitionTime] = power?.split(' ') ?? [];
      const conditions =
        power === undefined
          ? []
          : [
              { type: 'ProvisionTemplateComplete', status: 'True', reason: 'Done' },
              { type: 'PowerSynced', status, reason, ...(lastTransitionTime && { lastTransitionTime }) },
            ];
      const object = { phase, spec: sent, generation, conditions, nics: [], attachments: [], ...more };
      run.observe({ object, hub: HUB.hub });
      run.commands();
    },
    change: (changes: JsonObject) => {
      const { spec } = (run.subject() as never as { document: { spec: JsonObject } }).document;
      return run.command({
        type: 'ReviseDocument',
        at: run.now(),
        document: { spec: { ...spec, ...changes } },
      });
    },
  };
};
const stateIn = (status: JsonObject): string =>
  stringAt(status, 'state').replace('BARE_METAL_INSTANCE_STATE_', '');

describe('the way of a bare-metal instance', () => {
  it('follows its first subnet to its hub and sends what was resolved with the order', () => {
    const run = order({
      ...ATTACHED,
      ssh_public_key: 'ssh-ed25519 AAAA',
      image: { source_type: 'http', source_ref: 'https://images.example/i' },
      restart_trigger: '3',
    });
    expect(run.effect('place').args).to.deep.equal({ parent: { kind: 'subnet', id: 's1' } });
    expect(stateIn(run.shown())).to.equal('');
    run.place();
    expect(stateIn(run.shown())).to.equal('PROVISIONING');
    const spec = objectAt(run.effect('apply').args, 'spec');
    const { templateParameters, ...others } = spec;
    expect(others).to.deep.equal({
      hostType: 'default',
      externalHostID: '',
      templateID: 'osac.templates.server',
      runStrategy: 'Always',
      restartTrigger: 3,
      selector: { hostSelector: { class: 'h100' } },
      networkAttachments: [{ subnetRef: 's1', securityGroupRefs: ['g1'], interface: 'ens1', primary: true }],
    });
    expect(JSON.parse(templateParameters as string)).to.deep.equal({
      sshPublicKey: 'ssh-ed25519 AAAA',
      imageURL: 'https://images.example/i',
      imageSourceType: 'http',
    });
    expect(BARE_METAL_INSTANCE.spec.safeParse(spec).success).to.equal(true);
    run.apply();
    run.hub('Ready', 'True PowerOn', {
      nics: ['02:00:00:00:00:01'],
      attachments: [{ interface: 'ens1', subnet: 's1', address: '10.0.1.5', primary: true }],
      restartTrigger: 3,
    });
    expect(stateIn(run.shown())).to.equal('RUNNING');
    expect(run.shown()).to.deep.include({
      hub: 'sim-1',
      restart_trigger: '3',
      hardware: { nics: [{ mac: '02:00:00:00:00:01' }] },
      network_attachment_statuses: [
        { interface: 'ens1', subnet_ref: 's1', ip_address: '10.0.1.5', primary: true },
      ],
    });
    expect(run.isFolded()).to.equal(true);
  });

  it('has its user data on the hub before it, and takes it away after it', () => {
    const run = order(ATTACHED, { 'spec.user_data': REF });
    run.place();
    expect(run.effects()).not.to.include('apply');
    run.perform('user-data', done({ uid: 's', generation: 1 }));
    const parameters = stringAt(objectAt(run.effect('apply').args, 'spec'), 'templateParameters');
    expect(JSON.parse(parameters)).to.deep.equal({ userDataSecret: BARE_METAL_USER_DATA.nameOf('one') });
    run.apply();
    run.command({ type: 'DeleteDocument', at: run.now() });
    expect(stateIn(run.shown())).to.equal('DELETING');
    expect(run.effects()).not.to.include('undo-user-data');
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-user-data', done({ existed: false }));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('BareMetalInstanceDeleted');
  });

  it('asks the scheduler for a hub where it is attached to nothing, and gives its place back', () => {
    const run = order({});
    expect(run.effects()).to.deep.equal(['choose-hub']);
    run.perform('choose-hub', done({ placed: false, message: 'no hub is open' }));
    run.commands();
    expect(listAt(run.shown(), 'conditions')[0]).to.include({ message: 'no hub is open' });
    run.fire('ask-again');
    run.perform('choose-hub', done({ placed: true, ...HUB, decision: {} }));
    expect(objectAt(run.effect('apply').args, 'spec')).not.to.have.property('networkAttachments');
    run.apply();
    run.command({ type: 'DeleteDocument', at: run.now() });
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-choose-hub', done({ placed: false }));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('BareMetalInstanceDeleted');
  });

  it('shows what the words of its operator come to', () => {
    for (const [phase, power, state] of [
      ['Progressing', undefined, 'PROVISIONING'],
      ['Ready', 'True PowerOn', 'RUNNING'],
      ['Ready', 'True PowerOff', 'STOPPED'],
      ['Ready', 'False Progressing', 'STARTING'],
      ['Ready', 'False PowerSyncRequired', 'STARTING'],
      ['Ready', 'False PowerSyncFailed', 'FAILED'],
      ['Ready', 'False IronicAPIFailure', 'FAILED'],
      ['Failed', undefined, 'FAILED'],
      ['Deleting', undefined, 'DELETING'],
    ] as const) {
      const run = order();
      run.place();
      run.apply();
      run.hub(phase, power);
      expect(stateIn(run.shown()), `${phase} ${power}`).to.equal(state);
    }
    const run = order({ ...ATTACHED, run_strategy: HALTED });
    run.place();
    run.apply();
    run.hub('Ready', 'False Progressing');
    expect(stateIn(run.shown())).to.equal('STOPPING');
  });

  it('fails and recovers as its hub does; what was once provisioned stays so', () => {
    const run = order();
    run.place();
    run.apply();
    const condition = (type: string) =>
      listAt(run.shown(), 'conditions').find((one) => stringAt(one, 'type').endsWith(`_${type}`));
    run.hub('Failed', undefined, { message: 'host bmc-7 does not answer' });
    expect(condition('PROVISIONED')).to.include({
      status: 'CONDITION_STATUS_FALSE',
      message: 'the hub shows the bare metal instance as failed',
    });
    expect(JSON.stringify(run.shown())).not.to.include('bmc-7');
    run.hub('Ready', 'True PowerOn');
    expect(condition('PROVISIONED')).to.include({ status: 'CONDITION_STATUS_TRUE' });
    expect(condition('READY')).to.include({ status: 'CONDITION_STATUS_TRUE' });
    run.hub('Failed');
    expect(condition('PROVISIONED')).to.include({ status: 'CONDITION_STATUS_TRUE' });
    expect(condition('READY')).to.include({ status: 'CONDITION_STATUS_FALSE' });
  });

  it('restarts once for another trigger, and is done once its hub repeats it', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Ready', 'True PowerOn');
    expect('done' in run.subject()).to.equal(true);
    run.change({ restart_trigger: '-4' });
    expect('done' in run.subject()).to.equal(false);
    run.apply();
    expect(run.sent()['restartTrigger']).to.equal(-4);
    run.hub('Ready', 'True PowerOn', { restartTrigger: -4 });
    expect('done' in run.subject()).to.equal(true);
    expect(run.shown()).to.include({ restart_trigger: '-4' });
  });

  it('waits for a host and says so, without what its hub says of it', () => {
    const run = order();
    run.place();
    run.apply();
    const conditions = [{ type: 'Allocated', status: 'False', reason: 'NoMatchingHost' }];
    run.hub('Allocating', undefined, { conditions, message: 'rack r7 is full' });
    expect(stateIn(run.shown())).to.equal('PROVISIONING');
    expect(listAt(run.shown(), 'conditions')[0]).to.include({
      message: 'its hub has no free host that matches it',
    });
    expect(JSON.stringify(run.shown())).not.to.include('r7');
    run.hub('Ready', 'True PowerOn');
    expect(stateIn(run.shown())).to.equal('RUNNING');
  });

  it('is sent again where somebody changed its power on the hub, and never for what a host brought', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Ready', 'True PowerOn', { spec: { ...run.sent(), externalHostID: 'host-1' }, generation: 2 });
    expect(run.subjectTypes()).not.to.include('BareMetalInstanceDriftSeen');
    run.hub('Ready', 'True PowerOn', { spec: { ...run.sent(), runStrategy: 'Halted' }, generation: 2 });
    expect(run.subjectTypes().at(-1)).to.equal('BareMetalInstanceDriftSeen');
    expect(objectAt(run.effect('apply').args, 'spec')['runStrategy']).to.equal('Always');
  });

  it('takes no power while it is being returned', () => {
    const run = order();
    run.place();
    run.apply();
    run.command({ type: 'DeleteDocument', at: run.now() });
    expect(run.change({ run_strategy: HALTED })).to.include({
      accepted: false,
      code: 'DELETION_REQUESTED',
    });
    expect(run.change({})).to.include({ accepted: true, changed: false });
  });
});

describe('the bill of a bare-metal instance', () => {
  it('reserves nothing for an order that fails before it has a host, and ends with its host', () => {
    const reserved = (run: ReturnType<typeof order>): boolean => {
      let meter = bareMetalMeter.initial();
      for (const event of run.subjectLog()) ({ meter } = bareMetalMeter.fold(meter, event as never));
      return meter.open.some(({ component }) => component.nodeSet === 'reserved');
    };
    const allocated = (status: string) => ({
      conditions: [{ type: 'Allocated', status, reason: 'HostAllocated' }],
    });
    const run = order();
    run.place();
    run.apply();
    run.hub('Failed');
    expect(reserved(run)).to.equal(false);
    run.hub('Failed', undefined, allocated('False'));
    expect(reserved(run)).to.equal(false);
    run.hub('Failed', undefined, allocated('True'));
    expect(reserved(run)).to.equal(true);
    run.hub('Failed');
    expect(reserved(run), 'nobody says that it is gone').to.equal(true);
    run.hub('Failed', undefined, allocated('False'));
    expect(reserved(run)).to.equal(false);
    run.hub('Progressing');
    expect(reserved(run)).to.equal(true);
    run.hub('Allocating');
    expect(reserved(run)).to.equal(false);
  });

  it('counts the seconds that its host is reserved and that it is powered on, as additions to OSAC', () => {
    const run = order();
    const records = () => {
      let before = bareMetalMeter.initial();
      return run.subjectLog().flatMap((event, index) => {
        const { meter: after, changes } = bareMetalMeter.fold(before, event as never);
        before = after;
        return lifecycleRecords(`e${index}`, after as Metering, changes);
      });
    };
    run.place();
    run.apply();
    run.hub('Progressing');
    run.hub('Ready', 'True PowerOn 2026-11-21T12:00:00Z');
    run.after(60 * 60_000);
    run.hub('Ready', 'True PowerOff 2026-11-21T12:30:00Z');
    run.command({ type: 'DeleteDocument', at: run.now() });
    run.perform('undo-apply', done({ existed: false }));
    run.commands();
    const told = records().map(({ type, data }) => [
      type.split('.')[2],
      stringAt(objectAt(data, 'billing_dimensions'), 'measure'),
      data['duration_seconds'],
    ]);
    expect(told.map(([type, measure]) => [type, measure])).to.deep.equal([
      ['created', ''],
      ['started', 'reserved'],
      ['updated', 'powered'],
      ['updated', 'powered'],
      ['suspended', 'reserved'],
      ['deleted', ''],
    ]);
    expect(Number(told[3]?.[2])).to.be.closeTo(1_800, 1);
    expect(Number(told[4]?.[2])).to.be.closeTo(3_600, 2);
    expect(records()[1]?.data).to.deep.include({
      resource_type: 'bare_metal_instance',
      template_id: 'osac.templates.server',
      catalog_item_id: 'server',
      billing_dimensions: { host_type: 'h100', bare_metal_instance_type: 'h100', measure: 'reserved' },
    });
  });

  it('goes on until it is off: neither a change that takes its time nor a late look interrupts it', () => {
    const run = order();
    run.place();
    run.apply();
    run.hub('Ready', 'True PowerOn 2026-11-21T12:00:00Z');
    run.hub('Progressing');
    run.hub('Ready', 'True PowerOn 2026-11-21T12:00:00Z');
    run.after(20 * 60_000);
    run.hub('Ready', 'False Progressing 2026-11-21T12:20:00Z');
    run.after(15 * 60_000);
    run.hub('Ready', 'True PowerOff 2026-11-21T12:30:00Z');
    let meter = bareMetalMeter.initial();
    const powered = run.subjectLog().flatMap((event) => {
      const step = bareMetalMeter.fold(meter, event as never);
      meter = step.meter;
      return step.closed.filter(({ component }) => component.nodeSet === 'powered');
    });
    expect(powered).to.have.length(1);
    const [once] = powered;
    expect((once?.untilMs ?? 0) - (once?.sinceMs ?? 0)).to.be.closeTo(1_800_000, 1_000);
  });
});
