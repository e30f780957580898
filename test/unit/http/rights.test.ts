import { expect } from 'chai';
import fc from 'fast-check';
import type { VerifiedToken } from '../../../src/app/tenancy/identity.ts';
import { kinds, type AnyKind } from '../../../src/domain/kinds.ts';
import { PRIVATE_RIGHTS, RIGHTS, type AnyMethod, type Role } from '../../../src/domain/tenancy/rights.ts';
import {
  lackedRight,
  mayCall,
  mayCallOn,
  mayWrite,
  tenantOfNew,
} from '../../../src/http/osac/authorization.ts';
import { principalOf } from '../../../src/http/osac/principal.ts';
import { check } from '../../support/property.ts';

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
    ['the controller', { organizations: [], ownAccountOf: 'osac-controller' }],
    ['the admin client of the realm', { organizations: [], ownAccountOf: 'osac-admin' }],
  ] as const)
    it(`${what} is a provider admin and sees every tenant`, () => {
      expect(principalOf(token(more))).to.deep.include({ admin: true, visibility: { all: true } });
    });

  for (const [what, more] of [
    [
      'a user who is named like the admin client',
      { organizations: [], userName: 'service-account-osac-admin' },
    ],
    ['a subject that is named like it', { organizations: [], subject: 'service-account-osac-admin' }],
    ['the own account of another client', { organizations: [], ownAccountOf: 'osac-cli' }],
  ] as const)
    it(`${what} is not`, () => {
      expect(principalOf(token(more))).to.include({ admin: false });
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

  it('of service accounts cannot become a built-in tenant by their namespace', () => {
    const account = token({
      serviceAccount: true,
      organizations: [],
      subject: 'system:serviceaccount:system:x',
    });
    expect(principalOf(account)).to.deep.include({ tenants: [], visibility: { tenants: ['shared'] } });
  });

  it('have project roles from the groups inside each tenant', () => {
    const tenantGroups = new Map([
      ['t1', ['/p1/system:viewers', '/p2/system:managers', '/a/b/system:viewers', 'admins']],
      ['t2', ['p3/system:managers', '/system:managers', '/p4/system:owners', '/p5/system:managers/x']],
      ['t3', ['/p1/system:managers']],
    ]);
    const { projects, admin } = principalOf(token({ organizations: ['t1', 't2'], tenantGroups }));
    expect(admin).to.equal(false);
    expect([...projects]).to.deep.equal([['t1', { viewers: ['p1', 'p2', 'a.b'], managers: ['p2'] }]]);
  });

  it("have project roles from the token's own groups when it names a single tenant", () => {
    const groups = ['/p1/system:managers'];
    const roles = (organizations: readonly string[]) =>
      principalOf(token({ organizations, groups })).projects;
    expect([...roles(['t1'])]).to.deep.equal([['t1', { viewers: ['p1'], managers: ['p1'] }]]);
    for (const several of [['t1', 't2'], ['t1', 'shared'], ['shared'], []])
      expect([...roles(several)], several.join()).to.deep.equal([]);
    // The other form of the claim has groups of its own.
    const other = token({ groups, tenantGroups: new Map([['t1', []]]) });
    expect([...principalOf(other).projects]).to.deep.equal([]);
  });

  it('of the CSI driver see every tenant and are nothing else', () => {
    expect(principalOf(token({ realmRoles: ['osac-csi-driver', 'tenant-admin'] }))).to.deep.include({
      admin: false,
      roles: ['csi-driver'],
      visibility: { all: true },
    });
    const account = token({ serviceAccount: true, realmRoles: ['osac-csi-driver'] });
    expect(principalOf(account)).to.deep.include({ roles: ['client'] });
  });

  for (const role of ['tenant-reader', 'auditor'] as const)
    it(`of a ${role} read, and have no client's rights`, () => {
      expect(principalOf(token({ realmRoles: [role] }))).to.deep.include({ admin: false, roles: [role] });
      const both = principalOf(token({ realmRoles: [role, 'tenant-admin'] }));
      expect(both).to.deep.include({ roles: ['client', 'tenant-admin', 'tenant-idp-manager', role] });
      const account = token({ serviceAccount: true, realmRoles: [role] });
      expect(principalOf(account)).to.deep.include({ roles: ['client'] });
    });

  it('with project groups and no realm role see these projects and nothing else of any of their tenants', () => {
    const tenantGroups = new Map([
      ['t1', ['/p1/system:viewers', '/p2/system:managers']],
      ['t2', []],
    ]);
    const member = { organizations: ['t1', 't2'], tenantGroups };
    expect(principalOf(token(member))).to.deep.include({
      roles: ['project-member'],
      visibility: { tenants: ['t1', 't2', 'shared'], within: { t1: ['p1', 'p2'], t2: [] } },
    });
    for (const role of ['tenant-admin', 'tenant-idp-manager', 'tenant-reader', 'auditor'])
      expect(principalOf(token({ ...member, realmRoles: [role] })).visibility, role).to.deep.equal({
        tenants: ['t1', 't2', 'shared'],
      });
    // A role of the realm that says nothing here does not lift the limit.
    expect(principalOf(token({ ...member, realmRoles: ['offline_access'] })).roles).to.deep.equal([
      'project-member',
    ]);
  });

  const VIEWER = '/p1/system:viewers';
  for (const [what, claims] of [
    ['of several tenants in a list', { organizations: ['t1', 't2'], groups: [VIEWER] }],
    ['of a tenant beside a built-in one', { organizations: ['t1', 'system'], groups: [VIEWER] }],
    ['without the path', { groups: ['system:managers'] }],
    ['without the first slash', { tenantGroups: new Map([['t1', ['p1/system:viewers']]]) }],
    ['with a slash at its end', { tenantGroups: new Map([['t1', ['/p1/system:managers/']]]) }],
  ] as const)
    it(`with a project group ${what} have no client's rights, and see no project`, () => {
      const { roles, visibility, projects } = principalOf(token(claims));
      expect(roles).to.deep.equal(['project-member']);
      expect([...projects]).to.deep.equal([]);
      const within = 'within' in visibility ? Object.values(visibility.within ?? {}).flat() : undefined;
      expect(within).to.deep.equal([]);
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

  it('never name a subject of an issuer as who acts, unless that issuer has said so', () => {
    const names = ['a', 'b', 'https://a', 'https://b', '["a","b"]', 'a","b'];
    const text = fc.constantFrom(...names);
    const id = (issuer: string, subject: string): string => principalOf(token({ issuer, subject })).subjectId;
    const known = new Map(names.flatMap((issuer) => names.map((sub) => [id(issuer, sub), issuer] as const)));
    const acting = new Map<string, string>();
    check(
      fc.property(text, text, text, (vouchedBy, issuer, subject) => {
        const party = { issuer, subject, userName: 'x' };
        const { actingParty } = principalOf(token({ issuer: vouchedBy, actingParty: party }));
        const who = actingParty?.subjectId ?? '';
        expect(known.get(who)).to.equal(vouchedBy === issuer ? issuer : undefined);
        expect(actingParty?.vouchedBy).to.equal(vouchedBy === issuer ? undefined : vouchedBy);
        // One id for one party by the word of one issuer.
        const named = JSON.stringify([vouchedBy, issuer, subject]);
        expect(acting.get(who) ?? named).to.equal(named);
        acting.set(who, named);
      }),
    );
  });
});

describe('the table of rights', () => {
  /** What OSAC lets every user call, as its table has it; nothing of any other service. */
  const OF_CLIENTS: { readonly [methods: string]: readonly string[] } = {
    'List Get Create Update Delete': [
      'BareMetalInstances',
      'Clusters',
      'ComputeInstances',
      'DiskImages',
      'ExternalIPAttachments',
      'ExternalIPs',
      'NATGateways',
      'Secrets',
      'SecurityGroups',
      'Subnets',
      'VirtualNetworks',
    ],
    'List Get': [
      'BareMetalInstanceCatalogItems',
      'BareMetalInstanceTemplates',
      'BareMetalInstanceTypes',
      'ClusterCatalogItems',
      'ClusterTemplates',
      'ClusterVersions',
      'ComputeInstanceCatalogItems',
      'ComputeInstanceTemplates',
      'ExternalIPPools',
      'HostTypes',
      'InstanceTypes',
      'RoleBindings',
      'Roles',
    ],
    List: ['Projects', 'ProjectMemberships'],
    Create: ['ConsoleSessions'],
  };
  /** Of a kind that OSAC does not have, what its declaration says. */
  const OF_OTHERS = { offered: 'List Get', owned: 'List Get Create Update Delete', none: '' };
  const ofClients = ({ service, rights }: AnyKind): readonly string[] => {
    const entry = Object.entries(OF_CLIENTS).find(([, services]) => services.includes(service));
    return (entry?.[0] ?? OF_OTHERS[rights ?? 'none']).split(' ');
  };

  it('gives admins everything and clients what OSAC lists, on the public surface only', () => {
    for (const kind of kinds) {
      for (const method of ['List', 'Get', 'Create', 'Update', 'Delete'] as const) {
        const client = { admin: false, roles: ['client'] } as const;
        expect(mayCall({ admin: true, roles: ['admin'] }, 'private', kind, method)).to.equal(true);
        expect(mayCall(client, 'private', kind, method)).to.equal(false);
        expect(mayCall(client, 'public', kind, method), `${kind.service}/${method}`).to.equal(
          ofClients(kind).includes(method),
        );
      }
    }
  });

  const projectNames = fc.constantFrom('p1', 'p2', 'a.b');
  const projectRoles = fc.record({
    viewers: fc.uniqueArray(projectNames),
    managers: fc.uniqueArray(projectNames),
  });
  const callers = fc.record({
    admin: fc.constant(false),
    roles: fc.subarray<Role>([
      'client',
      'project-member',
      'tenant-reader',
      'tenant-admin',
      'tenant-idp-manager',
      'auditor',
      'csi-driver',
    ]),
    projects: fc
      .array(fc.tuple(fc.constantFrom<string>('t1', 't2'), projectRoles))
      .map((entries) => new Map(entries)),
  });
  const methods = fc.constantFrom<AnyMethod>('List', 'Get', 'Create', 'Update', 'Delete', 'Watch');
  const services = fc.oneof(
    fc.constantFrom('Projects', 'ProjectMemberships'),
    fc.constantFrom(...Object.keys(RIGHTS['tenant-admin']), 'Volumes', 'Hubs', 'Tenants'),
  );

  it('gives by a role in one project nothing in another, nor in a project of that name elsewhere', () => {
    const projects = new Map([['t1', { viewers: ['p1', 'p2'], managers: ['p2'] }]]);
    const caller = { admin: false, roles: ['client'] as const, projects };
    const given = ['List', 'Get', 'Create', 'Update', 'Delete'].flatMap((method) =>
      ['Projects', 'ProjectMemberships'].flatMap((service) =>
        ['t1/p1', 't1/p2', 't1/p3', 't2/p2'].flatMap((place) => {
          const [tenant = '', project = ''] = place.split('/');
          const may = mayCallOn(caller, 'public', { service }, method as AnyMethod, { tenant, project });
          return may && method !== 'List' ? [`${service}/${method} ${place}`] : [];
        }),
      ),
    );
    expect(given.toSorted()).to.deep.equal([
      'ProjectMemberships/Create t1/p2',
      'ProjectMemberships/Delete t1/p2',
      'ProjectMemberships/Get t1/p2',
      'ProjectMemberships/Update t1/p2',
      'Projects/Delete t1/p2',
      'Projects/Get t1/p1',
      'Projects/Get t1/p2',
      'Projects/Update t1/p2',
    ]);
  });

  it('lets nobody do to an object what neither a role nor a project role of that very project lists', () => {
    check(
      fc.property(
        callers,
        fc.constantFrom('public', 'private'),
        services,
        methods,
        fc.constantFrom<string>('t1', 't2', 'shared'),
        projectNames,
        (caller, surface, service, method, tenant, project) => {
          const here = caller.projects.get(tenant);
          const roles: Role[] = [
            ...caller.roles,
            ...(here?.viewers.includes(project) === true ? (['project-viewer'] as const) : []),
            ...(here?.managers.includes(project) === true ? (['project-manager'] as const) : []),
          ];
          const right = roles.some((role) =>
            (surface === 'public' ? RIGHTS : PRIVATE_RIGHTS)[role as Exclude<Role, 'admin'>][
              service
            ]?.includes(method),
          );
          const may = mayCallOn(caller, surface, { service }, method, { tenant, project });
          expect(may).to.equal(right);
          // Whoever may touch one object passes the route.
          if (may) expect(mayCall(caller, surface, { service }, method)).to.equal(true);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('names the right that a role which only reads lacks; others hear the words of OSAC', () => {
    const told = (role: Role, service: string, method: AnyMethod) =>
      lackedRight({ admin: false, roles: [role] }, 'public', { service }, method);
    expect(told('tenant-reader', 'Clusters', 'Create')).to.equal(
      "permission denied: role 'tenant-reader' has no right 'Clusters/Create'; it belongs to role 'tenant-admin' or to a manager of its project",
    );
    expect(told('project-member', 'ConsoleSessions', 'Create')).to.include(
      "a viewer of projects has no right 'ConsoleSessions/Create'",
    );
    expect(told('project-member', 'Projects', 'Update')).to.equal(undefined);
    expect(told('client', 'Tenants', 'List')).to.equal(undefined);
  });

  it('lets nobody put a new object into a tenant that is not theirs', () => {
    const tenants = fc.subarray(['t1', 't2', 't3']);
    const asked = fc.constantFrom('', 't1', 't2', 't3', 'shared', 'system', 'nope');
    check(
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

  it('a tenant that the token names and nobody has onboarded is a mistake, not a place', () => {
    const principal = { tenants: ['ghost', 't1'], visibility: { tenants: ['ghost', 't1', 'shared'] } };
    const exists = (name: string): boolean => name === 't1';
    for (const asked of ['', 'ghost'])
      expect(tenantOfNew(principal, asked, 'shared', exists)).to.deep.equal({
        refused: 'invalid',
        message: "tenant 'ghost' doesn't exist",
      });
    expect(tenantOfNew(principal, 't1', 'shared', exists)).to.deep.equal({ tenant: 't1' });
  });

  it('shared objects are writable for admins only', () => {
    expect(mayWrite({ admin: false, tenants: ['t1'] }, 'shared')).to.equal(false);
    expect(mayWrite({ admin: true, tenants: [] }, 'shared')).to.equal(true);
  });
});
