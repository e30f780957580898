import { expect } from 'chai';
import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { kinds } from '../../../src/domain/kinds.ts';
import { allows, type Role } from '../../../src/domain/tenancy/rights.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
  type TokenOptions,
} from '../../support/http-service.ts';
import { collect } from '../../support/fake-context.ts';
import { checkAsync } from '../../support/property.ts';
import { PUBLIC_WATCH, watch } from '../../support/watching.ts';

/** A caller as the sheet's words describe one, told apart from how the service works it out. */
type Person = {
  readonly name: string;
  readonly token: TokenOptions;
  readonly tenants: readonly string[];
  readonly roles: readonly Role[];
  readonly viewer?: string;
  readonly manager?: string;
};

const PEOPLE: readonly Person[] = [
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
    roles: ['client'],
    viewer: 'p1',
  },
  {
    name: 'manager in t2',
    token: { user: 'hal', claims: { organization: { t2: { groups: ['/p1/system:managers'] } } } },
    tenants: ['t2'],
    roles: ['client'],
    viewer: 'p1',
    manager: 'p1',
  },
];

type Thing = {
  readonly collection: string;
  readonly service: string;
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
};

const BODIES: readonly {
  readonly collection: string;
  readonly tenants: readonly string[];
  readonly spec: object;
}[] = [
  {
    collection: 'clusters',
    tenants: ['t1', 't2', 'shared'],
    spec: { spec: { template: { id: 'osac.templates.small' } } },
  },
  {
    collection: 'disk_images',
    tenants: ['t1', 't2', 'shared'],
    spec: {
      spec: {
        source_type: 'SOURCE_TYPE_REGISTRY',
        source_ref: 'registry.invalid/i:1',
        guest_os_family: 'GUEST_OS_FAMILY_LINUX',
        architecture: ['ARCHITECTURE_AMD64'],
      },
    },
  },
  { collection: 'cluster_templates', tenants: ['t1', 't2'], spec: { title: 'T' } },
  { collection: 'users', tenants: ['t1', 't2'], spec: { spec: { username: 'u' } } },
  { collection: 'projects', tenants: ['t1', 't2'], spec: {} },
  { collection: 'identity_providers', tenants: ['t1', 't2'], spec: { spec: { title: 'SSO' } } },
];

/** osac-api.md §7 Tenancy, design §7: what is not yours is not there. */
describe('tenants see and change their own and nothing else', () => {
  let service: TestService;
  let admin: Caller;
  const things: Thing[] = [];
  let reads: string[] = [];
  const callers = new Map<string, Caller>();

  before(async () => {
    service = await startTestService({
      onRead: (question, asked) => reads.push(JSON.stringify([question, ...asked])),
    });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    for (const { collection, tenants, spec } of BODIES)
      for (const tenant of tenants)
        for (const name of ['p1', 'p2']) {
          const reply = await admin('POST', `${PRIVATE}/${collection}`, {
            metadata: { name, tenant },
            ...spec,
          });
          expect(reply.status, `${collection}: ${reply.text}`).to.equal(200);
          const object = collection === 'identity_providers' ? reply.json['object'] : reply.json;
          const declared = kinds.find((kind) => kind.collection === collection);
          things.push({
            collection,
            service: declared?.service ?? '',
            id: textAt(object, 'id'),
            tenant,
            name,
          });
        }
    for (const { name, token } of PEOPLE) callers.set(name, callerOf(service, await service.token(token)));
  });
  after(() => service.close());

  const call = (person: Person, verb: string, path: string, body?: object): Promise<Reply> =>
    (callers.get(person.name) as Caller)(verb, `${PUBLIC}/${path}`, body, { 'x-dry-run': 'true' });
  const METHODS = { GET: 'Get', PATCH: 'Update', DELETE: 'Delete' } as const;
  const bodyOf = (verb: string): object | undefined =>
    verb === 'PATCH' ? { metadata: { labels: { seen: 'yes' } } } : undefined;

  /** Roles that count for this object. */
  const rolesFor = ({ roles, tenants, viewer, manager }: Person, thing: Thing): readonly Role[] => {
    const here = thing.service === 'Projects' && tenants.includes(thing.tenant);
    return [
      ...roles,
      ...(here && viewer === thing.name ? (['project-viewer'] as const) : []),
      ...(here && manager === thing.name ? (['project-manager'] as const) : []),
    ];
  };
  /** What the sheet says of one call, without asking the service. */
  const expectedOf = (person: Person, verb: keyof typeof METHODS, thing: Thing): number => {
    const method = METHODS[verb];
    const anywhere = [
      ...person.roles,
      ...(person.viewer === undefined ? [] : (['project-viewer'] as const)),
      ...(person.manager === undefined ? [] : (['project-manager'] as const)),
    ];
    if (!allows(anywhere, thing.service, method)) return 403;
    if (![...person.tenants, 'shared'].includes(thing.tenant)) return 404;
    if (!allows(rolesFor(person, thing), thing.service, method)) return 403;
    return verb === 'GET' || person.tenants.includes(thing.tenant) ? 200 : 403;
  };
  const people = fc.constantFrom(...PEOPLE);
  const verbs = fc.constantFrom('GET', 'PATCH', 'DELETE') as fc.Arbitrary<keyof typeof METHODS>;
  const anyThing = fc.nat().map((n) => things[n % things.length] as Thing);

  it('on every object, by every verb; a try changes nothing', async () => {
    const before = (await collect(service.store.readAll({ limit: 10_000 }))).length;
    await checkAsync(
      fc.asyncProperty(people, verbs, anyThing, async (person, verb, thing) => {
        const reply = await call(person, verb, `${thing.collection}/${thing.id}`, bodyOf(verb));
        const said = `${person.name} ${verb} ${thing.collection} ${thing.name} of ${thing.tenant}: ${reply.text}`;
        expect(reply.status, said).to.equal(expectedOf(person, verb, thing));
      }),
      { numRuns: 300 },
    );
    expect(await collect(service.store.readAll({ limit: 10_000 }))).to.have.length(before);
  });

  it('and cannot tell what belongs to others from what never was', async () => {
    await checkAsync(
      fc.asyncProperty(people, verbs, anyThing, async (person, verb, thing) => {
        fc.pre(![...person.tenants, 'shared'].includes(thing.tenant));
        const absent = randomUUID();
        const [foreign, nothing] = await Promise.all(
          [thing.id, absent].map((id) => call(person, verb, `${thing.collection}/${id}`, bodyOf(verb))),
        );
        expect(foreign?.status).to.equal(nothing?.status);
        expect(foreign?.text.replaceAll(thing.id, '<id>')).to.equal(nothing?.text.replaceAll(absent, '<id>'));
      }),
      { numRuns: 150 },
    );
  });

  it('since both take the same way through the read model', async () => {
    const wayOf = async (person: Person, verb: string, path: string, id: string): Promise<string> => {
      reads = [];
      await call(person, verb, `${path}/${id}`, bodyOf(verb));
      return reads.join('\n').replaceAll(id, '<id>');
    };
    for (const person of PEOPLE)
      for (const thing of things.filter(({ tenant }) => ![...person.tenants, 'shared'].includes(tenant)))
        for (const verb of ['GET', 'PATCH', 'DELETE']) {
          const foreign = await wayOf(person, verb, thing.collection, thing.id);
          const absent = await wayOf(person, verb, thing.collection, randomUUID());
          expect(foreign, `${person.name} ${verb} ${thing.collection}`).to.equal(absent);
        }
    const ann = PEOPLE.find(({ name }) => name === 'user of t1') as Person;
    const order = async (id: string): Promise<string> => {
      reads = [];
      const body = { metadata: { name: 'way' }, spec: { template: { id } } };
      await call(ann, 'POST', 'clusters', body);
      return reads.join('\n').replaceAll(id, '<id>');
    };
    const theirs = things.find(
      ({ collection, tenant }) => collection === 'cluster_templates' && tenant === 't2',
    );
    const way = await order(theirs?.id ?? '');
    expect(way).to.include('"get","clusterTemplate","<id>"');
    expect(way).to.equal(await order(randomUUID()));
  });

  it('in lists, in their totals, and in what a filter finds', async () => {
    for (const person of PEOPLE)
      for (const { collection } of BODIES) {
        const declared = kinds.find((kind) => kind.collection === collection);
        const reply = await call(person, 'GET', collection);
        const listing = `${person.name} ${collection}: ${reply.text}`;
        if (!allows(person.roles, declared?.service ?? '', 'List')) {
          expect(reply.status, listing).to.equal(403);
          continue;
        }
        const visible = [...person.tenants, 'shared'];
        const wanted = things.filter(
          (thing) => thing.collection === collection && visible.includes(thing.tenant),
        );
        const items = itemsOf(reply);
        for (const item of items) expect(visible, listing).to.include(textAt(item, 'metadata', 'tenant'));
        const ids = items.map((item) => textAt(item, 'id'));
        expect(ids, listing).to.include.members(wanted.map(({ id }) => id));
        expect(Number(reply.json['total'] ?? 0), listing).to.equal(items.length);
        const foreign = things.find(
          (thing) => thing.collection === collection && !visible.includes(thing.tenant),
        );
        if (foreign === undefined) continue;
        const found = await Promise.all(
          [foreign.id, randomUUID()].map((id) =>
            call(person, 'GET', `${collection}?filter=${encodeURIComponent(`this.id == "${id}"`)}`),
          ),
        );
        expect(found[0]?.text).to.equal(found[1]?.text);
      }
  });

  it('in what they may refer to', async () => {
    const [ann, eli] = ['user of t1', 'admin of t1'].map((name) => PEOPLE.find((one) => one.name === name));
    const foreignOf = (collection: string): string =>
      things.find((thing) => thing.collection === collection && thing.tenant === 't2')?.id ?? '';
    for (const [person, collection, referred, body] of [
      [
        ann,
        'clusters',
        'cluster_templates',
        (id: string) => ({ metadata: { name: 'x' }, spec: { template: { id } } }),
      ],
      [
        eli,
        'role_bindings',
        'users',
        (id: string) => ({
          metadata: { name: 'x' },
          spec: { role: { name: 'tenant-user' }, users: [{ id }] },
        }),
      ],
    ] as const) {
      const foreign = foreignOf(referred);
      const absent = randomUUID();
      const replies = await Promise.all(
        [foreign, absent].map((id) => call(person as Person, 'POST', collection, body(id))),
      );
      expect(replies.map(({ status }) => status)).to.deep.equal([400, 400]);
      expect(replies[0]?.text.replaceAll(foreign, '<id>')).to.equal(
        replies[1]?.text.replaceAll(absent, '<id>'),
      );
    }
    const [theirs, nowhere] = await Promise.all(
      ['t2', 'no-such'].map((tenant) =>
        call(ann as Person, 'POST', 'disk_images', { metadata: { name: 'x', tenant }, ...BODIES[1]?.spec }),
      ),
    );
    expect(theirs?.text.replaceAll('t2', '<t>')).to.equal(nowhere?.text.replaceAll('no-such', '<t>'));
    expect([theirs?.status, nowhere?.status]).to.deep.equal([403, 403]);
  });

  it('in watches', async () => {
    const watching = await watch(
      service,
      await service.token({ user: 'ann', tenants: ['t1'] }),
      PUBLIC_WATCH,
    );
    try {
      for (const tenant of ['t2', 'shared', 't1'])
        await admin('POST', `${PRIVATE}/disk_images`, {
          metadata: { name: 'seen', tenant },
          ...BODIES[1]?.spec,
        });
      const events = await watching.count(2);
      expect(events.map((event) => textAt(event, 'disk_image', 'metadata', 'tenant'))).to.deep.equal([
        'shared',
        't1',
      ]);
    } finally {
      watching.close();
    }
  });
});
