import { expect } from 'chai';
import type { VerifiedToken } from '../../../src/app/tenancy/identity.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { ApiError } from '../../../src/http/errors.ts';
import type { Call } from '../../../src/http/osac/call.ts';
import { principalOf, type Principal } from '../../../src/http/osac/principal.ts';
import { withProjectRights } from '../../../src/http/osac/surfaces.ts';
import type { KindService } from '../../../src/http/osac/service-table.ts';
import type { ResourceRow } from '../../../src/projections/read-models.ts';
import { sees } from '../../../src/projections/visibility.ts';

const person = (groups: readonly string[], realmRoles: readonly string[] = []): Principal =>
  principalOf({
    issuer: 'https://sso.example',
    subject: 's',
    userName: 'u',
    serviceAccount: false,
    organizations: ['t1'],
    groups,
    realmRoles,
    expiresAt: 2_000_000_000,
    tokenIdHash: 'h',
  } satisfies VerifiedToken);

const VIEWS_2 = '/p2/system:viewers';
const MANAGES_1 = '/p1/system:managers';
const PEOPLE = {
  manager: person([MANAGES_1]),
  'manager who views p2': person([MANAGES_1, VIEWS_2]),
  'reader who manages p1': person([MANAGES_1], ['tenant-reader']),
  viewer: person(['/p1/system:viewers']),
  client: person([]),
} as const;
type Name = keyof typeof PEOPLE;

/** What stands between a route and its handler. */
describe('rights inside one project', () => {
  const row = (id: string, project: string): ResourceRow =>
    ({ kind: 'projectMembership', id, tenant: 't1', project, name: id }) as ResourceRow;
  const rows = [row('m1', 'p1'), row('m2', 'p2'), row('m3', 'p3')];
  const resources = {
    get: (kind: string, id: string, visibility: Principal['visibility']): ResourceRow | undefined =>
      rows.find((one) => one.id === id && sees(visibility, kind, one)),
  };
  /** What a handler answers who looks for itself, with what it was given of the caller. */
  const behind = (call: Call<{ readonly id: string }>): { body: string } => {
    if (resources.get('projectMembership', call.message.id, call.principal.visibility) === undefined)
      throw new ApiError('NOT_FOUND', 'absent');
    return { body: call.message.id };
  };
  const made: Principal['visibility'][] = [];
  const guarded = (service: string, kind = 'projectMembership') =>
    withProjectRights(
      'public',
      {
        kind,
        governed: { service },
        list: behind,
        get: behind,
        update: behind,
        remove: behind,
        create: (call: Call<object>) => {
          made.push(call.principal.visibility);
          return { body: '' };
        },
        extras: new Map([['kubeconfig', { method: 'GetKubeconfig', handler: behind }]]),
      } as unknown as KindService,
      resources,
    );
  const call = <M>(principal: Principal, message: M): Call<M> =>
    ({ principal, message, metadata: {}, signal: new AbortController().signal }) as unknown as Call<M>;
  const answered = async (ask: () => unknown): Promise<number> => {
    try {
      await ask();
      return 200;
    } catch (error) {
      if (error instanceof ApiError) return error.status;
      throw error;
    }
  };

  const MEMBERSHIPS: { readonly [name in Name]?: readonly [own: number, viewed: number, other: number] } = {
    manager: [200, 404, 404],
    'manager who views p2': [200, 403, 404],
    'reader who manages p1': [200, 403, 403],
    viewer: [403, 404, 404],
  };
  for (const [name, statuses] of Object.entries(MEMBERSHIPS))
    for (const verb of ['update', 'remove'] as const)
      it(`${name}: ${verb} of memberships of p1, p2 and p3`, async () => {
        const service = guarded('ProjectMemberships');
        const found: number[] = [];
        for (const { id } of rows)
          found.push(
            await answered(() => service[verb](call(PEOPLE[name as Name], { id } as never) as never)),
          );
        expect(found).to.deep.equal(statuses);
      });

  for (const [name, statuses] of [
    ['manager', [200, 404, 404]],
    ['manager who views p2', [200, 403, 404]],
    ['reader who manages p1', [200, 403, 403]],
    ['viewer', [403, 404, 404]],
    ['client', [200, 200, 200]],
  ] as const)
    it(`${name}: kubeconfigs of p1, p2 and p3`, async () => {
      const extra = guarded('Clusters').extras.get('kubeconfig');
      const found: number[] = [];
      for (const { id } of rows)
        found.push(await answered(() => extra?.handler(call(PEOPLE[name], { id } as never))));
      expect(found).to.deep.equal(statuses);
    });

  it('a new object lies in a project of its manager, who sees what may be written there and nothing more', async () => {
    const create = (principal: Principal, project?: string): Promise<number> => {
      const metadata: JsonObject = project === undefined ? {} : { project };
      return answered(() => guarded('Secrets').create(call(principal, { object: { metadata } })));
    };
    const both = PEOPLE['manager who views p2'];
    expect(await create(both, 'p1')).to.equal(200);
    expect(made.pop()).to.deep.equal({ tenants: ['t1', 'shared'], within: { t1: ['p1'] } });
    for (const project of ['p2', 'p3', '', undefined])
      expect(await create(both, project), project).to.equal(403);
    expect(await create(PEOPLE.client)).to.equal(200);
    expect(made.pop()).to.deep.equal({ tenants: ['t1', 'shared'] });
    expect(made).to.deep.equal([]);
  });

  it('a tenant of the same project name is another place', async () => {
    const object = { metadata: { tenant: 't2', project: 'p1' } };
    expect(await answered(() => guarded('Secrets').create(call(PEOPLE.manager, { object })))).to.equal(403);
  });
});
