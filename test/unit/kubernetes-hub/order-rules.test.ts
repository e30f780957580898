import { expect } from 'chai';
import fc from 'fast-check';
import { CLUSTER_ORDER, type ClusterOrderManifest } from '../../../src/domain/clusters/hub-objects.ts';
import { manifestFaults, patchFaults, type Fault } from '../../../src/domain/hubs/hub-object.ts';
import { check } from '../../support/property.ts';

const MANIFEST: ClusterOrderManifest = {
  name: 'order-odp5txpguhb3c',
  namespace: 'osac-hub',
  labels: { 'osac.openshift.io/clusterorder-uuid': 'id-1' },
  annotations: {},
  spec: {
    templateID: 'osac.templates.ocp_small',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
    releaseImage: 'registry.example/r:1',
  },
};
const said = (faults: readonly Fault[]): string =>
  faults.length === 0 ? 'accepted' : faults.map(({ field, message }) => `${field} ${message}`).join('; ');
const checkManifest = (manifest: ClusterOrderManifest): string =>
  said(manifestFaults(CLUSTER_ORDER, manifest));
const checkPatch = (spec: object): string => said(patchFaults(CLUSTER_ORDER, spec));
const nodes = (resourceClass: string, numberOfNodes: number) => [{ resourceClass, numberOfNodes }];

describe('orders before they are sent', () => {
  it('accepts a good one', () => expect(checkManifest(MANIFEST)).to.equal('accepted'));

  /** What the CRD stores although nobody can work with it (OSAC's operator). */
  const SPECS: readonly (readonly [string, object, string])[] = [
    ['no template', { templateID: undefined }, 'spec.templateID'],
    ['a template with a dash', { templateID: 'ocp-small' }, 'spec.templateID'],
    ['null for what is immutable', { templateID: null }, 'spec.templateID is null'],
    ['no parameters', { templateParameters: undefined }, 'spec.templateParameters'],
    ['parameters that are no JSON', { templateParameters: '{' }, 'spec.templateParameters'],
    ['parameters that are a list', { templateParameters: '[]' }, 'spec.templateParameters'],
    ['no nodes', { nodeRequests: [] }, 'spec.nodeRequests is empty'],
    ['fewer than no nodes', { nodeRequests: nodes('fc430', -1) }, 'numberOfNodes'],
    ['half a node', { nodeRequests: nodes('fc430', 0.5) }, 'numberOfNodes'],
    ['a class that is no label', { nodeRequests: nodes('fc 430', 1) }, 'resourceClass'],
    ['a class without a name', { nodeRequests: nodes('', 1) }, 'resourceClass'],
    ['a class twice', { nodeRequests: [...nodes('a', 1), ...nodes('a', 2)] }, 'twice'],
    ['a range with 999', { network: { podCIDR: '999.1.1.1/99' } }, 'spec.network.podCIDR'],
    ['an IPv6 range', { network: { serviceCIDR: 'fd00::/64' } }, 'spec.network.serviceCIDR'],
    ['an empty network', { network: {} }, 'spec.network is empty'],
    ['an image without a tag', { releaseImage: 'registry.example/r' }, 'spec.releaseImage'],
    ['a huge pull secret', { pullSecret: 'ä'.repeat(140_000) }, 'spec.pullSecret'],
    ['a huge key', { sshPublicKey: 'x'.repeat(16_385) }, 'spec.sshPublicKey'],
  ];
  for (const [name, spec, words] of SPECS)
    it(`refuses ${name}`, () => {
      const manifest = { ...MANIFEST, spec: { ...MANIFEST.spec, ...spec } } as ClusterOrderManifest;
      expect(checkManifest(manifest)).to.include(words);
    });

  it('refuses names that do not fit the namespaces made after them', () => {
    for (const more of [
      { name: 'order.a' },
      { name: 'Order' },
      { name: 'a'.repeat(64) },
      { namespace: 'a_b' },
      { namespace: 'a'.repeat(30) },
    ])
      expect(checkManifest({ ...MANIFEST, ...more })).to.include('metadata.');
    const labels = { 'osac.openshift.io/clusterorder-uuid': 'x'.repeat(64) };
    expect(checkManifest({ ...MANIFEST, labels })).to.include('label value');
  });

  it('a patch may leave fields out, but not be empty or hold null', () => {
    expect(checkPatch({ sshPublicKey: '' })).to.equal('accepted');
    expect(checkPatch({})).to.include('changes nothing');
    expect(checkPatch({ network: null } as never)).to.include('spec.network is null');
    expect(checkPatch({ nodeRequests: [] })).to.include('empty');
  });

  it('a message never shows a value of the order', () =>
    check(
      fc.property(fc.string({ minLength: 20, maxLength: 60 }), (text) => {
        const spec = { templateID: `-${text}`, templateParameters: text, pullSecret: text.repeat(20_000) };
        const message = checkManifest({ ...MANIFEST, spec: { ...MANIFEST.spec, ...spec } });
        expect(message).to.not.include(text);
      }),
      { numRuns: 20 },
    ));
});
