import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { manifestFaults, objectOf } from '../../../src/domain/hubs/hub-object.ts';
import { clusterOrderDraft, type OrderedSpec } from '../../../src/domain/clusters/cluster-order-manifest.ts';

/** What an order becomes on a hub, field by field (OSAC's operator): written by hand, not by this code. */
const FOLDER = new URL('../../../fixtures/kubernetes/', import.meta.url);
type Golden = {
  readonly order: OrderedSpec & {
    readonly id: string;
    readonly tenant: string;
    readonly pullSecret: string | null;
    readonly hub: { namespace: string; mode: 'operator' | 'eda' | 'aap'; simulated: boolean };
  };
  readonly object: { readonly metadata: { readonly name: string } };
};
const files = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));
const goldenOf = (file: string): Golden => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Golden;

const manifestOf = ({ order: { hub, pullSecret, ...order } }: Golden) => {
  const draft = clusterOrderDraft(order, hub);
  return pullSecret === null ? draft : { ...draft, spec: { ...draft.spec, pullSecret } };
};

describe('ClusterOrders as they are sent', () => {
  it('have golden files', () => expect(files.length).to.be.greaterThan(2));

  for (const file of files)
    it(file, () => {
      const golden = goldenOf(file);
      const manifest = manifestOf(golden);
      expect(objectOf(CLUSTER_ORDER, manifest)).to.deep.equal(golden.object);
      expect(manifestFaults(CLUSTER_ORDER, manifest)).to.deep.equal([]);
    });

  it('a patch holds only the fields that are given, and never null', () => {
    expect(CLUSTER_ORDER.spec.partial().parse({ sshPublicKey: '' })).to.deep.equal({ sshPublicKey: '' });
    expect(
      JSON.stringify(CLUSTER_ORDER.spec.partial().parse({ network: { podCIDR: '10.1.0.0/16' } })),
    ).to.equal('{"network":{"podCIDR":"10.1.0.0/16"}}');
    expect(CLUSTER_ORDER.spec.partial().parse({})).to.deep.equal({});
  });
});
