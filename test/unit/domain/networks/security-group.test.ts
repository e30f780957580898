import { expect } from 'chai';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import {
  securityGroup,
  type GroupCommand,
  type GroupEvent,
} from '../../../../src/domain/networks/security-group.resource.ts';
import { hubRules } from '../../../../src/domain/networks/security-rules.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-23T09:00:00.000Z';
const later = '2026-11-23T10:00:00.000Z';
const facts = { at, id: 'g1', tenant: 't1', project: '', name: 'web', creator: 'someone' };
const network = { virtual_network: { id: 'n1', name: 'net' } };
const owner = { annotations: { 'osac.openshift.io/owner-reference': 'n1' } };
const strategy = { implementation_strategy: 'network_policy' };
const https = { protocol: 'PROTOCOL_TCP', port_from: 443, port_to: 443, ipv4_cidr: '0.0.0.0/0' };
const ssh = { protocol: 'PROTOCOL_TCP', port_from: 22, port_to: 22, ipv4_cidr: '10.0.0.0/8' };
const ordered = (rules: JsonObject = { ingress: [https] }): GroupEvent => ({
  type: 'SecurityGroupOrdered',
  data: { ...facts, document: { spec: { ...network, ...rules, ...strategy } } },
});
const order = (spec: JsonObject): GroupCommand => ({ type: 'CreateDocument', ...facts, document: { spec } });
const withRules = (rules: JsonObject): GroupCommand => order({ ...network, ...rules });
const placed: GroupEvent = {
  type: 'SecurityGroupPlaced',
  data: {
    at,
    hub: 'h1',
    namespace: 'osac',
    objectName: 'securitygroup-a',
    simulated: false,
    controller: 'operator',
  },
};
const ready = (version?: string): GroupEvent => ({
  type: 'SecurityGroupBecameReady',
  data: { at, ...(version === undefined ? {} : { version }) },
});
const revised = (ingress: JsonObject[]): GroupEvent => ({
  type: 'SecurityGroupRevised',
  data: { at: later, document: { spec: { ...network, ingress, ...strategy } } },
});
const shows = (version: string): GroupCommand => ({ type: 'RecordShown', at: later, version });

describe('security groups', () => {
  const { given } = specify(securityGroup.decider);
  const shown = (...history: GroupEvent[]): JsonObject => {
    const view = securityGroup.view(given(...history).state());
    if (!view.exists) throw new Error('it shows nothing');
    return objectAt(view.document, 'status');
  };

  it('belong to a network, which they name as their owner, with ranges in one spelling', () => {
    given()
      .when(withRules({ ingress: [https] }))
      .thenEvents(ordered());
    const both = { protocol: 'PROTOCOL_ALL', ipv4_cidr: '10.1.2.3/16', ipv6_cidr: 'FD00:0::1/48' };
    given()
      .when(withRules({ egress: [both], implementation_strategy: 'netris' }))
      .thenEvents(ordered({ egress: [{ ...both, ipv4_cidr: '10.1.0.0/16', ipv6_cidr: 'fd00::/48' }] }));
    given()
      .when(order({ ingress: [https] }))
      .thenRejected('FIELD_REQUIRED', { kind: 'invalid', field: 'spec.virtual_network' });
  });

  it('are as they were where the same rules come in another spelling', () => {
    const rule = { protocol: 'PROTOCOL_ALL', ipv4_cidr: '10.1.2.3/16' };
    const plain = { spec: { egress: [{ ...rule, ipv4_cidr: '10.1.0.0/16' }] } };
    expect(securityGroup.plain?.({ spec: { egress: [rule] } })).to.deep.equal(plain);
  });

  it('keep their network and the annotation that names it, whatever else changes', () => {
    given(ordered())
      .when({
        type: 'ReviseDocument',
        at: later,
        document: { spec: { virtual_network: { id: 'n2', name: 'other' } } },
      })
      .thenRejected('IMMUTABLE_FIELD', { field: 'spec.virtual_network' });
    given(ordered())
      .when({
        type: 'ReviseDocument',
        at: later,
        document: {
          metadata: { annotations: { 'osac.openshift.io/owner-reference': 'x' } },
          spec: { ...network, ingress: [ssh] },
        },
      })
      .thenEvents(revised([ssh]));
    const view = securityGroup.view(given(ordered(), revised([ssh])).state());
    expect(view.exists && objectAt(view.document, 'metadata')).to.deep.include(owner);
  });

  it('refuse a rule that a network could not follow, and say which field of it', () => {
    const tcp = { protocol: 'PROTOCOL_TCP', ipv4_cidr: '0.0.0.0/0' };
    const cases: readonly (readonly [JsonObject, string, string])[] = [
      [{ ipv4_cidr: '0.0.0.0/0' }, 'protocol', 'must be one of PROTOCOL_TCP'],
      [{ ...tcp, protocol: 'PROTOCOL_UNSPECIFIED' }, 'protocol', 'must be one of'],
      [{ ...tcp, port_from: 80 }, 'port_to', "is required beside 'port_from'"],
      [{ ...tcp, port_to: 80 }, 'port_from', "is required beside 'port_to'"],
      [{ ...tcp, port_from: 0, port_to: 80 }, 'port_from', 'between 1 and 65535 (got 0)'],
      [{ ...tcp, port_from: 80, port_to: 65_536 }, 'port_to', 'between 1 and 65535 (got 65536)'],
      [{ ...tcp, port_from: -1, port_to: -1 }, 'port_from', '(got -1)'],
      [{ ...tcp, port_from: 90, port_to: 80 }, 'port_to', "must be at least 90, as 'port_from' is (got 80)"],
      [{ ...tcp, protocol: 'PROTOCOL_ICMP', port_from: 1, port_to: 2 }, 'port_from', 'PROTOCOL_UDP only'],
      [{ ...tcp, protocol: 'PROTOCOL_ALL', port_to: 2 }, 'port_to', 'leave it out'],
      [
        { ...tcp, ipv4_cidr: '10.0.0.0/33' },
        'ipv4_cidr',
        "IPv4 range such as 10.0.0.0/16 (got '10.0.0.0/33')",
      ],
      [{ ...tcp, ipv4_cidr: 'fd00::/48' }, 'ipv4_cidr', 'must be an IPv4 range'],
      [{ ...tcp, ipv6_cidr: '10.0.0.0/8' }, 'ipv6_cidr', 'must be an IPv6 range'],
      [{ ...tcp, ipv6_cidr: '::ffff:10.0.0.0/104' }, 'ipv6_cidr', 'must be an IPv6 range'],
      [{ ...tcp, ipv4_cidr: 'x'.repeat(10_000) }, 'ipv4_cidr', `(got '${'x'.repeat(64)}')`],
    ];
    for (const way of ['ingress', 'egress'])
      for (const [rule, field, text] of cases) {
        const { decision } = given().when(withRules({ [way]: [tcp, rule] }));
        const where = `spec.${way}.1.${field}`;
        expect(decision, where).to.include({ kind: 'invalid', code: 'INVALID_SECURITY_RULE', field: where });
        expect(decision).to.have.property('message').that.includes(text);
      }
    given()
      .when(withRules({ egress: [{ protocol: 'PROTOCOL_ICMP' }] }))
      .thenRejected('INVALID_SECURITY_RULE', { field: 'spec.egress.0' });
  });

  it('take all ports where none is named, and every address', () => {
    const any = { protocol: 'PROTOCOL_UDP', ipv4_cidr: '0.0.0.0/0', ipv6_cidr: '::/0' };
    given()
      .when(withRules({ ingress: [any] }))
      .thenEvents(ordered({ ingress: [any] }));
  });

  it('hold at most as many rules as a hub takes', () => {
    const many = (count: number, rule: JsonObject): JsonObject => ({
      ingress: Array.from({ length: count }, () => rule),
    });
    given()
      .when(withRules(many(100, https)))
      .thenEvents(ordered(many(100, https)));
    for (const rules of [many(1_000, https), many(1_000, {}), many(51, { ...https, ipv6_cidr: '::/0' })])
      given().when(withRules(rules)).thenRejected('INVALID_SECURITY_RULE', { field: 'spec.ingress' });
  });

  it('are about one family a rule on a hub, from where packets come and to where they go', () => {
    const both = { ...https, ipv6_cidr: '::/0' };
    const icmp = { protocol: 'PROTOCOL_ICMP', ipv6_cidr: 'fd00::/48' };
    const ports = { protocol: 'tcp', portFrom: 443, portTo: 443 };
    expect(hubRules({ ingress: [both] }, 'ingress')).to.deep.equal([
      { ...ports, sourceCidr: '0.0.0.0/0' },
      { ...ports, sourceCidr: '::/0' },
    ]);
    expect(hubRules({ egress: [icmp] }, 'egress')).to.deep.equal([
      { protocol: 'icmp', destinationCidr: 'fd00::/48' },
    ]);
  });

  it('are ready again once their hub shows that it carries out a change', () => {
    const before = [ordered(), placed, ready('v1')] as const;
    expect(shown(...before)).to.deep.equal({ state: 'SECURITY_GROUP_STATE_READY' });
    const changed = [...before, revised([ssh])] as const;
    expect(shown(...changed)).to.deep.equal({ state: 'SECURITY_GROUP_STATE_PENDING' });
    given(...changed)
      .when(shows('v1'))
      .thenNothing();
    given(...changed)
      .when(shows('v2'))
      .thenEvents({ type: 'SecurityGroupBecameReady', data: { at: later, version: 'v2' } });
    // Changed back before the hub had seen it.
    given(...changed, revised([https]))
      .when(shows('v1'))
      .thenEvents({ type: 'SecurityGroupBecameReady', data: { at: later, version: 'v1' } });
    // What its hub calls by no name is believed.
    given(...changed)
      .when(shows(''))
      .thenEvents({ type: 'SecurityGroupBecameReady', data: { at: later } });
  });

  it('stay ready when nothing changes that a hub carries out', () => {
    const labelled: GroupEvent = {
      type: 'SecurityGroupRevised',
      data: {
        at: later,
        document: {
          metadata: { labels: { a: 'b' } },
          spec: { ...network, ingress: [https], ...strategy },
        },
      },
    };
    expect(shown(ordered(), placed, ready(), labelled)).to.deep.equal({
      state: 'SECURITY_GROUP_STATE_READY',
    });
  });

  it('show what has become of them', () => {
    const failed: GroupEvent = { type: 'SecurityGroupFailed', data: { at, reason: 'No', message: 'no' } };
    const deleting: GroupEvent = { type: 'SecurityGroupDeletionRequested', data: { at } };
    expect(shown(ordered())).to.deep.equal({});
    expect(shown(ordered(), placed)).to.deep.equal({ state: 'SECURITY_GROUP_STATE_PENDING' });
    expect(shown(ordered(), placed, failed)).to.deep.equal({
      state: 'SECURITY_GROUP_STATE_FAILED',
      message: 'no',
    });
    expect(shown(ordered(), placed, ready(), deleting)['state']).to.equal('SECURITY_GROUP_STATE_DELETING');
    expect(shown(ordered(), placed, deleting, failed)['state']).to.equal(
      'SECURITY_GROUP_STATE_DELETE_FAILED',
    );
  });
});
