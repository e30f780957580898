import { expect } from 'chai';
import { isRejection } from '../../../../src/domain/decider.ts';
import { tenant } from '../../../../src/domain/kinds.ts';

const create = (name: string) =>
  tenant.decider.decide(tenant.decider.initialState(), {
    type: 'CreateDocument',
    at: '2026-11-23T09:00:00.000Z',
    id: name,
    tenant: name,
    project: '',
    name,
    creator: 'root',
    document: { metadata: { name } },
  });

describe('the name of a tenant', () => {
  for (const name of ['default', 'kube', 'kube-system', 'openshift', 'openshift-config'])
    it(`is not ${name}, a namespace that hubs keep: it could never be ready there, or would share it`, () => {
      const decision = create(name);
      expect(decision).to.deep.include({ kind: 'invalid', field: 'object.metadata.name' });
      expect(isRejection(decision) ? decision.message : '').to.contain("must not be 'default'");
    });
  for (const name of ['default-pool', 'kubernetes', 'openshifters', 'my-kube-team'])
    it(`may be ${name}`, () => {
      expect(isRejection(create(name))).to.equal(false);
    });
});
