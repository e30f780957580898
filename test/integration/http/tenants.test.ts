import { expect } from 'chai';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { makeBuiltIns } from '../../support/http/built-ins.ts';
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
  type TestServiceOptions,
} from '../../support/http/service.ts';

/** Tenants (OSAC). */
describe('HTTP: tenants', () => {
  let service: TestService;
  let admin: Caller;
  const URL = `${PRIVATE}/tenants`;
  const DEFAULT = 'default-project.t1';

  const start = async (options: TestServiceOptions = {}): Promise<void> => {
    service = await startTestService(options);
    admin = callerOf(service, await service.token({ admin: true }));
  };
  const onboard = (name: string, more: object = {}, headers: Record<string, string> = {}) =>
    admin('POST', URL, { metadata: { name }, ...more }, headers);
  const types = async (): Promise<readonly string[]> =>
    (await collect(service.store.readAll({ limit: 10_000 }))).map(({ type }) => type);
  const upkeep = () => makeBuiltIns(service);

  afterEach(() => service.close());

  it('show their break-glass password once, in the answer that made them and not in its replay', async () => {
    await start();
    const made = await onboard('t1', {}, { 'idempotency-key': '"k1"' });
    expect(made.status, made.text).to.equal(200);
    const password = textAt(made.json, 'status', 'break_glass_credentials', 'password');
    expect(made.json).to.have.nested.property(
      'status.break_glass_credentials.username',
      't1-osac-break-glass',
    );
    expect(password).to.match(/^[A-Za-z0-9]{24}$/);
    const replies = [
      await onboard('t1', {}, { 'idempotency-key': '"k1"' }),
      await admin('GET', `${URL}/t1`),
      await admin('GET', URL),
      await admin('PATCH', `${URL}/t1`, { spec: { domains: ['t1.example'] } }),
    ];
    for (const { status, text } of replies) {
      expect([status, text.includes('break_glass')]).to.deep.equal([200, false]);
    }
    expect(JSON.stringify(await collect(service.store.readAll({ limit: 100 })))).to.not.contain(password);
  });

  it('a password that somebody writes into their status goes to the secret store', async () => {
    await start();
    await onboard('t1', { status: { break_glass_credentials: { username: 'x', password: 'canary-1' } } });
    const patched = await admin('PATCH', `${URL}/t1`, {
      status: {
        state: 'TENANT_STATE_SYNCED',
        break_glass_credentials: { username: 'x', password: 'canary-2' },
      },
    });
    expect(patched.status, patched.text).to.equal(200);
    expect(patched.json['status']).to.deep.equal({ state: 'TENANT_STATE_SYNCED' });
    const events = JSON.stringify(await collect(service.store.readAll({ limit: 100 })));
    expect(events).to.not.match(/canary-[12]/);
    expect(patched.text).to.not.contain('canary');
  });

  it('own their domains alone', async () => {
    await start();
    await onboard('t1', { spec: { domains: ['one.example'] } });
    const other = await onboard('t2', { spec: { domains: ['two.example', 'ONE.example'] } });
    expect([other.status, other.json['code'], other.json['message']]).to.deep.equal([
      409,
      6,
      "value 'ONE.example' in field 'spec.domains' is already used by another tenant",
    ]);
    expect((await onboard('t2', { spec: { domains: ['two.example'] } })).status).to.equal(200);
    const taken = await admin('PATCH', `${URL}/t2`, { spec: { domains: ['one.example'] } });
    expect(taken.status).to.equal(409);
    await admin('PATCH', `${URL}/t1`, { spec: { domains: [] } });
    expect((await admin('PATCH', `${URL}/t2`, { spec: { domains: ['one.example'] } })).status).to.equal(200);
  });

  it('get their default project in the same call and lose it with the last one; users go along', async () => {
    await start();
    await onboard('t1');
    const projects = await admin('GET', `${PRIVATE}/projects`);
    expect(itemsOf(projects).map(({ id }) => id)).to.deep.equal([DEFAULT]);
    await admin('POST', `${PRIVATE}/users`, {
      metadata: { name: 'alice', tenant: 't1' },
      spec: { username: 'alice' },
    });
    const gone = await admin('DELETE', `${URL}/t1`);
    expect(gone.status, gone.text).to.equal(200);
    expect((await admin('GET', `${PRIVATE}/projects`)).json).to.deep.equal({});
    expect((await admin('GET', `${PRIVATE}/users`)).json).to.deep.equal({});
    const written = await types();
    expect(written.filter((type) => type === 'ProjectOpened')).to.have.length(1);
    expect(written).to.include.members(['TenantOffboarded', 'ProjectClosed', 'UserRemoved']);
  });

  it('with finalizers keep it until the last finalizer is gone', async () => {
    await start();
    await onboard('t1', { metadata: { name: 't1', finalizers: ['idp'] } });
    await admin('DELETE', `${URL}/t1`);
    expect((await admin('GET', `${PRIVATE}/projects/${DEFAULT}`)).status).to.equal(200);
    const user = callerOf(service, await service.token({ tenants: ['t1'] }));
    const late = await user('POST', `${PUBLIC}/secrets`, { metadata: { name: 's' } });
    expect([late.status, late.json['code'], late.json['message']]).to.deep.equal([
      400,
      9,
      "tenant 't1' is being deleted: nothing can be created in it any more",
    ]);
    await admin('PATCH', `${URL}/t1`, { metadata: { finalizers: [] } });
    expect((await admin('GET', `${URL}/t1`)).status).to.equal(404);
    expect((await admin('GET', `${PRIVATE}/projects/${DEFAULT}`)).status).to.equal(404);
  });

  it('stay while they own a project or anything else', async () => {
    await start();
    await onboard('t1');
    const made = await admin('POST', `${PRIVATE}/projects`, { metadata: { name: 'a', tenant: 't1' } });
    const held = await admin('DELETE', `${URL}/t1`);
    expect([held.status, held.json['code'], held.json['message']]).to.deep.equal([
      400,
      9,
      "tenant 't1' cannot be deleted because it still has objects of kind project: 'a'",
    ]);
    await admin('DELETE', `${PRIVATE}/projects/${textAt(made.json, 'id')}`);
    const secret = await admin('POST', `${PRIVATE}/secrets`, {
      metadata: { name: 's', tenant: 't1' },
      data: { k: 'dg==' },
    });
    expect((await admin('DELETE', `${URL}/t1`)).text).to.contain('objects of kind secret');
    await admin('DELETE', `${PRIVATE}/secrets/${textAt(secret.json, 'id')}`);
    expect((await admin('DELETE', `${URL}/t1`)).status).to.equal(200);
  });

  it('a dry run makes neither tenant nor project', async () => {
    await start();
    const dry = await onboard('t1', {}, { 'x-dry-run': 'true' });
    expect(dry.status, dry.text).to.equal(200);
    expect(await types()).to.deep.equal([]);
  });

  it('are there, though their project is not, when the store goes away in between; it follows', async () => {
    for (const error of [new StoreUnavailable('away'), new OutcomeUnknown('project-x')]) {
      const inner = createMemoryEventStore();
      const away = { projects: true };
      const store: EventStore = {
        ...inner,
        append: async (stream, ...rest) => {
          if (away.projects && stream.startsWith('project-')) throw error;
          return inner.append(stream, ...rest);
        },
      };
      await start({ store });
      const made = await onboard('t1');
      expect(made.status, made.text).to.equal(200);
      expect((await admin('GET', `${PRIVATE}/projects/${DEFAULT}`)).status).to.equal(404);
      expect((await upkeep()).map(({ level }) => level)).to.deep.equal(['warn']);
      away.projects = false;
      expect(await upkeep()).to.deep.equal([]);
      expect((await admin('GET', `${PRIVATE}/projects/${DEFAULT}`)).status).to.equal(200);
      if (error instanceof StoreUnavailable) await service.close();
    }
  });

  it('upkeep takes what a gone tenant left, gives `shared` its project, and changes nothing twice', async () => {
    const inner = createMemoryEventStore();
    const away = { closing: true };
    const store: EventStore = {
      ...inner,
      append: async (stream, revision, events, options) => {
        if (away.closing && events.some(({ type }) => type === 'ProjectClosed'))
          throw new StoreUnavailable('away');
        return inner.append(stream, revision, events, options);
      },
    };
    await start({ store });
    await onboard('t1');
    expect((await admin('DELETE', `${URL}/t1`)).status).to.equal(200);
    expect((await admin('GET', `${PRIVATE}/projects/${DEFAULT}`)).status).to.equal(200);
    away.closing = false;
    await upkeep();
    expect(itemsOf(await admin('GET', `${PRIVATE}/projects`)).map(({ id }) => id)).to.deep.equal([
      'default-project.shared',
    ]);
    const before = await types();
    await upkeep();
    expect(await types()).to.deep.equal(before);
    const user = callerOf(service, await service.token({ tenants: ['t2'] }));
    await onboard('t2');
    expect(itemsOf(await user('GET', `${PUBLIC}/projects`)).map(({ id }) => id)).to.deep.equal([
      'default-project.shared',
      'default-project.t2',
    ]);
  });
});
