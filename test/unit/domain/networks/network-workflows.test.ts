import { expect } from 'chai';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import { natGateway } from '../../../../src/domain/networks/nat-gateway.resource.ts';
import { actingNatGateway } from '../../../../src/domain/networks/nat-gateway.workflow.ts';
import { subnet } from '../../../../src/domain/networks/subnet.resource.ts';
import { actingSubnet } from '../../../../src/domain/networks/subnet.workflow.ts';
import { virtualNetwork } from '../../../../src/domain/networks/virtual-network.resource.ts';
import { actingVirtualNetwork } from '../../../../src/domain/networks/virtual-network.workflow.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
const PLACED = { placed: true, ...HUB, mode: 'operator', steps: {}, decision: { candidates: [] } };
const common = { tenant: 't1', project: '', creator: 'ann' };
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;

const orderNetwork = (annotations: object = {}, creator = 'ann') => {
  const run = createStepRun(actingVirtualNetwork.workflow as AnyWorkflow, virtualNetwork.decider);
  const spec = {
    region: 'default',
    network_class: { id: 'c1', name: 'phys-net' },
    implementation_strategy: 'phys_net',
    ipv4_cidr: '10.0.0.0/16',
    ipv6_cidr: 'fd00::/48',
  };
  const document = { metadata: { annotations }, spec } as JsonObject;
  run.command({ type: 'CreateDocument', at: run.now(), id: run.id, name: 'n', ...common, creator, document });
  return run;
};

const orderSubnet = () => {
  const run = createStepRun(actingSubnet.workflow as AnyWorkflow, subnet.decider);
  const spec = { virtual_network: { id: 'v1', name: 'n' }, ipv4_cidr: '10.0.1.0/24' };
  run.command({
    type: 'CreateDocument',
    at: run.now(),
    id: run.id,
    name: 's',
    ...common,
    document: { spec },
  });
  const shown = () => {
    const view = subnet.view(run.subject());
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  return { ...run, shown };
};
const parent = { kind: 'virtualNetwork', id: 'v1' };
const holder = { kind: 'subnet', id: 'one' };
const seen = (object: object | null): object => ({ object, hub: HUB.hub });

const orderGateway = () => {
  const run = createStepRun(actingNatGateway.workflow as AnyWorkflow, natGateway.decider);
  const spec = { virtual_network: { id: 'v1', name: 'n' }, external_ip: { id: 'ip', name: 'ip' } };
  const facts = { type: 'CreateDocument', at: run.now(), id: run.id, name: 'g', ...common } as const;
  run.command({ ...facts, document: { spec } });
  const shown = () => {
    const view = natGateway.view(run.subject());
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  return { ...run, shown };
};

describe('the way of a NAT gateway', () => {
  it('goes to the hub that its network and its address are both on, and nowhere else', () => {
    const run = orderGateway();
    run.perform('attach', done({ address: '192.0.2.1', hub: 'sim-1' }));
    run.perform('place', done({ place: { ...HUB, hub: 'sim-2' }, state: 'VIRTUAL_NETWORK_STATE_READY' }));
    run.commands();
    expect(run.effects()).to.deep.equal([]);
    expect(run.shown()).to.include({
      state: 'NAT_GATEWAY_STATE_PENDING',
      message: 'its virtual network and its external IP are on different hubs',
    });
    run.fire('ask-again:v1');
    run.perform('place', done({ place: HUB, state: 'VIRTUAL_NETWORK_STATE_READY' }));
    expect(run.effect('apply').args).to.deep.include({ object: 'NATGateway', hub: 'sim-1' });
  });
});

describe('the way of a virtual network', () => {
  it('is placed on the hub that the service names for one of its own, whatever tenants say', () => {
    const named = { 'fulfillment-ledger/hub': 'sim-2' };
    const ours = orderNetwork(named, 'system');
    expect(ours.effect('place').args).to.include({ hub: 'sim-2' });
    expect(JSON.stringify(virtualNetwork.view(ours.subject()))).not.to.include('sim-2');
    const run = orderNetwork(named);
    expect(run.effect('place').args).not.to.have.property('hub');
  });

  it('is placed by the scheduler on a hub that knows what lies in it, and sent there', () => {
    const run = orderNetwork({ 'fulfillment-ledger/zone': 'west' });
    const { args } = run.effect('place');
    expect(args).to.deep.include({ tenant: 't1', zone: 'west' });
    expect(args['objects']).to.include.members(['VirtualNetwork', 'Subnet']);
    run.perform('place', done(PLACED));
    expect(run.effect('apply').args['spec']).to.deep.equal({
      region: 'default',
      networkClass: 'phys-net',
      implementationStrategy: 'phys_net',
      ipv4Cidr: '10.0.0.0/16',
      ipv6Cidr: 'fd00::/48',
    });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Ready' }));
    expect(run.subjectTypes().at(-1)).to.equal('VirtualNetworkBecameReady');
    expect(run.isFolded()).to.equal(true);
  });
});

describe('the way of a subnet', () => {
  it('makes sure of its ranges, waits for its network, and follows it to its hub', () => {
    const run = orderSubnet();
    expect(run.effect('claim').args).to.deep.equal({ parent, holder, wanted: { ranges: ['10.0.1.0/24'] } });
    run.perform('claim', done({ generation: 4 }));
    expect(run.effect('place').args).to.deep.equal({ parent });
    run.perform('place', done({ place: null, state: '' }));
    run.commands();
    expect(run.shown()).to.include({ message: 'its virtual network is on no hub yet' });
    run.fire('ask-again:v1');
    run.perform('place', done({ place: HUB, state: 'VIRTUAL_NETWORK_STATE_PENDING' }));
    run.commands();
    expect(run.shown()).to.include({ message: 'its virtual network is not ready' });
    run.fire('ask-again:v1');
    run.perform('place', done({ place: HUB, state: 'VIRTUAL_NETWORK_STATE_READY' }));
    expect(run.effect('apply').args['spec']).to.deep.equal({ virtualNetwork: 'v1', ipv4Cidr: '10.0.1.0/24' });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.deep.equal({ state: 'SUBNET_STATE_READY', hub: 'sim-1' });
    expect(run.isFolded()).to.equal(true);
  });

  it('gives its ranges back after its absence was observed, as the generation that it was told', () => {
    const run = orderSubnet();
    run.perform('claim', done({ generation: 4 }));
    run.perform('place', done({ place: HUB, state: 'VIRTUAL_NETWORK_STATE_READY' }));
    run.perform('apply', done({ uid: 'u' }));
    run.command({ type: 'DeleteDocument', at: run.now() });
    expect(run.effects()).not.to.include('undo-claim');
    run.perform('undo-apply', done({ existed: false }));
    expect(run.effect('undo-claim').args).to.deep.include({ parent, holder, generation: 4 });
    run.perform('undo-claim', done({}));
    run.commands();
    expect(run.subjectTypes().at(-1)).to.equal('SubnetDeleted');
  });

  it('fails with the words of its network where its ranges are no longer to be had', () => {
    const run = orderSubnet();
    run.perform('claim', {
      outcome: 'refused',
      reason: 'SUBNETS_OVERLAP',
      message: 'it overlaps another one',
    });
    run.commands();
    expect(run.shown()).to.include({ state: 'SUBNET_STATE_FAILED', message: 'it overlaps another one' });
  });
});
