import { expect } from 'chai';
import fc from 'fast-check';
import {
  createSecretUses,
  createSecretSweeper,
  ownersOf,
  refsOf,
  secretRefsIn,
  type StoredValue,
} from '../../../src/app/secrets/stored-secrets.ts';
import { isLiveCluster } from '../../../src/domain/clusters/state.ts';
import { aggregateOf, clusterAggregate, kinds } from '../../../src/domain/kinds.ts';
import {
  callerOf,
  memorySecrets,
  PRIVATE,
  seedCatalogue,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { checkAsync } from '../../support/property.ts';
import { secretSubjects } from './secret-subjects.ts';

const HOUR = 3_600_000;
const secretive = kinds.filter(({ secrets }) => secrets.length > 0);
const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** A store whose removals can be lost, as a kill before them loses them, on a clock of its own. */
const losingSecrets = () => {
  const inner = memorySecrets();
  const storedAt = new Map<string, number>();
  const state = { now: Date.UTC(2026, 0, 1), loses: false };
  const store: ReturnType<typeof memorySecrets> = {
    ...inner,
    put: async (value) => {
      storedAt.set(`${value.id} ${value.version}`, state.now);
      return inner.put(value);
    },
    remove: async (ref) => {
      if (state.loses) throw new Error('killed before the removal');
      await inner.remove(ref);
    },
    async *list() {
      for (const key of inner.values.keys()) {
        const at = key.lastIndexOf(' ');
        const stored = new Date(storedAt.get(key) ?? 0).toISOString();
        yield { id: key.slice(0, at), version: key.slice(at + 1), storedAt: stored };
      }
    },
  };
  return { store, state };
};

describe('secret values', () => {
  let service: TestService;
  let admin: Caller;
  let secrets: ReturnType<typeof losingSecrets>;
  let runs: Map<string, readonly StoredValue[]>;
  let serial = 0;

  beforeEach(async () => {
    secrets = losingSecrets();
    runs = new Map();
    service = await startTestService({ secrets: secrets.store });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
  });
  afterEach(() => service.close());

  const sweeper = () =>
    createSecretSweeper({
      secrets: secrets.store,
      use: createSecretUses({
        runner: service.runner,
        kinds: secretive,
        referencedBy: (...asked) => service.models.resources.referencedBy(...asked),
        refsOfRun: async (_kind, id) => runs.get(id) ?? [],
      }),
      olderThanMs: HOUR,
      rest: async () => undefined,
    });
  const sweepWith = async (one: ReturnType<typeof sweeper>) =>
    one.sweep(new Date(secrets.state.now).toISOString(), new AbortController().signal);
  /** Long enough for everything that nothing uses to go. */
  const settle = async (): Promise<void> => {
    secrets.state.loses = false;
    const one = sweeper();
    for (let i = 0; i < 3; i += 1) {
      secrets.state.now += HOUR + 1;
      await sweepWith(one);
    }
  };

  const ask = async (verb: string, path: string, body?: object): Promise<string> => {
    const reply = await admin(verb, `${PRIVATE}/${path}`, body);
    expect(reply.status, `${verb} ${path}: ${reply.text}`).to.equal(200);
    const { object = reply.json, id = (object as { id?: string }).id } = reply.json as {
      object?: object;
      id?: string;
    };
    return id ?? '';
  };
  const { metadata, SUBJECTS } = secretSubjects(() => (serial += 1));

  /** A kubeconfig, and what the tenants' first administrators sign in with. */
  const SEEDED = [
    { kind: 'hub', id: 'sim-1' },
    { kind: 'tenant', id: 't1' },
    { kind: 'tenant', id: 't2' },
  ];

  /** What live objects refer to, by the states themselves. */
  const inUse = async (made: readonly { kind: string; id: string }[]): Promise<ReadonlySet<string>> => {
    const used = new Set<string>();
    for (const { kind, id } of [...SEEDED, ...made]) {
      const declared = secretive.find((one) => one.kind === kind);
      if (declared === undefined) throw new Error(kind);
      const { state } = await service.runner.load(aggregateOf(declared), id);
      for (const ref of refsOf(declared.view(state))) used.add(`${ref.id} ${ref.version}`);
      if (kind !== 'cluster') continue;
      const order = (await service.runner.load(clusterAggregate, id)).state;
      if (isLiveCluster(order) && order.pullSecret !== undefined)
        used.add(`${order.pullSecret.id} ${order.pullSecret.version}`);
    }
    return used;
  };
  const stored = (): ReadonlySet<string> => new Set(secrets.store.values.keys());

  const AT_ONCE = ['identityProvider', 'user', 'hub'];
  for (const { kind, collection, body, change, clear } of SUBJECTS) {
    it(`of a ${kind}: what was rotated, cleared and deleted is gone, at once or with the sweep`, async () => {
      const before = stored().size;
      const id = await ask('POST', collection, body('{"auths":{"v":1}}'));
      const made = [{ kind, id }];
      for (const step of [change('{"auths":{"v":2}}'), change('{"auths":{"v":3}}'), clear]) {
        await ask('PATCH', `${collection}/${id}`, step);
        if (!AT_ONCE.includes(kind)) await settle();
        expect(stored()).to.deep.equal(await inUse(made));
      }
      await ask('PATCH', `${collection}/${id}`, change('{"auths":{"v":4}}'));
      await ask('DELETE', `${collection}/${id}`);
      if (!AT_ONCE.includes(kind)) await settle();
      expect(stored().size).to.equal(before);
    });

    it(`of a ${kind}: a kill between event and removal leaves nothing for good`, async () => {
      const before = stored().size;
      secrets.state.loses = true;
      const id = await ask('POST', collection, body('{"auths":{"v":1}}'));
      await ask('PATCH', `${collection}/${id}`, change('{"auths":{"v":2}}'));
      await ask('DELETE', `${collection}/${id}`);
      expect(stored().size, 'the removals are lost').to.be.greaterThan(before + 1);
      await settle();
      expect(stored().size).to.equal(before);
    });
  }

  it('whose event was never written go once they are old enough; those of forms that nobody knows stay', async () => {
    const put = (id: string) =>
      secrets.store.put({ id, version: 'v', kind: 'pull-secret', tenant: 't1', value: Buffer.from('x') });
    const before = stored();
    const orphans = ['cluster.never.spec.pull_secret', 'hub.sim-1.spec.kubeconfig', 'secret.never.data.a'];
    for (const id of [...orphans, 'of another release']) await put(id);
    const one = sweeper();
    secrets.state.now += HOUR - 1;
    await sweepWith(one);
    expect(stored().size, 'their events may still come').to.equal(before.size + 4);
    await settle();
    expect(stored()).to.deep.equal(new Set([...before, 'of another release v']));
  });

  it('whose users cannot be read stay, and keep no others from going', async () => {
    const put = (id: string) =>
      secrets.store.put({ id, version: 'v', kind: 'pull-secret', tenant: 't1', value: Buffer.from('x') });
    const before = stored();
    for (const id of ['hub.a.spec.kubeconfig', 'hub.poison.spec.kubeconfig', 'hub.z.spec.kubeconfig'])
      await put(id);
    const one = createSecretSweeper({
      secrets: secrets.store,
      use: async ({ id }) => {
        if (id.startsWith('hub.poison')) throw new TypeError('cannot be folded');
        return before.has(`${id} v`) ? 'used' : 'unused';
      },
      olderThanMs: HOUR,
      rest: async () => undefined,
    });
    secrets.state.now += HOUR + 1;
    const told = await sweepWith(one).catch((error: Error) => error.message);
    expect(told, 'somebody has to hear of it').to.equal('cannot be folded');
    expect([...stored()].filter((key) => key.startsWith('hub.') && !before.has(key))).to.deep.equal([
      'hub.poison.spec.kubeconfig v',
    ]);
  });

  it('never keep the thread for the users of more than one value, nor for more than one of them', async () => {
    const put = (id: string) =>
      secrets.store.put({ id, version: 'v', kind: 'pull-secret', tenant: 't1', value: Buffer.from('x') });
    for (let i = 0; i < 20; i += 1) await put(`secret.never${i}.data.a`);
    let [looks, most] = [0, 0];
    const look = (): void => {
      looks += 1;
      most = Math.max(most, looks);
    };
    const one = createSecretSweeper({
      secrets: secrets.store,
      use: createSecretUses({
        runner: { load: (...asked) => service.runner.load(...asked) },
        kinds: secretive,
        referencedBy: () => Array.from({ length: 20 }, (_, i) => ({ kind: 'cluster', id: `c${i}` })),
        refsOfRun: async () => {
          look();
          return [];
        },
      }),
      olderThanMs: HOUR,
      rest: async () => (looks = 0),
    });
    secrets.state.now += HOUR + 1;
    expect(await sweepWith(one))
      .to.have.property('examined')
      .that.is.at.least(20);
    expect(most).to.equal(1);
  });

  it('are found by their references wherever these are', () => {
    const ref = { id: 'a', version: 'v', kind: 'kubeconfig', fingerprint: 'f' };
    const found = [...secretRefsIn({ x: [1, null, { y: ref }], z: ref, no: { id: 'a', version: 'v' } })];
    expect(found).to.deep.equal([
      { id: 'a', version: 'v' },
      { id: 'a', version: 'v' },
    ]);
  });

  it('users that go with their tenant take their passwords along', async () => {
    const before = stored().size;
    const id = await ask('POST', 'users', {
      metadata: { name: 'with-t2', tenant: 't2' },
      spec: { username: 'w', credentials: { password: 'pw-of-12-letters' } },
    });
    await ask('DELETE', 'tenants/t2');
    expect((await admin('GET', `${PRIVATE}/users/${id}`)).status).to.equal(404);
    await settle();
    expect(stored().size, 'the tenant had one too').to.equal(before - 1);
  });

  it('an order keeps what it took over, and an open run what it still has to hand out', async () => {
    const secret = await ask('POST', 'secrets', { metadata: metadata(), data: { 'pull-secret': b64('{}') } });
    const order = await ask('POST', 'clusters', {
      metadata: metadata(),
      spec: { template: { id: 'osac.templates.small' }, pull_secret_secret: { id: secret } },
    });
    const own = await ask('POST', 'clusters', {
      metadata: metadata(),
      spec: { template: { id: 'osac.templates.small' }, pull_secret: '{"auths":{}}' },
    });
    const first = [...stored()];
    await ask('PATCH', `secrets/${secret}`, { data: { 'pull-secret': b64('{"auths":{}}') } });
    const ownFirst = first.find((key) => key.startsWith(`cluster.${own}.`))?.split(' ') ?? [];
    runs.set(own, [{ id: ownFirst[0] ?? '', version: ownFirst[1] ?? '' }]);
    await ask('PATCH', `clusters/${own}`, { spec: { pull_secret: '{"auths":{"new":1}}' } });
    await settle();
    expect([...stored()]).to.include.members(first);
    await ask('DELETE', `clusters/${order}`);
    runs.clear();
    await settle();
    const made = [
      { kind: 'secret', id: secret },
      { kind: 'cluster', id: own },
    ];
    expect(stored()).to.deep.equal(await inUse(made));
  });

  it('no sweep takes a value that is in use, whatever was lost before; in the end nothing else is left', async () => {
    const step = fc.record({
      what: fc.constantFrom('make', 'make', 'change', 'clear', 'delete', 'orphan', 'sweep', 'restart'),
      kind: fc.nat({ max: SUBJECTS.length - 1 }),
      which: fc.nat({ max: 20 }),
      lost: fc.boolean(),
      minutes: fc.nat({ max: 90 }),
    });
    await checkAsync(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const made: { kind: string; id: string }[] = [];
        let one = sweeper();
        const before = await inUse(made);
        for (const { what, kind, which, lost, minutes } of steps) {
          secrets.state.loses = lost;
          const subject = SUBJECTS[kind];
          if (subject === undefined) continue;
          const value = `{"auths":{"v":${(serial += 1)}}}`;
          const mine = made.filter((object) => object.kind === subject.kind);
          const path = `${subject.collection}/${mine[which % Math.max(1, mine.length)]?.id}`;
          if (what === 'make') {
            // Orders take over what templates and secrets hold.
            const secret = made.find((object) => object.kind === 'secret')?.id;
            const template = made.find((object) => object.kind === 'clusterTemplate')?.id;
            const borrowed =
              which % 3 === 0 && secret !== undefined
                ? { template: { id: 'osac.templates.small' }, pull_secret_secret: { id: secret } }
                : which % 3 === 1 && template !== undefined
                  ? { template: { id: template } }
                  : undefined;
            const body =
              subject.kind === 'cluster' && borrowed !== undefined
                ? { metadata: metadata(), spec: borrowed }
                : subject.body(value);
            const reply = await admin('POST', `${PRIVATE}/${subject.collection}`, body);
            const object = (reply.json['object'] ?? reply.json) as unknown as { id: string };
            if (reply.status === 200) made.push({ kind: subject.kind, id: object.id });
          } else if (what === 'change' && mine.length > 0) {
            await admin('PATCH', `${PRIVATE}/${path}`, subject.change(value));
          } else if (what === 'clear' && mine.length > 0) {
            await admin('PATCH', `${PRIVATE}/${path}`, subject.clear);
          } else if (what === 'delete' && mine.length > 0) {
            await admin('DELETE', `${PRIVATE}/${path}`);
          } else if (what === 'orphan') {
            const id = `${subject.kind}.${mine[0]?.id ?? 'never'}.spec.pull_secret`;
            const version = `v${serial}`;
            const orphan = {
              id,
              version,
              kind: 'pull-secret',
              tenant: 't1',
              value: Buffer.from('x'),
            } as const;
            if (subject.kind === 'cluster') await secrets.store.put(orphan);
          } else if (what === 'restart') one = sweeper();
          secrets.state.now += minutes * 60_000;
          if (what === 'sweep') await sweepWith(one).catch(() => undefined);
          for (const key of await inUse(made)) expect(stored().has(key), key).to.equal(true);
        }
        await settle();
        expect(stored()).to.deep.equal(new Set([...before, ...(await inUse(made))]));
        for (const { kind, id } of made.toReversed()) {
          const subject = SUBJECTS.find((other) => other.kind === kind);
          await admin('DELETE', `${PRIVATE}/${subject?.collection}/${id}`);
        }
        await settle();
      }),
      { numRuns: 12 },
    );
  });

  it('an id says whose value it is, whatever the names of objects and entries hold', () => {
    expect(ownersOf(secretive, 'secret.a.data.b.data.c')).to.deep.equal([
      { kind: 'secret', id: 'a' },
      { kind: 'secret', id: 'a.data.b' },
    ]);
    expect(ownersOf(secretive, 'clusterTemplate.osac.t.small.spec_defaults.pull_secret')).to.deep.equal([
      { kind: 'clusterTemplate', id: 'osac.t.small' },
    ]);
    expect(ownersOf(secretive, 'cluster.x.spec.pull_secret')).to.deep.equal([{ kind: 'cluster', id: 'x' }]);
    expect(ownersOf(secretive, 'something else')).to.deep.equal([]);
  });
});
