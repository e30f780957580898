import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

/** Holds back appends to streams of one kind until told to go on. */
const gatedStore = () => {
  const store = createMemoryEventStore();
  const gates = new Map<string, { readonly reached: () => void; readonly open: Promise<void> }>();
  const gated: EventStore = {
    ...store,
    append: async (stream, ...rest) => {
      const category = stream.slice(0, stream.indexOf('-'));
      const gate = gates.get(category);
      gates.delete(category);
      gate?.reached();
      await gate?.open;
      return store.append(stream, ...rest);
    },
  };
  return {
    store: gated,
    /** The next append to a stream of this kind says that it is there, and waits. */
    hold: (category: string) => {
      const reached = Promise.withResolvers<void>();
      const open = Promise.withResolvers<void>();
      gates.set(category, { reached: reached.resolve, open: open.promise });
      return { reached: reached.promise, open: open.resolve };
    },
  };
};

type Target = { readonly kind: string; readonly path: string; readonly body: (name: string) => object };
type User = { readonly kind: string; readonly path: string; readonly body: (target: string) => object };
type Pair = { readonly target: Target; readonly user: User };

const TEMPLATE: Target = {
  kind: 'clusterTemplate',
  path: `${PRIVATE}/cluster_templates`,
  body: (name) => ({
    id: `osac.templates.${name}`,
    node_sets: { w: { host_type: { id: 'fc430' }, size: 1 } },
  }),
};
const small = { template: { id: 'osac.templates.small' } };
const cluster = (spec: (target: string) => object): User => ({
  kind: 'cluster',
  path: `${PRIVATE}/clusters`,
  body: (target) => ({ metadata: { name: 'c', tenant: 't1' }, spec: spec(target) }),
});
const PAIRS: { readonly [name: string]: Pair } = {
  'template of an order': { target: TEMPLATE, user: cluster((id) => ({ template: { id } })) },
  'version of an order': {
    target: {
      kind: 'clusterVersion',
      path: `${PRIVATE}/cluster_versions`,
      body: (name) => ({ spec: { version: `6.0.${name.slice(1)}`, image: 'q.example/r:6' } }),
    },
    user: cluster((id) => ({ ...small, version: { id } })),
  },
  'pull secret of an order': {
    target: {
      kind: 'secret',
      path: `${PRIVATE}/secrets`,
      body: (name) => ({
        metadata: { name, tenant: 't1' },
        data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
      }),
    },
    user: cluster((id) => ({ ...small, pull_secret_secret: { id } })),
  },
  'role of a binding': {
    target: {
      kind: 'role',
      path: `${PRIVATE}/roles`,
      body: (name) => ({ metadata: { name }, spec: { title: 'x' } }),
    },
    user: {
      kind: 'roleBinding',
      path: `${PRIVATE}/role_bindings`,
      body: (id) => ({
        metadata: { name: 'b', tenant: 't1' },
        spec: { role: { id }, users: [{ name: 'ann' }] },
      }),
    },
  },
  'tenant of an order': {
    target: { kind: 'tenant', path: `${PRIVATE}/tenants`, body: (name) => ({ metadata: { name } }) },
    user: {
      kind: 'cluster',
      path: `${PRIVATE}/clusters`,
      body: (tenant) => ({ metadata: { name: 'c', tenant }, spec: small }),
    },
  },
  'template of a catalogue item': {
    target: TEMPLATE,
    user: {
      kind: 'clusterCatalogItem',
      path: `${PRIVATE}/cluster_catalog_items`,
      body: (id) => ({
        metadata: { name: 'i', tenant: 't1' },
        title: 'x',
        template: { id },
        published: true,
      }),
    },
  },
};

/** Nothing that is referred to disappears, however calls overlap (OSAC). */
describe('creations and deletions at the same time over HTTP', () => {
  const { store, hold } = gatedStore();
  let service: TestService;
  let admin: Caller;
  let serial = 0;

  before(async () => {
    service = await startTestService({ store });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    ok(
      await admin('POST', `${PRIVATE}/users`, {
        metadata: { name: 'ann', tenant: 't1' },
        spec: { username: 'ann' },
      }),
    );
  });
  after(() => service.close());

  const ok = (reply: Reply): Reply => {
    expect(reply.status, reply.text).to.equal(200);
    return reply;
  };
  const idOf = (reply: Reply): string =>
    textAt(reply.json, ...(reply.json['object'] === undefined ? ['id'] : ['object', 'id']));
  const make = async ({ path, body }: Target): Promise<string> => {
    serial += 1;
    return idOf(ok(await admin('POST', path, body(`n${serial}`))));
  };
  const exists = async ({ path }: Pick<Target, 'path'>, id: string): Promise<boolean> =>
    (await admin('GET', `${path}/${id}`)).status === 200;
  const forget = async ({ path }: Pick<Target, 'path'>, id: string): Promise<void> =>
    void ok(await admin('DELETE', `${path}/${id}`));

  for (const [name, { target, user }] of Object.entries(PAIRS)) {
    it(`${name}: a creation that is on its way keeps it`, async () => {
      const id = await make(target);
      const gate = hold(user.kind);
      const creating = admin('POST', user.path, user.body(id));
      await gate.reached;
      const deleting = admin('DELETE', `${target.path}/${id}`);
      // The deletion has been let in and has looked; another call shows that the service had its time.
      for (let i = 0; i < 5; i += 1) await admin('GET', `${PUBLIC}/capabilities`);
      gate.open();
      const made = ok(await creating);
      const refused = await deleting;
      expect([refused.status, refused.json['code']], refused.text).to.deep.equal([400, 9]);
      expect(await exists(target, id)).to.equal(true);
      await forget(user, idOf(made));
    });

    it(`${name}: a creation that found it before it was deleted is refused`, async () => {
      const id = await make(target);
      const gate = hold(target.kind);
      const deleting = admin('DELETE', `${target.path}/${id}`);
      await gate.reached;
      const creating = admin('POST', user.path, user.body(id));
      for (let i = 0; i < 5; i += 1) await admin('GET', `${PUBLIC}/capabilities`);
      gate.open();
      ok(await deleting);
      const refused = await creating;
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.text).to.match(/has just been deleted|is being deleted|not found/);
      expect(await exists(target, id)).to.equal(false);
    });

    it(`${name}: whoever is first wins, and never both`, async () => {
      for (let round = 0; round < 8; round += 1) {
        const id = await make(target);
        const [created, deleted] = await Promise.all([
          admin('POST', user.path, user.body(id)),
          (async () => {
            for (let i = 0; i < round; i += 1) await new Promise((resolve) => setImmediate(resolve));
            return admin('DELETE', `${target.path}/${id}`);
          })(),
        ]);
        expect(
          [created.status, deleted.status].toSorted((a, b) => a - b),
          `${created.text} ${deleted.text}`,
        ).to.deep.equal([200, 400]);
        expect(await exists(target, id)).to.equal(created.status === 200);
        if (created.status === 200) await forget(user, idOf(created));
      }
    });
  }

  it('an update that comes to refer to something keeps it as well', async () => {
    const version = await make(PAIRS['version of an order']?.target as Target);
    const template = await make(TEMPLATE);
    const gate = hold('clusterTemplate');
    const updating = admin('PATCH', `${TEMPLATE.path}/${template}`, {
      spec_defaults: { version: { id: version } },
    });
    await gate.reached;
    const deleting = admin('DELETE', `${PRIVATE}/cluster_versions/${version}`);
    for (let i = 0; i < 5; i += 1) await admin('GET', `${PUBLIC}/capabilities`);
    gate.open();
    ok(await updating);
    expect((await deleting).status).to.equal(400);
  });
});

/** Without a lock the last writer wins (OSAC). */
describe('many updates of one object at once', () => {
  let service: TestService;
  let admin: Caller;
  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
  });
  after(() => service.close());

  it('50 without a lock all take effect', async () => {
    const url = `${PRIVATE}/host_types/gpu`;
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        admin('PATCH', `${url}?update_mask=metadata.annotations.k${i}`, {
          metadata: { annotations: { [`k${i}`]: `v${i}` } },
        }),
      ),
    );
    expect(replies.map(({ status }) => status)).to.deep.equal(replies.map(() => 200));
    const shown = (await admin('GET', url)).json['metadata']?.['annotations'] ?? {};
    expect(Object.keys(shown)).to.have.length(50);
  });

  it('of those that name the version they have read, one takes effect, and the others are told which there is', async () => {
    const url = `${PRIVATE}/host_types/fc430`;
    const version = (await admin('GET', url)).json['metadata']?.['version'] ?? 0;
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        admin('PATCH', `${url}?lock=true`, { title: `t${i}`, metadata: { version } }),
      ),
    );
    expect(replies.filter(({ status }) => status === 200)).to.have.length(1);
    for (const { status, text } of replies)
      if (status !== 200) {
        expect(status).to.equal(409);
        expect(text).to.include(`requested version is ${Number(version)} but`);
      }
  });

  it('deletions and updates at once leave no call without an answer that fits', async () => {
    const id = textAt((await admin('POST', `${PRIVATE}/host_types`, { id: 'short', title: 'S' })).json, 'id');
    const url = `${PRIVATE}/host_types/${id}`;
    const replies = await Promise.all([
      ...Array.from({ length: 10 }, (_, i) => admin('PATCH', url, { title: `t${i}` })),
      admin('DELETE', url),
      ...Array.from({ length: 10 }, (_, i) => admin('PATCH', url, { title: `u${i}` })),
    ]);
    expect(replies[10]?.status).to.equal(200);
    for (const { status, text } of replies) expect([200, 404], text).to.include(status);
  });
});

describe('updates of one object by two instances', () => {
  it('are merged again until they fit', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const [one, two] = [await startTestService({ store }), await startTestService({ store })];
    try {
      const admins = [
        callerOf(one, await one.token({ user: 'root', admin: true })),
        callerOf(two, await two.token({ user: 'root', admin: true })),
      ] as const;
      await seedCatalogue(admins[0]);
      const url = `${PRIVATE}/host_types/gpu`;
      const replies = await Promise.all(
        Array.from({ length: 24 }, (_, i) =>
          admins[i % 2 === 0 ? 0 : 1]('PATCH', `${url}?update_mask=metadata.annotations.k${i}`, {
            metadata: { annotations: { [`k${i}`]: 'v' } },
          }),
        ),
      );
      expect(replies.map(({ status }) => status)).to.deep.equal(replies.map(() => 200));
    } finally {
      await one.close();
      await two.close();
    }
  });
});
