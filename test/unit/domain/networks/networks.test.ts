import { expect } from 'chai';
import { isRefused } from '../../../../src/domain/decider.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import { networkClass } from '../../../../src/domain/networks/network-class.resource.ts';
import { subnet, type SubnetEvent } from '../../../../src/domain/networks/subnet.resource.ts';
import {
  parentRejection,
  virtualNetwork,
  withClass,
  type NetworkEvent,
} from '../../../../src/domain/networks/virtual-network.resource.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-23T09:00:00.000Z';
const facts = { at, id: 'one', tenant: 't1', project: '', name: 'n', creator: 'someone' };
const create = (document: JsonObject) => ({ type: 'CreateDocument', ...facts, document }) as const;
const revise = (document: JsonObject) => ({ type: 'ReviseDocument', at, document }) as const;
const place = {
  hub: 'h1',
  namespace: 'osac',
  objectName: 'o',
  simulated: true,
  controller: 'ledger',
} as const;

const CLASS = {
  title: 'Networks',
  implementation_strategy: 'phys_net',
  fabric_manager: 'netris',
  capabilities: { supports_ipv4: true, supports_ipv6: true, supports_dual_stack: true },
};
const READY_CLASS = { ...CLASS, status: { state: 'NETWORK_CLASS_STATE_READY' } };
const classOf = (document: JsonObject) => ({ id: 'c1', name: 'phys-net', document });

describe('network classes', () => {
  const { given } = specify(networkClass.decider);
  const defined = {
    type: 'NetworkClassDefined',
    data: { ...facts, document: READY_CLASS },
  } as const;
  const withDefaults = (defaults: JsonObject): JsonObject => ({ ...CLASS, spec: { defaults } });

  it('are ready from the start, whatever status is sent, and named after their strategy', () => {
    given()
      .when(create({ ...CLASS, status: { state: 'NETWORK_CLASS_STATE_PENDING', hub: 'h' } }))
      .thenEvents(defined);
    expect(networkClass.deriveName?.({ implementation_strategy: 'phys_net_a' })).to.equal('phys-net-a');
    expect(networkClass.deriveName?.({})).to.equal(undefined);
  });

  it('need a title, a strategy and a manager; a missing manager may be named later, and stays then', () => {
    for (const [field, message] of [
      ['title', "field 'title' is required"],
      ['implementation_strategy', "field 'implementation_strategy' is required"],
      ['fabric_manager', "one of 'fabric_manager' and 'k8s_manager' is required"],
    ] as const)
      given()
        .when(create({ ...CLASS, [field]: '' }))
        .thenRejected('INVALID_NETWORK_CLASS', { message, field });
    const both = { ...READY_CLASS, k8s_manager: 'ovn' };
    given(defined)
      .when(revise(both))
      .thenEvents({ type: 'NetworkClassRevised', data: { at, document: both } });
    for (const changed of ['other', ''])
      given(defined)
        .when(revise({ ...both, fabric_manager: changed }))
        .thenRejected('INVALID_NETWORK_CLASS', { message: "field 'fabric_manager' is immutable" });
    given(defined)
      .when(revise({ ...READY_CLASS, implementation_strategy: 'x' }))
      .thenRejected('IMMUTABLE_FIELD');
  });

  it('have dual stack only with both families, and a prefix length of a VIP within bounds', () => {
    given()
      .when(create({ ...CLASS, capabilities: { supports_ipv4: true, supports_dual_stack: true } }))
      .thenRejected('INVALID_NETWORK_CLASS', { field: 'capabilities.supports_dual_stack' });
    for (const length of [0, 129, -1])
      given()
        .when(create({ ...CLASS, spec: { vip_prefix_length: length } }))
        .thenRejected('INVALID_NETWORK_CLASS', { field: 'spec.vip_prefix_length' });
  });

  it('say what tenants get in ranges without host bits, the subnet inside the network', () => {
    const good = { virtual_network_ipv4_cidr: '10.0.0.0/16', subnet_ipv4_cidr: '10.0.1.0/24' };
    expect(given().when(create(withDefaults(good))).decision).to.have.lengthOf(1);
    for (const [change, words] of [
      [{ virtual_network_ipv4_cidr: '10.0.0.1/16' }, "has host bits: write '10.0.0.0/16'"],
      [{ subnet_ipv4_cidr: '10.0.1.7/24' }, "has host bits: write '10.0.1.0/24'"],
      [{ subnet_ipv4_cidr: '10.1.0.0/24' }, "must lie inside '10.0.0.0/16'"],
      [{ virtual_network_ipv4_cidr: '' }, "needs 'spec.defaults.virtual_network_ipv4_cidr'"],
      [{ subnet_ipv6_cidr: 'fd00::/64' }, "needs 'spec.defaults.virtual_network_ipv6_cidr'"],
      [{ virtual_network_ipv4_cidr: '10.0.0.0/33' }, 'must be an IPv4 range'],
      [{ virtual_network_ipv6_cidr: '10.0.0.0/16' }, 'must be an IPv6 range'],
    ] as const) {
      const { decision } = given().when(create(withDefaults({ ...good, ...change })));
      expect(isRefused(decision) && decision.message, JSON.stringify(change)).to.contain(words);
    }
    const only6 = { ...withDefaults(good), capabilities: { supports_ipv6: true } };
    given()
      .when(create(only6))
      .thenRejected('INVALID_NETWORK_CLASS', { message: 'the network class does not support IPv4' });
  });
});

describe('virtual networks', () => {
  const { given } = specify(virtualNetwork.decider);
  const spec = {
    ipv4_cidr: '10.0.0.0/16',
    region: 'default',
    network_class: { id: 'c1', name: 'phys-net' },
    implementation_strategy: 'phys_net',
  };
  const ordered: NetworkEvent = { type: 'VirtualNetworkOrdered', data: { ...facts, document: { spec } } };
  const placed: NetworkEvent = { type: 'VirtualNetworkPlaced', data: { at, ...place } };
  const ready: NetworkEvent = { type: 'VirtualNetworkBecameReady', data: { at } };
  const failed: NetworkEvent = { type: 'VirtualNetworkFailed', data: { at, reason: 'No', message: 'no' } };
  const deleting: NetworkEvent = { type: 'VirtualNetworkDeletionRequested', data: { at } };
  const gone: NetworkEvent = { type: 'VirtualNetworkDeleted', data: { at } };
  const state = (...history: NetworkEvent[]): string | undefined => {
    const view = virtualNetwork.view(given(...history).state());
    return view.exists ? (objectAt(view.document, 'status')['state'] as string | undefined) : undefined;
  };

  it('have ranges without host bits in their one spelling, one of a family at most', () => {
    const { decision } = given().when(
      create({ spec: { ...spec, ipv4_cidr: '10.0.255.1/16', ipv6_cidr: 'FD00:0:0::1/48' } }),
    );
    expect(decision).to.have.nested.property('0.data.document.spec.ipv4_cidr', '10.0.0.0/16');
    expect(decision).to.have.nested.property('0.data.document.spec.ipv6_cidr', 'fd00::/48');
    const { ipv4_cidr: _range, ...none } = spec;
    given()
      .when(create({ spec: none }))
      .thenRejected('CIDR_REQUIRED');
    for (const wrong of [
      { ipv4_cidr: '10.0.0.0/33' },
      { ipv4_cidr: '0.0.0.0/0' },
      { ipv4_cidr: 'fd00::/48' },
      { ipv4_cidr: '10.0.0.0' },
      { ipv4_cidr: '010.0.0.0/8' },
      { ipv6_cidr: '10.0.0.0/8' },
      { ipv6_cidr: '::ffff:10.0.0.0/104' },
      { ipv6_cidr: '::/0' },
      { ipv6_cidr: 'fd00::/129' },
    ])
      given()
        .when(create({ spec: { ...spec, ...wrong } }))
        .thenRejected('INVALID_CIDR', { kind: 'invalid', field: `spec.${Object.keys(wrong)[0]}` });
  });

  it('are made as a ready class says, which has their families', () => {
    const of = (document: JsonObject, found: JsonObject): unknown => {
      const made = withClass({ spec: document }, classOf(found), true);
      return isRefused(made) ? [made.kind, made.message] : made['spec'];
    };
    const { region: _region, ...sent } = spec;
    expect(of({ ...sent, implementation_strategy: 'mine' }, READY_CLASS)).to.deep.equal(spec);
    expect(of(sent, { ...READY_CLASS, status: { state: 'NETWORK_CLASS_STATE_FAILED' } })).to.deep.equal([
      'failed-precondition',
      "network class 'c1' is not ready",
    ]);
    const dual = { ...sent, ipv6_cidr: 'fd00::/48' };
    const both = { supports_ipv4: true, supports_ipv6: true };
    for (const [found, message] of [
      [{ capabilities: both }, "network class 'c1' does not support dual stack"],
      [{ capabilities: { supports_ipv4: true } }, "network class 'c1' does not support IPv6"],
      [
        { spec: { disable_capabilities: { supports_ipv4: true } } },
        "network class 'c1' does not support IPv4",
      ],
    ] as const)
      expect(of(dual, { ...READY_CLASS, ...found })).to.deep.equal(['invalid', message]);
  });

  it('keep what they were made of', () => {
    for (const change of [
      { region: 'other' },
      { network_class: { id: 'c2', name: 'x' } },
      { ipv4_cidr: '10.1.0.0/16' },
      { ipv6_cidr: 'fd00::/48' },
    ])
      given(ordered)
        .when(revise({ spec: { ...spec, ...change } }))
        .thenRejected('IMMUTABLE_FIELD');
    given(ordered)
      .when(revise({ spec: { ...spec, ipv4_cidr: '10.0.9.9/16', implementation_strategy: 'sent' } }))
      .thenNothing();
  });

  it('show the states of OSAC, which has none of deletion here', () => {
    expect(state(ordered)).to.equal(undefined);
    const shown = [
      [placed],
      [placed, ready],
      [placed, failed],
      [placed, ready, deleting],
      [placed, ready, deleting, failed],
    ].map((history) => state(ordered, ...history)?.replace('VIRTUAL_NETWORK_STATE_', ''));
    expect(shown).to.deep.equal(['PENDING', 'READY', 'FAILED', 'PENDING', 'FAILED']);
  });

  const holder = (id: string) => ({ kind: 'subnet', id });
  const claim = (id: string, ranges: readonly string[], by?: string) =>
    ({ type: 'ClaimRanges', at, holder: holder(id), ranges, ...(by === undefined ? {} : { by }) }) as const;
  const claimed = (id: string, generation: number, ranges: readonly string[], by?: string): NetworkEvent => ({
    type: 'SubnetRangesClaimed',
    data: { at, holder: holder(id), generation, ranges, ...(by === undefined ? {} : { by }) },
  });

  it('give a range once, also to whoever asks again', () => {
    const one = claimed('a', 1, ['10.0.1.0/24'], 'c1');
    given(ordered)
      .when(claim('a', ['10.0.1.0/24'], 'c1'))
      .thenEvents(one);
    given(ordered, one)
      .when(claim('a', ['10.0.1.0/24']))
      .thenNothing();
    for (const range of ['10.0.1.0/24', '10.0.1.128/25', '10.0.0.0/23', '10.0.1.7/32', '10.0.0.0/16'])
      given(ordered, one)
        .when(claim('b', [range], 'c2'))
        .thenRejected('SUBNETS_OVERLAP', { kind: 'already-exists', field: 'spec.ipv4_cidr' });
    for (const range of ['10.0.0.0/24', '10.0.2.0/24', '10.0.128.0/17'])
      given(ordered, one)
        .when(claim('b', [range], 'c2'))
        .thenEvents(claimed('b', 2, [range], 'c2'));
    given(ordered)
      .when(claim('a', ['10.1.0.0/24'], 'c1'))
      .thenRejected('OUTSIDE_NETWORK', { kind: 'invalid' });
    given(ordered)
      .when(claim('a', ['fd00::/64'], 'c1'))
      .thenRejected('OUTSIDE_NETWORK');
  });

  it('have each attempt of a creation claim anew, and no other command for the same object', () => {
    const first = claimed('a', 1, ['10.0.1.0/24'], 'c1');
    const again = claimed('a', 2, ['10.0.1.0/24'], 'c1');
    given(ordered, first)
      .when(claim('a', ['10.0.1.0/24'], 'c1'))
      .thenEvents(again);
    given(ordered, first)
      .when(claim('a', ['10.0.9.0/24'], 'c2'))
      .thenRejected('CREATION_UNDER_WAY');
    const release = (generation: number) =>
      ({ type: 'ReleaseRanges', at, holder: holder('a'), generation }) as const;
    given(ordered, first, again).when(release(1)).thenNothing();
    given(ordered, first, again)
      .when(release(2))
      .thenEvents({ type: 'SubnetRangesReleased', data: { at, holder: holder('a'), generation: 2 } });
  });

  it('stay while a subnet has a part of them, and give nothing once they go', () => {
    given(ordered, placed, ready, claimed('a', 1, ['10.0.1.0/24']))
      .when({ type: 'DeleteDocument', at })
      .thenRejected('STILL_REFERENCED', {
        message: "cannot delete VirtualNetwork 'one': 1 Subnet(s) still reference it",
      });
    given(ordered, placed, ready, deleting)
      .when(claim('a', ['10.0.1.0/24']))
      .thenRejected('NETWORK_GONE');
    given(ordered, gone)
      .when(claim('a', ['10.0.1.0/24']))
      .thenRejected('NETWORK_GONE');
    given()
      .when(claim('a', ['10.0.1.0/24']))
      .thenRejected('NETWORK_GONE');
  });
});

describe('subnets', () => {
  const { given } = specify(subnet.decider);
  const spec = { virtual_network: { id: 'v1', name: 'n' }, ipv4_cidr: '10.0.1.0/24' };
  const annotations = { 'osac.openshift.io/owner-reference': 'v1' };
  const document = { spec };
  const ordered: SubnetEvent = { type: 'SubnetOrdered', data: { ...facts, document } };

  it('lie in a network, as their annotation says, which no change takes away', () => {
    given()
      .when(create({ spec: { ...spec, ipv4_cidr: '10.0.1.9/24' } }))
      .thenEvents(ordered);
    given()
      .when(create({ spec: { ipv4_cidr: '10.0.1.0/24' } }))
      .thenRejected('FIELD_REQUIRED', { field: 'spec.virtual_network' });
    given()
      .when(create({ spec: { virtual_network: spec.virtual_network } }))
      .thenRejected('CIDR_REQUIRED');
    const shown = subnet.view(given(ordered).state());
    expect(shown.exists && objectAt(shown.document, 'metadata')['annotations']).to.deep.equal(annotations);
    for (const metadata of [
      {},
      { annotations },
      { annotations: { 'osac.openshift.io/owner-reference': 'other' } },
    ])
      given(ordered).when(revise({ spec, metadata })).thenNothing();
    given(ordered)
      .when(revise({ spec: { ...spec, ipv4_cidr: '10.0.2.0/24' } }))
      .thenRejected('IMMUTABLE_FIELD');
  });

  it('take their ranges from their network, which must be ready', () => {
    expect(subnet.takes?.(document)).to.deep.equal([
      { kind: 'virtualNetwork', id: 'v1', wanted: { ranges: ['10.0.1.0/24'] } },
    ]);
    expect(parentRejection('v1', 'VIRTUAL_NETWORK_STATE_READY')).to.equal(undefined);
    expect(parentRejection('v1', '')?.message).to.equal(
      "parent VirtualNetwork 'v1' is not in READY state (current state: UNSPECIFIED)",
    );
  });
});
