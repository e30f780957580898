import type { Role } from '../../../src/domain/tenancy/rights.ts';
import type { TokenOptions } from './service.ts';

/** A caller in the words of the table of rights, told apart from how the service works it out. */
export type Person = {
  readonly name: string;
  readonly token: TokenOptions;
  readonly tenants: readonly string[];
  readonly roles: readonly Role[];
  readonly viewer?: string;
  readonly manager?: string;
};

/** One of each sort of caller, in two tenants. */
export const PEOPLE: readonly Person[] = [
  { name: 'user of t1', token: { user: 'ann', tenants: ['t1'] }, tenants: ['t1'], roles: ['client'] },
  { name: 'user of t2', token: { user: 'ben', tenants: ['t2'] }, tenants: ['t2'], roles: ['client'] },
  {
    name: 'user of both',
    token: { user: 'cat', tenants: ['t1', 't2'] },
    tenants: ['t1', 't2'],
    roles: ['client'],
  },
  { name: 'user of none', token: { user: 'dot' }, tenants: [], roles: ['client'] },
  {
    name: 'admin of t1',
    token: { user: 'eli', tenants: ['t1'], roles: ['tenant-admin'] },
    tenants: ['t1'],
    roles: ['client', 'tenant-admin'],
  },
  {
    name: 'identity manager of t2',
    token: { user: 'flo', tenants: ['t2'], roles: ['tenant-idp-manager'] },
    tenants: ['t2'],
    roles: ['client', 'tenant-idp-manager'],
  },
  {
    name: 'viewer in t1',
    token: { user: 'gil', claims: { organization: { t1: { groups: ['/p1/system:viewers'] } } } },
    tenants: ['t1'],
    roles: ['project-member'],
    viewer: 'p1',
  },
  {
    name: 'manager in t2',
    token: { user: 'hal', claims: { organization: { t2: { groups: ['/p1/system:managers'] } } } },
    tenants: ['t2'],
    roles: ['project-member'],
    viewer: 'p1',
    manager: 'p1',
  },
  {
    name: 'reader of t1',
    token: { user: 'ida', tenants: ['t1'], roles: ['tenant-reader'] },
    tenants: ['t1'],
    roles: ['tenant-reader'],
  },
  {
    name: 'auditor of t2',
    token: { user: 'jon', tenants: ['t2'], roles: ['auditor'] },
    tenants: ['t2'],
    roles: ['auditor'],
  },
];
