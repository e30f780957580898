import { expect } from 'chai';
import fc from 'fast-check';
import type { VerifiedToken } from '../../../src/app/tenancy/identity.ts';
import type { IssuerScope } from '../../../src/domain/tenancy/trusted-issuers.ts';
import { claimBeyond, principalOf } from '../../../src/http/osac/principal.ts';
import { check } from '../../support/property.ts';

const NOTHING: IssuerScope = { tenants: [], admins: false, services: false };
const token = (more: Partial<VerifiedToken> = {}): VerifiedToken => ({
  issuer: 'https://sso.example',
  subject: 'sub-1',
  userName: 'alice',
  serviceAccount: false,
  organizations: [],
  groups: [],
  realmRoles: [],
  expiresAt: 2_000_000_000,
  tokenIdHash: 'h',
  ...more,
});
const account = (subject: string): VerifiedToken => token({ serviceAccount: true, subject });
const beyond = (scope: Partial<IssuerScope>, of: VerifiedToken): string | undefined =>
  claimBeyond({ ...NOTHING, ...scope }, of, principalOf(of, { deploymentNamespace: 'osac' }));

describe('what an issuer may claim', () => {
  const cases: readonly (readonly [
    what: string,
    of: VerifiedToken,
    claim: string,
    ...enough: Partial<IssuerScope>[],
  ])[] = [
    [
      'a user of a tenant',
      token({ organizations: ['acme'] }),
      "tenant 'acme'",
      { tenants: ['acme'] },
      { tenants: 'all' },
    ],
    [
      'a user of two tenants',
      token({ organizations: ['acme', 'globex'] }),
      "tenant 'acme'",
      { tenants: ['globex', 'acme'] },
    ],
    ['the group of provider admins', token({ groups: ['admins'] }), 'provider admin', { admins: true }],
    [
      "the own account of the provider's client",
      token({ ownAccountOf: 'osac-admin' }),
      'provider admin',
      { admins: true },
    ],
    [
      'a provider admin of a tenant',
      token({ groups: ['/admins'], organizations: ['acme'] }),
      'provider admin',
      { admins: true, tenants: ['acme'] },
    ],
    [
      'a service account of a tenant',
      account('system:serviceaccount:acme:robot'),
      'service account',
      { services: true, tenants: ['acme'] },
    ],
    [
      'a service account of the deployment',
      account('system:serviceaccount:osac:osac-operator'),
      'service account',
      { services: true, admins: true },
    ],
    [
      'the CSI driver',
      token({ realmRoles: ['osac-csi-driver'] }),
      "role 'osac-csi-driver'",
      { tenants: 'all' },
      { admins: true },
    ],
  ];

  for (const [what, of, claim, ...enough] of cases)
    it(`${what}: out of scope unless named`, () => {
      expect(beyond({}, of)).to.equal(claim);
      for (const scope of enough) expect(beyond(scope, of), JSON.stringify(scope)).to.equal(undefined);
    });

  for (const [what, scope, of, claim] of [
    [
      'one of two tenants',
      { tenants: ['acme'] },
      token({ organizations: ['acme', 'globex'] }),
      "tenant 'globex'",
    ],
    ['all tenants and no admins', { tenants: 'all' }, token({ groups: ['admins'] }), 'provider admin'],
    [
      'admins and not their tenant',
      { admins: true },
      token({ groups: ['admins'], organizations: ['acme'] }),
      "tenant 'acme'",
    ],
    [
      'services and not their tenant',
      { services: true },
      account('system:serviceaccount:acme:robot'),
      "tenant 'acme'",
    ],
    [
      'services and no admins',
      { services: true, tenants: 'all' },
      account('system:serviceaccount:osac:osac-operator'),
      'provider admin',
    ],
    [
      'a tenant and not the CSI driver',
      { tenants: ['acme'] },
      token({ realmRoles: ['osac-csi-driver'] }),
      "role 'osac-csi-driver'",
    ],
  ] as const)
    it(`with ${what} is refused for the rest`, () => {
      expect(beyond(scope, of)).to.equal(claim);
    });

  it('is never less than what its tokens may see and do', () => {
    const names = fc.subarray(['acme', 'globex', 'osac', 'shared', 'system']);
    const tokens = fc.record({
      organizations: names,
      groups: fc.subarray(['admins', '/admins', '/p/system:managers']),
      realmRoles: fc.subarray(['tenant-admin', 'osac-csi-driver', 'auditor']),
      serviceAccount: fc.boolean(),
      subject: fc.constantFrom('u', 'system:serviceaccount:acme:admin', 'system:serviceaccount:osac:admin'),
    });
    const scopes: fc.Arbitrary<IssuerScope> = fc.record({
      tenants: fc.oneof(names, fc.constant('all' as const)),
      admins: fc.boolean(),
      services: fc.boolean(),
    });
    check(
      fc.property(scopes, tokens, (scope, claims) => {
        const of = token(claims);
        const principal = principalOf(of, { deploymentNamespace: 'osac' });
        if (claimBeyond(scope, of, principal) !== undefined) return;
        if (principal.admin) expect(scope.admins).to.equal(true);
        if ('all' in principal.visibility) expect(scope.admins || scope.tenants === 'all').to.equal(true);
        else
          for (const tenant of principal.visibility.tenants)
            expect(tenant === 'shared' || scope.tenants === 'all' || scope.tenants.includes(tenant)).to.equal(
              true,
            );
      }),
    );
  });
});
