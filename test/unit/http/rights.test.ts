import { expect } from 'chai';
import fc from 'fast-check';
import type { VerifiedToken } from '../../../src/app/identity.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { allows } from '../../../src/domain/tenancy/rights.ts';
import { mayCall, mayWrite, tenantOfNew } from '../../../src/http/osac/authorization.ts';
import { principalOf } from '../../../src/http/osac/principal.ts';

const token = (more: Partial<VerifiedToken> = {}): VerifiedToken => ({
  issuer: 'https://sso.example',
  subject: 'sub-1',
  userName: 'alice',
  serviceAccount: false,
  organizations: ['t1'],
  groups: [],
  realmRoles: [],
  expiresAt: 2_000_000_000,
  tokenIdHash: 'h',
  ...more,
});

/** osac-api.md §7 Identity result, Roles, Tenancy. */
describe('principals', () => {
  it('see their own tenants and shared', () => {
    expect(principalOf(token({ organizations: ['t1', 't2', 't1'] }))).to.deep.include({
      admin: false,
      tenants: ['t1', 't2'],
      homeTenant: 't1',
      visibility: { tenants: ['t1', 't2', 'shared'] },
      roles: ['client'],
    });
  });

  it('cannot become a built-in tenant by claiming it', () => {
    expect(principalOf(token({ organizations: ['system', 'shared'] }))).to.deep.include({
      tenants: [],
      homeTenant: undefined,
      visibility: { tenants: ['shared'] },
    });
  });

  for (const [what, more] of [
    ['the group admins', { groups: ['admins'] }],
    ['the group by its path', { groups: ['/admins'] }],
    ['the controller', { userName: 'service-account-osac-controller' }],
    ['the admin service account of the realm', { userName: 'service-account-osac-admin' }],
  ] as const)
    it(`${what} is a provider admin and sees every tenant`, () => {
      expect(principalOf(token(more))).to.deep.include({ admin: true, visibility: { all: true } });
    });

  for (const group of ['t1:admins', '/t1/admins', 'Admins', 'admins2', '/admins/x'])
    it(`the group ${group} is not`, () => {
      expect(principalOf(token({ groups: [group] }))).to.include({ admin: false });
    });

  it('of Kubernetes service accounts belong to their namespace; those of our deployment are admins', () => {
    const account = token({
      serviceAccount: true,
      organizations: [],
      subject: 'system:serviceaccount:osac:admin',
      userName: 'system:serviceaccount:osac:admin',
    });
    expect(principalOf(account)).to.deep.include({ admin: false, tenants: ['osac'], userName: 'admin' });
    expect(principalOf(account, { deploymentNamespace: 'osac' })).to.include({ admin: true });
    expect(principalOf(account, { deploymentNamespace: 'other' })).to.include({ admin: false });
    expect(principalOf({ ...account, serviceAccount: false }, { deploymentNamespace: 'osac' })).to.include({
      admin: false,
    });
    expect(principalOf({ ...account, groups: ['admins'] })).to.include({ admin: false });
  });

  it('have an id that depends on tenant, issuer and subject and tells none of them', () => {
    const id = (more: Partial<VerifiedToken>): string => principalOf(token(more)).subjectId;
    expect(id({})).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
    expect(
      new Set([id({}), id({ subject: 's2' }), id({ issuer: 'https://b' }), id({ organizations: ['t2'] })])
        .size,
    ).to.equal(4);
    expect(id({ userName: 'renamed', email: 'x@y' })).to.equal(id({}));
  });
});

describe('the table of rights', () => {
  it('gives admins everything and clients what each kind lists, on the public surface only', () => {
    for (const kind of kinds) {
      for (const method of ['List', 'Get', 'Create', 'Update', 'Delete'] as const) {
        const client = { admin: false, roles: ['client'] } as const;
        expect(mayCall({ admin: true, roles: ['admin'] }, 'private', kind, method)).to.equal(true);
        expect(mayCall(client, 'private', kind, method)).to.equal(false);
        expect(mayCall(client, 'public', kind, method)).to.equal(allows(['client'], kind.service, method));
      }
    }
  });

  it('lets nobody put a new object into a tenant that is not theirs', () => {
    const tenants = fc.subarray(['t1', 't2', 't3']);
    const asked = fc.constantFrom('', 't1', 't2', 't3', 'shared', 'system', 'nope');
    fc.assert(
      fc.property(tenants, asked, fc.boolean(), (own, wanted, admin) => {
        const principal = {
          admin,
          tenants: own,
          visibility: admin ? ({ all: true } as const) : { tenants: [...own, 'shared'] },
        };
        const decision = tenantOfNew(principal, wanted, 'shared', (name) => name.startsWith('t'));
        if ('tenant' in decision) {
          expect(admin || own.includes(decision.tenant)).to.equal(true);
          expect(mayWrite(principal, decision.tenant)).to.equal(true);
          if (wanted !== '') expect(decision.tenant).to.equal(wanted);
        } else {
          expect(decision.refused).to.equal(admin ? 'invalid' : 'denied');
        }
      }),
    );
  });

  it('shared objects are writable for admins only', () => {
    expect(mayWrite({ admin: false, tenants: ['t1'] }, 'shared')).to.equal(false);
    expect(mayWrite({ admin: true, tenants: [] }, 'shared')).to.equal(true);
  });
});
