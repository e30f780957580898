import { expect } from 'chai';
import { cluster, roleBinding } from '../../../src/domain/kinds.ts';
import { reachOf } from '../../../src/http/osac/references.ts';

/** Which tenants' objects references may mean (OSAC). */
describe('what references reach', () => {
  const home = { tenant: 'acme', project: '' };
  const caller = { tenants: ['acme', 'shared', 'other'] };

  it('objects of the own tenant and shared ones, of others only for admins', () => {
    const reaches = reachOf(cluster, home, caller);
    const tenants = ['acme', 'shared', 'other', 'foreign'];
    expect(tenants.filter((tenant) => reaches('clusterTemplate', tenant))).to.deep.equal(['acme', 'shared']);
    const admin = reachOf(cluster, home, { all: true });
    expect(tenants.filter((tenant) => admin('clusterTemplate', tenant))).to.deep.equal(tenants);
  });

  it('nothing that the caller does not see', () => {
    expect(reachOf(cluster, home, { tenants: ['acme'] })('clusterTemplate', 'shared')).to.equal(false);
  });

  it('shared secrets too, which an order takes over from its template', () => {
    const reaches = reachOf(cluster, home, caller);
    expect(['acme', 'shared', 'other'].filter((tenant) => reaches('secret', tenant))).to.deep.equal([
      'acme',
      'shared',
    ]);
  });

  it('what is no declared reference is left alone', () => {
    expect(reachOf(roleBinding, home, { tenants: ['acme'] })('tenant', 'system')).to.equal(true);
  });
});
