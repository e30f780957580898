import { expect } from 'chai';
import { subjectIdOf } from '../../../src/app/log/identifiers.ts';
import { userNameOf } from '../../../src/domain/tenancy/user.resource.ts';
import { createUserProvisioning } from '../../../src/http/authenticate.ts';
import type { Principal } from '../../../src/http/osac/principal.ts';
import { collect } from '../../support/commands/fake-context.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { recordingLogger } from '../../support/loggers.ts';

const ISSUER = 'https://sso.example/realms/osac';
const idOf = (tenant: string, user: string): string => subjectIdOf(tenant, ISSUER, user);

describe('users of callers', () => {
  let service: TestService;
  let admin: Caller;

  beforeEach(async () => {
    service = await startTestService({ provisionUsers: true });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    for (const name of ['t1', 't2']) await admin('POST', `${PRIVATE}/tenants`, { metadata: { name } });
  });
  afterEach(() => service.close());

  const callerAs = async (user: string, tenants: readonly string[], roles: readonly string[] = []) =>
    callerOf(service, await service.token({ user, tenants, roles }));
  const admitted = async () =>
    (await collect(service.store.readAll({ limit: 10_000 }))).filter(({ type }) => type === 'UserAdmitted');
  /** Everything that was written so far can be read. */
  const settled = async (): Promise<void> => {
    await service.users.idle();
    const last = (await collect(service.store.readAll({ limit: 10_000 }))).at(-1);
    if (last !== undefined) await service.models.waitFor('resources', last.position, { timeoutMs: 5_000 });
  };

  it('are made by the first call, under the id that `creator` holds', async () => {
    const alice = await callerAs('Alice.Smith', ['t1'], ['tenant-admin']);
    const item = await alice('POST', `${PUBLIC}/projects`, { metadata: { name: 'p1' } });
    expect(item.status, item.text).to.equal(200);
    const creator = textAt(item.json, 'metadata', 'creator');
    expect(creator).to.equal(idOf('t1', 'Alice.Smith'));
    const user = await alice('GET', `${PUBLIC}/users/${creator}`);
    expect(user.json).to.deep.include({ id: creator, spec: { username: 'Alice.Smith', enabled: true } });
    expect(textAt(user.json, 'metadata', 'name')).to.equal('alice-smith');
    expect(textAt(user.json, 'metadata', 'creator')).to.equal('system');
  });

  it('are made behind a read, which does not wait for them', async () => {
    const bob = await callerAs('bob', ['t1']);
    expect((await bob('GET', `${PUBLIC}/clusters`)).status).to.equal(200);
    await settled();
    expect((await admin('GET', `${PRIVATE}/users/${idOf('t1', 'bob')}`)).status).to.equal(200);
  });

  it('are not made of a name by which provider admins are known', async () => {
    const sly = await callerAs('Service-Account-OSAC-Admin', ['t1']);
    expect((await sly('GET', `${PUBLIC}/clusters`)).status).to.equal(200);
    await settled();
    expect(await admitted()).to.deep.equal([]);
  });

  it('are made once, however many calls come together and however long the token lives', async () => {
    const carol = await callerAs('carol', ['t1']);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        carol(i % 2 === 0 ? 'GET' : 'POST', `${PUBLIC}/clusters`, i % 2 === 0 ? undefined : {}),
      ),
    );
    await settled();
    await carol('GET', `${PUBLIC}/clusters`);
    await settled();
    expect(await admitted()).to.have.length(1);
  });

  it('are not made for staff, for callers of several tenants or of none', async () => {
    for (const caller of [admin, await callerAs('dan', ['t1', 't2']), await callerAs('eve', [])])
      await caller('GET', `${PUBLIC}/clusters`);
    await settled();
    expect(await admitted()).to.deep.equal([]);
  });

  it('are not made beside one of that name, which an admin of the tenant made before', async () => {
    const boss = await callerAs('boss', ['t1'], ['tenant-admin']);
    await boss('POST', `${PUBLIC}/users`, { metadata: { name: 'fay' }, spec: { username: 'fay' } });
    const fay = await callerAs('fay', ['t1']);
    await fay('GET', `${PUBLIC}/clusters`);
    await settled();
    const users = itemsOf(await boss('GET', `${PUBLIC}/users`)).map((user) =>
      textAt(user, 'metadata', 'name'),
    );
    expect(users.toSorted()).to.deep.equal(['boss', 'fay']);
    // Another tenant has names of its own.
    await (await callerAs('fay', ['t2']))('GET', `${PUBLIC}/clusters`);
    await settled();
    expect((await admin('GET', `${PRIVATE}/users/${idOf('t2', 'fay')}`)).status).to.equal(200);
  });

  it('come back with the next call after they were removed, and not before', async () => {
    const gus = await callerAs('gus', ['t1']);
    await gus('GET', `${PUBLIC}/clusters`);
    await settled();
    const path = `${PRIVATE}/users/${idOf('t1', 'gus')}`;
    for (const round of [1, 2]) {
      expect((await admin('DELETE', path)).status, `round ${round}`).to.equal(200);
      expect((await admin('GET', path)).status).to.equal(404);
      await gus('GET', `${PUBLIC}/clusters`);
      await settled();
      expect((await admin('GET', path)).status).to.equal(200);
    }
    expect(await admitted()).to.have.length(3);
    // The name was taken and given back each time.
    const taken = await admin('POST', `${PRIVATE}/users`, { metadata: { name: 'gus', tenant: 't1' } });
    expect(taken.status).to.equal(409);
  });

  it('an unknown tenant is a 400, as everywhere, and makes nobody', async () => {
    const ida = await callerAs('ida', ['nowhere']);
    expect((await ida('GET', `${PUBLIC}/clusters`)).status).to.equal(400);
    await settled();
    expect(await admitted()).to.deep.equal([]);
  });

  const principalNamed = (user: string): Principal => ({
    subjectId: idOf('t1', user),
    userName: user,
    admin: false,
    roles: ['client'],
    projects: new Map(),
    tenants: ['t1'],
    homeTenant: 't1',
    visibility: { tenants: ['t1', 'shared'] },
    authMethod: 'jwt',
    tokenIdHash: 'h',
    tokenUntil: '2026-11-23T10:00:00.000Z',
  });
  const instance = (logger = recordingLogger()) =>
    createUserProvisioning({ ...service.provisioning, logger });

  it('are not made in a tenant that has just gone', async () => {
    expect((await admin('DELETE', `${PRIVATE}/tenants/t1`)).status).to.equal(200);
    await instance().ensure(principalNamed('late'));
    expect(await admitted()).to.deep.equal([]);
  });

  it('are made once by two instances together', async () => {
    await Promise.all([instance(), instance()].map(async ({ ensure }) => ensure(principalNamed('hal'))));
    await settled();
    expect(await admitted()).to.have.length(1);
  });

  it('cost a known caller nothing, and one point read when some user changed', async () => {
    let reads = 0;
    let generation = 1;
    const { resources } = service.provisioning;
    const users = createUserProvisioning({
      ...service.provisioning,
      logger: recordingLogger(),
      resources: {
        generation: () => generation,
        get: (...wanted) => {
          reads += 1;
          return resources.get(...wanted);
        },
        findByName: (...wanted) => resources.findByName(...wanted),
      },
    });
    await users.ensure(principalNamed('jo'));
    await settled();
    const before = reads;
    for (let i = 0; i < 100; i += 1) expect(users.ensure(principalNamed('jo'))).to.equal(undefined);
    expect(reads).to.equal(before);
    generation += 1;
    for (let i = 0; i < 100; i += 1) expect(users.ensure(principalNamed('jo'))).to.equal(undefined);
    expect(reads).to.equal(before + 1);
  });

  it('a store that is away fails no call: the User is made by a later one', async () => {
    const logger = recordingLogger();
    let away = true;
    const { commands } = service.provisioning;
    const users = createUserProvisioning({
      ...service.provisioning,
      logger,
      commands: {
        ...commands,
        execute: (...call) => (away ? Promise.reject(new Error('away')) : commands.execute(...call)),
      },
    });
    await users.ensure(principalNamed('kay'));
    expect(logger.lines.map(({ level }) => level)).to.deep.equal(['warn']);
    away = false;
    await users.ensure(principalNamed('kay'));
    expect(await admitted()).to.have.length(1);
  });
});

describe('names of users from tokens', () => {
  for (const [username, name] of [
    ['alice', 'alice'],
    ['Alice@Example.COM', 'alice-example-com'],
    ['_x_', 'x'],
    ['用户', 'fallback'],
    ['', 'fallback'],
    ['a'.repeat(100), 'a'.repeat(63)],
    [`${'a'.repeat(62)}-b`, 'a'.repeat(62)],
    ['__proto__', 'proto'],
  ] as const)
    it(`${username.slice(0, 20)} becomes ${name.slice(0, 20)}`, () => {
      expect(userNameOf(username, 'fallback')).to.equal(name);
    });
});
