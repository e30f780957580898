import { namespaceFits } from '../../../../src/domain/hubs/hub-facts.ts';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  clusterOrderDraft,
  clusterOrderSpec,
  orderName,
} from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { plainValue } from '../../../../src/domain/catalog/parameter-values.ts';
import { ID, ordered } from './samples.ts';
import { check } from '../../../support/property.ts';

const GOOGLE = 'type.googleapis.com/google.protobuf';

describe('clusters: the ClusterOrder of an order', () => {
  it('maps the order as the fulfillment service does', () => {
    expect(clusterOrderSpec({ ...ordered, network: { podCidr: '10.0.0.0/14' } })).to.deep.equal({
      templateID: 'osac.templates.small',
      templateParameters: '{"flavour":"plain"}',
      nodeRequests: [
        { resourceClass: 'g5', numberOfNodes: 2 },
        { resourceClass: 'fc430', numberOfNodes: 3 },
      ],
      sshPublicKey: 'ssh-ed25519 AAAA',
      releaseImage: 'registry.invalid/release:4.20.3',
      network: { podCIDR: '10.0.0.0/14' },
    });
    const { sshPublicKey: _key, ...plain } = ordered;
    expect(clusterOrderSpec({ ...plain, network: { serviceCidr: '172.31.0.0/16' } })).to.deep.include({
      network: { serviceCIDR: '172.31.0.0/16' },
    });
  });
  it('asks once for each host type, for all node sets of it together', () => {
    const hostType = { id: 'fc430', name: 'fc430' };
    const [, first] = Object.entries(ordered.nodeSets)[0] ?? [];
    if (first === undefined) throw new Error('the sample has no node set');
    const sets = { b: { ...first, hostType, size: 2 }, a: { ...first, hostType, size: 3 } };
    expect(clusterOrderSpec({ ...ordered, nodeSets: sets }).nodeRequests).to.deep.equal([
      { resourceClass: 'fc430', numberOfNodes: 5 },
    ]);
  });
  it('never holds the value of a secret', () =>
    expect(JSON.stringify(clusterOrderSpec(ordered))).to.not.contain('pullSecret'));
  it('passes what a tenant says about the simulation on to simulated hubs only', () => {
    const told = { ...ordered, simulation: '422=1' };
    const hub = { namespace: 'osac-hub', mode: 'operator' } as const;
    expect(clusterOrderDraft(told, { ...hub, simulated: true }).annotations).to.include({
      simulation: '422=1',
    });
    expect(clusterOrderDraft(told, { ...hub, simulated: false }).annotations).not.to.have.property(
      'simulation',
    );
    expect(clusterOrderDraft(ordered, { ...hub, simulated: true }).annotations).not.to.have.property(
      'simulation',
    );
  });

  it('carries id and tenant, and keeps the operator from launching what we launch', () => {
    const draft = clusterOrderDraft(ordered, { namespace: 'osac-hub', mode: 'operator', simulated: false });
    expect(draft).to.deep.include({
      name: orderName(ID),
      namespace: 'osac-hub',
      labels: { 'osac.openshift.io/clusterorder-uuid': ID },
      annotations: { 'osac.openshift.io/tenant': 't1' },
    });
    const eda = clusterOrderDraft(ordered, { namespace: 'osac-hub', mode: 'eda', simulated: false });
    expect(eda.annotations['osac.openshift.io/management-state']).to.equal('manual');
  });
  it('has a short name of its own for every order', () => {
    check(
      fc.property(fc.uuid(), fc.uuid(), (left, right) => {
        expect(orderName(left)).to.match(/^order-[a-z2-7]{13}$/);
        if (left !== right) expect(orderName(left)).to.not.equal(orderName(right));
      }),
    );
  });
  it('fits into namespaces of up to 23 characters', () => {
    expect(namespaceFits('n'.repeat(23), orderName(ID))).to.equal(true);
    expect(namespaceFits('n'.repeat(24), orderName(ID))).to.equal(false);
    expect(namespaceFits('', orderName(ID))).to.equal(false);
  });
  it('renders parameters as protobuf JSON', () => {
    const cases: [object, unknown][] = [
      [{ '@type': `${GOOGLE}.Int64Value`, value: '5' }, '5'],
      [{ '@type': `${GOOGLE}.Int64Value` }, '0'],
      [{ '@type': `${GOOGLE}.BoolValue`, value: true }, true],
      [{ '@type': `${GOOGLE}.BoolValue` }, false],
      [{ '@type': `${GOOGLE}.Value` }, null],
      [{ '@type': `${GOOGLE}.Value`, value: [1] }, [1]],
      [{ '@type': 'example.com/own.Message', a: 1 }, { a: 1 }],
      [{ value: 1 }, { value: 1 }],
    ];
    for (const [any, plain] of cases) expect(plainValue(any as never)).to.deep.equal(plain);
  });
});
