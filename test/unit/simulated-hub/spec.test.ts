import { expect } from 'chai';
import fc from 'fast-check';
import { HubError } from '../../../src/app/hubs/management-cluster.ts';
import type { ClusterOrderSpec } from '../../../src/domain/clusters/hub-objects.ts';
import {
  checkManifest,
  patchSpec,
} from '../../../src/adapters/management-cluster/simulated/behaviours/cluster-order/spec.ts';
import { configVersion } from '../../../src/domain/clusters/config-version.ts';
import { manifestOf } from './hub-support.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { playedConfigVersion } from '../../support/kube-controllers/config-version.ts';
import { anyText } from '../../support/arbitraries/any-text.ts';
import { check } from '../../support/property.ts';

const NORMAL: ClusterOrderSpec = {
  templateID: 'osac.templates.ocp_small',
  templateParameters: '{}',
  nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
  pullSecret: '{}',
  sshPublicKey: 'ssh-ed25519 AAAA bench',
  releaseImage: 'registry.example/ocp/release:4.22.0',
};

const refusalOf = (run: () => unknown): HubError => {
  try {
    run();
  } catch (error) {
    if (error instanceof HubError) return error;
    throw error;
  }
  throw new Error('it was accepted');
};

describe('spec of a ClusterOrder on the simulated hub', () => {
  it('hashes as the operator did in the recorded runs', () => {
    expect(configVersion(NORMAL)).to.equal('af406f401c63b8e9');
    expect(
      configVersion({ templateID: 'osac.templates.ocp_small', templateParameters: '{}', nodeRequests: [] }),
    ).to.equal('546d3f6ce47e25d5');
    const four = { ...NORMAL, nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 4 }] };
    expect(configVersion(four)).to.equal('c6bf8cba29e4f7b7');
  });

  it('does not depend on the order of keys, and leaves empty fields out', () => {
    const { templateID, ...rest } = NORMAL;
    expect(configVersion({ ...rest, templateID })).to.equal(configVersion(NORMAL));
    const { pullSecret, ...without } = NORMAL;
    expect(pullSecret).to.equal('{}');
    expect(configVersion({ ...NORMAL, pullSecret: '' })).to.equal(configVersion(without));
  });

  it('agrees with the operator that tests play, which has its own code for it', () => {
    const text = anyText({ maxLength: 20 });
    const filled = anyText({ minLength: 1, maxLength: 20 });
    const spec = fc.record(
      {
        templateID: filled,
        templateParameters: text,
        nodeRequests: fc.array(fc.record({ resourceClass: text, numberOfNodes: fc.integer() }), {
          maxLength: 3,
        }),
        pullSecret: text,
        sshPublicKey: text,
        releaseImage: text,
        // Written only with something in it (OSAC's operator).
        network: fc.record({ podCIDR: filled, serviceCIDR: text }, { requiredKeys: ['podCIDR'] }),
      },
      { requiredKeys: ['templateID', 'templateParameters', 'nodeRequests'] },
    );
    check(fc.property(spec, (one) => configVersion(one) === playedConfigVersion(one as JsonObject)));
  });

  const refused: [name: string, spec: object, field: string, reason: string][] = [
    ['a template id with a dash', { templateID: 'ocp-small' }, 'spec.templateID', 'FieldValueInvalid'],
    ['an empty template id', { templateID: '' }, 'spec.templateID', 'FieldValueInvalid'],
    ['no template id', { templateID: undefined }, 'spec.templateID', 'FieldValueRequired'],
    ['a bare version as image', { releaseImage: '4.22.0' }, 'spec.releaseImage', 'FieldValueInvalid'],
    [
      'an IPv6 pod network',
      { network: { podCIDR: 'fd00::/48' } },
      'spec.network.podCIDR',
      'FieldValueInvalid',
    ],
    [
      'a count as text',
      { nodeRequests: [{ resourceClass: 'a', numberOfNodes: '2' }] },
      'spec.nodeRequests[0].numberOfNodes',
      'FieldValueTypeInvalid',
    ],
    [
      'no class',
      { nodeRequests: [{ numberOfNodes: 2 }] },
      'spec.nodeRequests[0].resourceClass',
      'FieldValueRequired',
    ],
    ['parameters as object', { templateParameters: {} }, 'spec.templateParameters', 'FieldValueTypeInvalid'],
    ['a huge pull secret', { pullSecret: 'x'.repeat(262_145) }, 'spec.pullSecret', 'FieldValueTooLong'],
  ];
  for (const [name, spec, field, reason] of refused) {
    it(`refuses ${name}`, () => {
      const error = refusalOf(() => checkManifest(manifestOf('order-a', { spec })));
      expect(error.kind).to.equal('invalid');
      const causes = JSON.parse(JSON.stringify(error.facts['causes'])) as { field: string; reason: string }[];
      expect(causes.map((cause) => `${cause.field} ${cause.reason}`)).to.include(`${field} ${reason}`);
    });
  }

  const accepted: [name: string, spec: object][] = [
    ['a nonsense IPv4 network', { network: { podCIDR: '999.1.1.1/99' } }],
    ['a negative count', { nodeRequests: [{ resourceClass: 'a', numberOfNodes: -1 }] }],
    ['parameters that are not JSON', { templateParameters: 'x' }],
  ];
  for (const [name, spec] of accepted) {
    it(`accepts ${name}, as the recorded API server did`, () => {
      checkManifest(manifestOf('order-a', { spec }));
    });
  }

  it('refuses bad names and long label values', () => {
    for (const name of ['Order-A', 'order_a', '-a', 'a'.repeat(254)]) {
      expect(refusalOf(() => checkManifest(manifestOf(name))).kind).to.equal('invalid');
    }
    const error = refusalOf(() => checkManifest(manifestOf('a', { clusterId: 'x'.repeat(64) })));
    expect(error.message).to.include('metadata.labels');
  });

  it('merges patches: arrays replaced, objects merged, the template fixed', () => {
    const patched = patchSpec(
      'a',
      { ...NORMAL, network: { podCIDR: '10.0.0.0/14' } },
      {
        nodeRequests: [],
        network: { serviceCIDR: '172.30.0.0/16' },
      },
    );
    expect(patched.nodeRequests).to.deep.equal([]);
    expect(patched.network).to.deep.equal({ podCIDR: '10.0.0.0/14', serviceCIDR: '172.30.0.0/16' });
    expect(patched.sshPublicKey).to.equal(NORMAL.sshPublicKey);
    const error = refusalOf(() => patchSpec('a', NORMAL, { templateID: 'other' }));
    expect(error.message).to.include('templateID is immutable');
  });
});
