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
} from '../../support/http/service.ts';
import { collect } from '../../support/commands/fake-context.ts';
import { PEOPLE, type Person } from '../../support/http/isolation-people.ts';
import { cases, checkAsync } from '../../support/property.ts';
import { PUBLIC_WATCH, watch } from '../../support/http/watch-client.ts';

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
  { collection: 'secrets', tenants: ['t1', 't2'], spec: { data: { key: 'dg==' } } },
  {
    collection: 'cluster_catalog_items',
    tenants: ['t1', 't2', 'shared'],
    spec: { title: 'Item', template: { id: 'osac.templates.small' }, published: true },
  },
];

/** What is not yours is not there. */
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
    const theirs = await admin('POST', `${PRIVATE}/projects`, { metadata: { name: 'theirs', tenant: 't2' } });
    expect(theirs.status, theirs.text).to.equal(200);
    for (const { name, token } of PEOPLE) callers.set(name, callerOf(service, await service.token(token)));
  });
  after(() => service.close());

  const query = (values: Record<string, string>): string => new URLSearchParams(values).toString();
  const TRIED = { 'x-dry-run': 'true' };
  const call = (
    person: Person,
    verb: string,
    path: string,
    body?: object,
    headers: Record<string, string> = TRIED,
  ): Promise<Reply> => (callers.get(person.name) as Caller)(verb, `${PUBLIC}/${path}`, body, headers);
  const personOf = (name: string): Person => PEOPLE.find((one) => one.name === name) as Person;
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
  const rolesSomewhere = ({ roles, viewer, manager }: Person): readonly Role[] => [
    ...roles,
    ...(viewer === undefined ? [] : (['project-viewer'] as const)),
    ...(manager === undefined ? [] : (['project-manager'] as const)),
  ];
  /** What the sheet says of one call, without asking the service. */
  const expectedOf = (person: Person, verb: keyof typeof METHODS, thing: Thing): number => {
    const method = METHODS[verb];
    if (!allows(rolesSomewhere(person), thing.service, method)) return 403;
    if (!isSeen(person, thing)) return 404;
    if (!allows(rolesFor(person, thing), thing.service, method)) return 403;
    return verb === 'GET' || person.tenants.includes(thing.tenant) ? 200 : 403;
  };
  /** Kinds whose objects outside projects are the whole tenant's. */
  const WHOLE_TENANTS = ['cluster_templates', 'cluster_catalog_items', 'users'];
  const isSeen = ({ tenants, viewer }: Person, { collection, tenant, name }: Thing): boolean =>
    tenant === 'shared' ||
    (tenants.includes(tenant) &&
      (viewer === undefined ||
        WHOLE_TENANTS.includes(collection) ||
        (collection === 'projects' && name === viewer)));
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
      { numRuns: cases(300) },
    );
    expect(await collect(service.store.readAll({ limit: 10_000 }))).to.have.length(before);
  });

  it('and cannot tell what belongs to others from what never was', async () => {
    await checkAsync(
      fc.asyncProperty(people, verbs, anyThing, async (person, verb, thing) => {
        fc.pre(!isSeen(person, thing));
        const absent = randomUUID();
        const [foreign, nothing] = await Promise.all(
          [thing.id, absent].map((id) => call(person, verb, `${thing.collection}/${id}`, bodyOf(verb))),
        );
        expect(foreign?.status).to.equal(nothing?.status);
        expect(foreign?.text.replaceAll(thing.id, '<id>')).to.equal(nothing?.text.replaceAll(absent, '<id>'));
      }),
      { numRuns: cases(150) },
    );
  });

  it('since both take the same way through the read model', async () => {
    const wayOf = async (person: Person, verb: string, path: string, id: string): Promise<string> => {
      reads = [];
      await call(person, verb, `${path}/${id}`, bodyOf(verb));
      return reads.join('\n').replaceAll(id, '<id>');
    };
    for (const person of PEOPLE)
      for (const thing of things.filter((one) => !isSeen(person, one)))
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
        if (!allows(rolesSomewhere(person), declared?.service ?? '', 'List')) {
          expect(reply.status, listing).to.equal(403);
          continue;
        }
        const visible = [...person.tenants, 'shared'];
        const wanted = things.filter((thing) => thing.collection === collection && isSeen(person, thing));
        const items = itemsOf(reply);
        for (const item of items) expect(visible, listing).to.include(textAt(item, 'metadata', 'tenant'));
        const ids = items.map((item) => textAt(item, 'id'));
        expect(ids, listing).to.include.members(wanted.map(({ id }) => id));
        expect(Number(reply.json['total'] ?? 0), listing).to.equal(items.length);
        const hidden = things.filter((thing) => thing.collection === collection && !isSeen(person, thing));
        for (const { id } of hidden) expect(ids, listing).not.to.include(id);
        const [foreign] = hidden;
        if (foreign === undefined) continue;
        const found = await Promise.all(
          [foreign.id, randomUUID()].map((id) =>
            call(person, 'GET', `${collection}?filter=${encodeURIComponent(`this.id == "${id}"`)}`),
          ),
        );
        expect(found[0]?.text).to.equal(found[1]?.text);
      }
  });

  it('in filters and orders of lists, whatever these ask about', async () => {
    const questions = fc.constantFrom(
      (path: string, value: string) => `this.${path} == "${value}"`,
      (path: string, value: string) => `this.${path} != "${value}"`,
      (path: string, value: string) => `this.${path} in ["${value}", "x"]`,
      (path: string, value: string) => `this.${path}.startsWith("${value}")`,
      (path: string, value: string) => `!(this.${path} == "${value}") && has(this.metadata)`,
      (path: string, value: string) => `this.${path} < "${value}" || this.${path} > "${value}"`,
    );
    const fields = fc.constantFrom<[string, (thing: Thing) => string, string]>(
      ['id', ({ id }) => id, '00000000-0000-4000-8000-000000000000'],
      ['metadata.tenant', ({ tenant }) => tenant, 'tX'],
    );
    const orders = fc.constantFrom('', 'metadata.tenant desc', 'metadata.creation_timestamp', 'id desc');
    await checkAsync(
      fc.asyncProperty(people, anyThing, fields, questions, orders, async (person, thing, field, ask, by) => {
        const [path, valueOf, absent] = field;
        fc.pre(![...person.tenants, 'shared'].includes(thing.tenant));
        const list = (value: string): Promise<Reply> =>
          call(
            person,
            'GET',
            `${thing.collection}?${query({ filter: ask(path, value), ...(by === '' ? {} : { order: by }) })}`,
          );
        const [foreign, nothing] = [await list(valueOf(thing)), await list(absent)];
        const said = `${person.name} ${thing.collection} ${ask(path, valueOf(thing))}: ${foreign.text}`;
        // Above and below are others of a value that lies elsewhere; nobody else's come for it.
        if (!ask(path, '').includes('<')) expect(foreign.text, said).to.equal(nothing.text);
        for (const item of foreign.status === 200 ? itemsOf(foreign) : [])
          expect([...person.tenants, 'shared'], said).to.include(textAt(item, 'metadata', 'tenant'));
      }),
      { numRuns: cases(150) },
    );
  });

  it('in what they POST: into their own tenants alone, tried or meant', async () => {
    const kindsMade = fc.constantFrom(...BODIES);
    const places = fc.constantFrom('', 't1', 't2', 'shared', 'system', 'nowhere');
    const how = fc.record({ tried: fc.boolean(), keyed: fc.boolean() });
    let serial = 0;
    await checkAsync(
      fc.asyncProperty(people, kindsMade, places, how, async (person, made, place, { tried, keyed }) => {
        const service_ = kinds.find(({ collection }) => collection === made.collection)?.service ?? '';
        const before = await service.store.lastPosition();
        const post = (tenant: string): Promise<Reply> =>
          call(
            person,
            'POST',
            made.collection,
            {
              metadata: { name: `n-${(serial += 1)}`, ...(tenant === '' ? {} : { tenant }) },
              ...made.spec,
            },
            { ...(tried ? TRIED : {}), ...(keyed ? { 'idempotency-key': `k-${serial}` } : {}) },
          );
        const reply = await post(place);
        const said = `${person.name} POST ${made.collection} into '${place}': ${reply.text}`;
        const right = allows(person.roles, service_, 'Create');
        const owner = place === '' ? person.tenants[0] : place;
        const isOwn = owner !== undefined && person.tenants.includes(owner);
        expect(reply.status, said).to.equal(right && isOwn ? 200 : 403);
        if (reply.status === 200)
          expect(textAt(reply.json['object'] ?? reply.json, 'metadata', 'tenant'), said).to.equal(owner);
        else if (right && !isOwn && !['', 'shared'].includes(place)) {
          const absent = await post('never-was');
          expect(absent.text.replaceAll('never-was', place), said).to.equal(reply.text);
        }
        const events = await collect(
          service.store.readAll({ limit: 10_000, ...(before === undefined ? {} : { after: before }) }),
        );
        if (tried || reply.status !== 200) expect(events, said).to.have.length(0);
        for (const { metadata } of events) expect(metadata['tenant'], said).to.equal(owner);
      }),
      { numRuns: cases(200) },
    );
  });

  it('and an id of their choice tells nothing of whose it is, only that it is taken', async () => {
    const ann = personOf('user of t1');
    const image = (id: string) => ({ id, metadata: { name: `i-${randomUUID()}` }, ...BODIES[1]?.spec });
    const [theirs, own] = ['t2', 't1'].map((tenant) =>
      things.find((thing) => thing.collection === 'disk_images' && thing.tenant === tenant),
    );
    for (const headers of [TRIED, {}]) {
      const replies = await Promise.all(
        [theirs, own].map(async (thing) => {
          const reply = await call(ann, 'POST', 'disk_images', image(thing?.id ?? ''), headers);
          return [reply.status, reply.text.replaceAll(thing?.id ?? '', '<id>')];
        }),
      );
      expect(replies[0]?.[0]).to.equal(409);
      expect(replies[0]).to.deep.equal(replies[1]);
    }
  });

  it('in what they may refer to', async () => {
    const foreignOf = (collection: string): Thing =>
      things.find((thing) => thing.collection === collection && thing.tenant === 't2') as Thing;
    const owned = (collection: string): string =>
      things.find((thing) => thing.collection === collection && thing.tenant === 't1')?.id ?? '';
    const cluster = { template: { id: 'osac.templates.small' } };
    const user = (id: string) => ({ spec: { role: { name: 'tenant-user' }, users: [{ id }] } });
    const references: readonly (readonly [
      who: string,
      at: string,
      to: string,
      body: (id: string) => object,
    ])[] = [
      ['user of t1', 'clusters', 'cluster_templates', (id) => ({ spec: { template: { id } } })],
      [
        'user of both',
        'clusters',
        'cluster_templates',
        (id) => ({ metadata: { tenant: 't1' }, spec: { template: { id } } }),
      ],
      ['user of t1', 'clusters', 'cluster_catalog_items', (id) => ({ spec: { catalog_item: { id } } })],
      ['user of t1', 'clusters', 'secrets', (id) => ({ spec: { ...cluster, pull_secret_secret: { id } } })],
      [
        'admin of t1',
        'cluster_catalog_items',
        'cluster_templates',
        (id) => ({ title: 'T', template: { id } }),
      ],
      ['admin of t1', 'role_bindings', 'users', user],
      [
        'admin of t1',
        'project_memberships',
        'users',
        (id) => ({
          metadata: { project: 'p1' },
          spec: { role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER', users: [{ id }] },
        }),
      ],
    ];
    const same = async (
      reply: (id: string) => Promise<Reply>,
      foreign: string,
      said: string,
    ): Promise<void> => {
      const absent = randomUUID();
      const [theirs, nothing] = [await reply(foreign), await reply(absent)];
      expect(theirs.status, `${said}: ${theirs.text}`).to.equal(400);
      expect(theirs.text.replaceAll(foreign, '<id>'), said).to.equal(nothing.text.replaceAll(absent, '<id>'));
    };
    const named = (body: object): object => ({
      ...body,
      metadata: { name: 'x', ...(body as { metadata?: object }).metadata },
    });
    for (const [who, at, to, body] of references)
      for (const headers of [TRIED, {}]) {
        const foreign = foreignOf(to).id;
        const said = `${who} ${at} -> ${to}`;
        await same(
          (id) => call(personOf(who), 'POST', at, named(body(id)), headers),
          foreign,
          `POST ${said}`,
        );
        const path = `${at}/${owned(at)}`;
        if (owned(at) !== '' && who !== 'user of both')
          await same((id) => call(personOf(who), 'PATCH', path, body(id), headers), foreign, `PATCH ${said}`);
      }
    // A project is referred to by its name, which it has in its tenant alone.
    for (const headers of [TRIED, {}]) {
      const replies = await Promise.all(
        ['theirs', 'nowhere'].map((project) =>
          call(
            personOf('user of t1'),
            'POST',
            'secrets',
            { metadata: { name: 'x', project }, data: { k: 'dg==' } },
            headers,
          ),
        ),
      );
      expect(replies.map(({ status }) => status)).to.deep.equal([400, 400]);
      expect(replies[0]?.text.replaceAll('theirs', 'nowhere')).to.equal(replies[1]?.text);
    }
    const [theirs, nowhere] = await Promise.all(
      ['t2', 'no-such'].map((tenant) =>
        call(personOf('user of t1'), 'POST', 'disk_images', {
          metadata: { name: 'x', tenant },
          ...BODIES[1]?.spec,
        }),
      ),
    );
    expect(theirs?.text.replaceAll('t2', '<t>')).to.equal(nowhere?.text.replaceAll('no-such', '<t>'));
    expect([theirs?.status, nowhere?.status]).to.deep.equal([403, 403]);
  });

  it('in watches, whatever their filters ask for', async () => {
    const all = 'has(event.disk_image)';
    const filters = [
      all,
      `${all} && event.disk_image.metadata.tenant == "t2"`,
      `${all} && event.disk_image.id != ""`,
    ];
    const watches = await Promise.all(
      PEOPLE.flatMap((person) =>
        filters.map(async (filter) => {
          const token = await service.token(person.token);
          const path = `${PUBLIC_WATCH}?${query({ filter: `(${filter}) || event.disk_image.metadata.name == "last"` })}`;
          return { person, filter, watching: await watch(service, token, path) };
        }),
      ),
    );
    try {
      for (const [name, tenant] of [
        ['seen', 't2'],
        ['seen', 'shared'],
        ['seen', 't1'],
        ['last', 'shared'],
      ] as const)
        await admin('POST', `${PRIVATE}/disk_images`, { metadata: { name, tenant }, ...BODIES[1]?.spec });
      for (const { person, filter, watching } of watches) {
        const wanted = ['t2', 'shared', 't1']
          .filter((tenant) => isSeen(person, { collection: 'disk_images', tenant } as Thing))
          .filter((tenant) => tenant === 't2' || filter !== filters[1]);
        const events = await watching.count(wanted.length + 1);
        expect(
          events.map((event) => textAt(event, 'disk_image', 'metadata', 'tenant')),
          `${person.name} ${filter}`,
        ).to.deep.equal([...wanted, 'shared']);
      }
    } finally {
      for (const { watching } of watches) watching.close();
    }
  });
});
