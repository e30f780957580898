import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/domain/json.ts';
import { ClusterSchema } from '../../../src/gen/osac/public/v1/clusters_pb.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { canonicalDocument, decodeMessage } from '../../../src/http/osac/messages.ts';
import { applyBody, applyMask } from '../../../src/http/osac/update-rule.ts';
import { check } from '../../support/property.ts';

const host = { id: 'fc430', name: 'fc430' };
const stored = (): JsonObject => ({
  id: 'c1',
  metadata: { name: 'c', tenant: 't1', labels: { env: 'dev', 'a.b/c': 'x' }, annotations: { note: 'N' } },
  spec: {
    template: { id: 't' },
    node_sets: { workers: { host_type: host, size: 3 }, infra: { host_type: host, size: 1 } },
    ssh_public_key: 'ssh',
    network: { pod_cidr: '10.0.0.0/14', service_cidr: '172.30.0.0/16' },
  },
  status: { conditions: [{ type: 'CLUSTER_CONDITION_TYPE_READY', reason: 'A' }] },
});
const patch = (body: unknown): JsonObject => {
  const { document, present } = decodeMessage(ClusterSchema, JSON.stringify(body));
  return applyBody(ClusterSchema, stored(), document, present);
};
const masked = (body: unknown, ...paths: string[]): JsonObject => {
  const { document, present } = decodeMessage(ClusterSchema, JSON.stringify(body));
  return applyMask(ClusterSchema, stored(), document, present, paths);
};
const changed = (path: 'metadata' | 'spec' | 'status', value: JsonObject): JsonObject => ({
  ...stored(),
  [path]: { ...(stored()[path] as JsonObject), ...value },
});
const without = (path: 'metadata' | 'spec', key: string): JsonObject => {
  const copy = stored();
  delete (copy[path] as JsonObject)[key];
  return copy;
};

/** One rule for all updates. */
describe('update rule', () => {
  describe('without a mask', () => {
    it('an empty body changes nothing', () => expect(patch({})).to.deep.equal(stored()));
    it('keeps siblings of what is named', () => {
      expect(patch({ spec: { ssh_public_key: 'new' } })).to.deep.equal(
        changed('spec', { ssh_public_key: 'new' }),
      );
      expect(patch({ spec: { network: { pod_cidr: '10.1.0.0/16' } } })).to.deep.equal(
        changed('spec', { network: { pod_cidr: '10.1.0.0/16', service_cidr: '172.30.0.0/16' } }),
      );
    });
    it('replaces a map that is named', () => {
      expect(patch({ metadata: { labels: { env: 'prod' } } })).to.deep.equal(
        changed('metadata', { labels: { env: 'prod' } }),
      );
    });
    it('clears by null and by {}', () => {
      for (const value of [null, {}])
        expect(patch({ metadata: { labels: value } })).to.deep.equal(without('metadata', 'labels'));
      expect(patch({ spec: { network: {} } })).to.deep.equal(without('spec', 'network'));
      expect(patch({ spec: { ssh_public_key: null } })).to.deep.equal(without('spec', 'ssh_public_key'));
    });
    it('scales a node set and leaves its host type alone; sets that are not named go', () => {
      expect(patch({ spec: { nodeSets: { workers: { size: 5 } } } })).to.deep.equal(
        changed('spec', { node_sets: { workers: { host_type: host, size: 5 } } }),
      );
    });
    it('takes a size of 0 that is written, and keeps the size that is not', () => {
      expect(patch({ spec: { node_sets: { workers: { size: 0 }, infra: {} } } })).to.deep.equal(
        changed('spec', { node_sets: { workers: { host_type: host }, infra: { host_type: host, size: 1 } } }),
      );
    });
    it('replaces lists', () => {
      const conditions = [{ type: 'CLUSTER_CONDITION_TYPE_FAILED' }];
      expect(patch({ status: { conditions } })).to.deep.equal(changed('status', { conditions }));
    });
  });

  it('a mask finds keys of maps that hold dots', () => {
    const before = stored();
    (before['spec'] as JsonObject)['node_sets'] = { 'a.b': { host_type: host, size: 1 }, a: { size: 9 } };
    const { document, present } = decodeMessage(ClusterSchema, '{"spec":{"node_sets":{"a.b":{"size":4}}}}');
    const after = applyMask(ClusterSchema, before, document, present, ['spec.node_sets.a.b.size']);
    expect((after['spec'] as JsonObject)['node_sets']).to.deep.equal({
      'a.b': { host_type: host, size: 4 },
      a: { size: 9 },
    });
  });

  describe('with a mask', () => {
    it('takes one value inside a map and keeps its siblings', () => {
      for (const path of ['spec.node_sets.workers.size', 'spec.nodeSets.workers.size']) {
        expect(masked({ spec: { node_sets: { workers: { size: 7 } } } }, path)).to.deep.equal(
          changed('spec', {
            node_sets: { workers: { host_type: host, size: 7 }, infra: { host_type: host, size: 1 } },
          }),
        );
      }
    });
    it('takes one map key, dots and slashes included', () => {
      expect(masked({ metadata: { labels: { 'a.b/c': 'y' } } }, 'metadata.labels.a.b/c')).to.deep.equal(
        changed('metadata', { labels: { env: 'dev', 'a.b/c': 'y' } }),
      );
      expect(masked({}, 'metadata.labels.env')).to.deep.equal(
        changed('metadata', { labels: { 'a.b/c': 'x' } }),
      );
    });
    it('ignores what the mask does not name', () => {
      expect(
        masked({ metadata: { labels: { env: 'prod' } }, spec: { ssh_public_key: 'no' } }, 'metadata.labels'),
      ).to.deep.equal(changed('metadata', { labels: { env: 'prod' } }));
    });
    it('clears what the body does not hold', () => {
      expect(masked({}, 'spec.ssh_public_key')).to.deep.equal(without('spec', 'ssh_public_key'));
    });
    it('enters a list by index', () => {
      expect(
        masked({ status: { conditions: [{ reason: 'B' }] } }, 'status.conditions.0.reason'),
      ).to.deep.equal(
        changed('status', { conditions: [{ type: 'CLUSTER_CONDITION_TYPE_READY', reason: 'B' }] }),
      );
    });
    it('takes several paths', () => {
      expect(
        masked({ spec: { ssh_public_key: 'new' } }, 'spec.ssh_public_key', 'metadata.annotations'),
      ).to.deep.equal({
        ...without('metadata', 'annotations'),
        spec: { ...(stored()['spec'] as JsonObject), ssh_public_key: 'new' },
      });
    });
    for (const path of [
      'nope',
      'spec.nope',
      'spec..size',
      '',
      'metadata.name.x',
      'spec.node_sets.__proto__.size',
      '__proto__',
    ])
      it(`refuses the path "${path}" and names it`, () => {
        expect(() => masked({ spec: {} }, path)).to.throw(ApiError, 'does not exist');
      });
    for (const [path, words] of [
      ['status.conditions.7.reason', "'7' is not an index of the list: its items are 0 to 0"],
      ['status.conditions.first.reason', "'first' is not an index of the list"],
      ['status.conditions.0.reason', 'the list in the request body has no item with index 0'],
    ] as const)
      it(`says what is wrong with the index in "${path}"`, () => {
        expect(() => masked({ spec: {} }, path)).to.throw(ApiError, words);
      });
  });

  it('a document sent back as it was read changes nothing, for any sizes and labels', () => {
    const document = fc.record({
      metadata: fc.record({
        name: fc.constant('n'),
        labels: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.stringMatching(/^[a-z]{0,3}$/)),
      }),
      spec: fc.record({
        ssh_public_key: fc.constant('k'),
        node_sets: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.record({ size: fc.nat(9) })),
      }),
    });
    check(
      fc.property(document, (raw) => {
        const current = canonicalDocument(ClusterSchema, { id: 'c', ...raw });
        const { document: body, present } = decodeMessage(ClusterSchema, JSON.stringify(current));
        expect(
          canonicalDocument(ClusterSchema, applyBody(ClusterSchema, current, body, present)),
        ).to.deep.equal(current);
      }),
      { numRuns: 200 },
    );
  });
});
