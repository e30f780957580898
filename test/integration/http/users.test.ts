import { expect } from 'chai';
import { encryptedIn } from '../../../src/domain/personal.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { collect } from '../../support/commands/fake-context.ts';

describe('users over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let manager: Caller;
  let other: Caller;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    for (const name of ['t1', 't2']) await admin('POST', `${PRIVATE}/tenants`, { metadata: { name } });
    manager = callerOf(
      service,
      await service.token({ user: 'mia', tenants: ['t1'], roles: ['tenant-admin'] }),
    );
    other = callerOf(service, await service.token({ user: 'oz', tenants: ['t2'], roles: ['tenant-admin'] }));
  });
  after(() => service.close());

  const events = () => collect(service.store.readAll({ limit: 10_000 }));
  const create = async (name: string, spec: object = {}, more: object = {}): Promise<Json> => {
    const reply = await manager('POST', `${PUBLIC}/users`, { metadata: { name, ...more }, spec });
    expect(reply.status, reply.text).to.equal(200);
    return reply.json;
  };

  it('are created, read, listed, changed and removed by their tenant, and by nobody else', async () => {
    const user = await create('carol', { username: 'Carol C', email: 'carol@t1.example', enabled: true });
    const id = textAt(user, 'id');
    expect(user).to.deep.include({
      spec: { username: 'Carol C', email: 'carol@t1.example', enabled: true },
    });
    expect(textAt(user, 'metadata', 'name')).to.equal('carol');
    expect(textAt(user, 'metadata', 'tenant')).to.equal('t1');
    expect((await manager('GET', `${PUBLIC}/users/${id}`)).json).to.deep.equal(user);
    expect(itemsOf(await manager('GET', `${PUBLIC}/users`)).map((item) => item['id'])).to.include(id);
    for (const verb of ['GET', 'PATCH', 'DELETE']) {
      const body = verb === 'PATCH' ? { spec: { enabled: false } } : undefined;
      const foreign = await other(verb, `${PUBLIC}/users/${id}`, body);
      expect([foreign.status, textAt(foreign.json, 'message')]).to.deep.equal([
        404,
        `object with identifier '${id}' not found`,
      ]);
    }
    const patched = await manager('PATCH', `${PUBLIC}/users/${id}`, {
      spec: { username: 'carol.c', email: null },
    });
    expect(patched.json['spec']).to.deep.equal({ username: 'carol.c', enabled: true });
    expect((await manager('DELETE', `${PUBLIC}/users/${id}`)).status).to.equal(200);
    expect((await manager('GET', `${PUBLIC}/users/${id}`)).status).to.equal(404);
    await create('carol');
  });

  it('have names that are unique in their tenant and never change; usernames may repeat', async () => {
    const dave = await create('dave', { username: 'same' });
    await create('dora', { username: 'same' });
    const again = await manager('POST', `${PUBLIC}/users`, { metadata: { name: 'dave' } });
    expect([again.status, again.json['code']]).to.deep.equal([409, 6]);
    expect(textAt(again.json, 'message')).to.match(/^user with this name already exists$/);
    const elsewhere = await other('POST', `${PUBLIC}/users`, { metadata: { name: 'dave' } });
    expect(elsewhere.status, elsewhere.text).to.equal(200);
    const renamed = await manager('PATCH', `${PUBLIC}/users/${textAt(dave, 'id')}`, {
      metadata: { name: 'david' },
    });
    expect([renamed.status, renamed.json['message']]).to.deep.equal([
      400,
      "field 'metadata.name' is immutable",
    ]);
  });

  describe('with a name by which provider admins are known', () => {
    const SIGNS = ['service-account-osac-admin', 'service-account-osac-controller'];
    const spellings = (name: string): string[] => [
      name,
      ` ${name}\t`,
      name.toUpperCase(),
      // Full-width letters, which many directories fold.
      name.replaceAll(/[a-z]/g, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) + 0xfee0)),
      `${name.slice(0, 3)}\u200b${name.slice(3)}`,
      `${name}\u0001`,
      name.replaceAll('-', '\u2011'),
      name.replaceAll('i', 'ı'),
      name.toUpperCase().replaceAll('I', 'İ'),
    ];
    const refusal = (reply: Reply, field: string): void => {
      expect(reply.status, reply.text).to.equal(400);
      expect(reply.json['message']).to.match(new RegExp(`^field '${field}' .* belongs to the provider`));
      expect(reply.text).not.to.include('osac');
    };

    for (const sign of SIGNS)
      it(`${sign} are refused on the public surface`, async () => {
        refusal(
          await manager('POST', `${PUBLIC}/users`, { metadata: { name: sign }, spec: { username: 'x' } }),
          'metadata.name',
        );
        const there = textAt(await create(`n-${sign.slice(-5)}`, { username: 'plain' }), 'id');
        for (const username of spellings(sign)) {
          refusal(
            await manager('POST', `${PUBLIC}/users`, { metadata: { name: 'sly' }, spec: { username } }),
            'spec.username',
          );
          refusal(
            await manager('PATCH', `${PUBLIC}/users/${there}`, { spec: { username } }),
            'spec.username',
          );
        }
        const near = await manager('PATCH', `${PUBLIC}/users/${there}`, { spec: { username: `${sign}s` } });
        expect(near.status, near.text).to.equal(200);
      });

    it('can be recorded by provider admins, and stay changeable by their tenant', async () => {
      const made = await admin('POST', `${PRIVATE}/users`, {
        metadata: { name: SIGNS[0], tenant: 't1' },
        spec: { username: SIGNS[0] },
      });
      expect(made.status, made.text).to.equal(200);
      const path = `${PUBLIC}/users/${textAt(made.json['object'] ?? made.json, 'id')}`;
      const changed = await manager('PATCH', path, { spec: { enabled: true } });
      expect(changed.status, changed.text).to.equal(200);
    });
  });

  it('write nothing when nothing changes, whatever has to be opened to know that', async () => {
    const user = await create(
      'erin',
      { username: 'erin', email: 'erin@t1.example' },
      { display_name: 'Erin' },
    );
    const path = `${PUBLIC}/users/${textAt(user, 'id')}`;
    const before = (await events()).length;
    const same = await manager('PATCH', path, {
      spec: { username: 'erin' },
      metadata: { display_name: 'Erin' },
    });
    expect(same.json).to.deep.equal(user);
    expect(await events()).to.have.length(before);
    const changed = await manager('PATCH', path, { spec: { email: 'e@t1.example' } });
    expect(changed.json['spec']).to.deep.equal({ username: 'erin', email: 'e@t1.example' });
    const [first, last] = (await events()).filter(({ stream }) => stream.endsWith(textAt(user, 'id')));
    const stored = [first, last].map((event) => event?.data['document'] as { spec: Json; metadata: Json });
    expect(stored[1]?.spec['username']).to.deep.equal(stored[0]?.spec['username']);
    expect(stored[1]?.metadata['name']).to.deep.equal(stored[0]?.metadata['name']);
    expect(stored[1]?.spec['email']).not.to.deep.equal(stored[0]?.spec['email']);
  });

  it('never show credentials, and keep them when they are not sent', async () => {
    const user = await create('fay', {
      username: 'fay',
      credentials: { password: 'pw-canary-1', temporary_password: true },
    });
    const id = textAt(user, 'id');
    expect(JSON.stringify(user)).not.to.include('credentials');
    await manager('PATCH', `${PUBLIC}/users/${id}`, { spec: { enabled: true } });
    for (const [caller, prefix] of [
      [manager, PUBLIC],
      [admin, PRIVATE],
    ] as const) {
      const shown = await caller('GET', `${prefix}/users/${id}`);
      expect(shown.status).to.equal(200);
      expect(shown.text).not.to.match(/credentials|pw-canary/);
    }
    const own = (await events()).filter(({ stream }) => stream.endsWith(id));
    expect(JSON.stringify(own)).not.to.include('pw-canary');
    expect(own.at(-1)?.data).to.have.nested.property('secrets.spec\\.credentials\\.password');
    expect(own.at(-1)?.data).to.have.nested.property('document.spec.credentials.temporary_password', true);
    expect([...service.secrets.values.values()].map((value) => Buffer.from(value).toString())).to.include(
      'pw-canary-1',
    );
  });

  it('refuse what does not fit, in words that do not repeat it', async () => {
    for (const [body, status, text] of [
      [{ metadata: { name: 'Bad_Name' } }, 400, /metadata\.name/],
      [{ metadata: { name: 'gus' }, spec: { username: 'u'.repeat(256) } }, 400, /spec\.username/],
      [{ metadata: { name: 'gus' }, spec: { email: 'e'.repeat(321) } }, 400, /spec\.email/],
      [{ metadata: { name: 'gus', display_name: 'd'.repeat(64) } }, 400, /display_name/],
      [{ metadata: { name: 'gus', tenant: 't2' } }, 403, /t2/],
    ] as const) {
      const reply = await manager('POST', `${PUBLIC}/users`, body);
      expect(reply.status, reply.text).to.equal(status);
      expect(textAt(reply.json, 'message')).to.match(text);
    }
    const nowhere = await admin('POST', `${PRIVATE}/users`, { metadata: { name: 'gus' } });
    expect([nowhere.status, textAt(nowhere.json, 'message')]).to.deep.equal([
      400,
      "a user must belong to a tenant of its own, not to 'shared': name one in 'metadata.tenant'",
    ]);
    expect(
      (await admin('POST', `${PRIVATE}/users`, { metadata: { name: 'gus', tenant: 't1' } })).status,
    ).to.equal(200);
  });

  it('do not take a status from their tenant', async () => {
    const reply = await manager('POST', `${PUBLIC}/users`, {
      metadata: { name: 'hal' },
      status: { phase: 'Active' },
    });
    expect(reply.json).not.to.have.property('status');
  });

  it('stand in events as ciphertext only, and in names as a hash that nobody can guess', async () => {
    const user = await create(
      'canary-name',
      { username: 'canary-username', email: 'canary@mail.example' },
      { display_name: 'Canary Display', description: 'canary description' },
    );
    const all = await events();
    expect(JSON.stringify(all)).not.to.match(
      /canary-name|canary-username|canary@mail|Canary Display|canary desc/,
    );
    const [first] = all.filter(({ stream }) => stream.endsWith(textAt(user, 'id')));
    expect(first?.type).to.equal('UserAdmitted');
    expect(encryptedIn(first?.data['document'] ?? null)).to.have.length(5);
    expect(first?.data['name']).to.match(/^p[0-9a-f]{40}$/);
    const shown = await admin('GET', `/api/ledger/v1/events?stream=${first?.stream}`);
    expect(shown.status).to.equal(200);
    expect(shown.text)
      .to.include('UserAdmitted')
      .and.not.match(/canary/i);
    expect(JSON.stringify(service.rejections) + JSON.stringify(service.logger.lines)).not.to.match(/canary/i);
  });

  it('are not named in the log by a reference that finds nobody', async () => {
    const lost = await manager('POST', `${PUBLIC}/role_bindings`, {
      metadata: { name: 'rb' },
      spec: { role: { name: 'nope' }, users: [{ name: 'canary-stranger' }, { id: 'canary-id' }] },
    });
    expect(lost.status).to.equal(400);
    expect(textAt(lost.json, 'message'))
      .to.include('object.spec.users.0: User not found')
      .and.not.include('canary');
    expect(JSON.stringify(service.rejections) + JSON.stringify(service.logger.lines)).not.to.match(/canary-/);
  });

  it('read `erased` once their key was destroyed', async () => {
    const user = await create('ivy', { username: 'ivy', email: 'ivy@t1.example', enabled: true });
    const id = textAt(user, 'id');
    await service.people.destroy(id);
    const reply = await manager('PATCH', `${PUBLIC}/users/${id}`, { spec: { enabled: false } });
    expect(reply.status, reply.text).to.equal(200);
    expect(reply.json['spec']).to.deep.equal({ username: 'erased', email: 'erased' });
    const shown = await manager('GET', `${PUBLIC}/users/${id}`);
    expect(textAt(shown.json, 'metadata', 'name')).to.equal('erased');
    expect(shown.text).not.to.include('ivy');
  });

  it('are not made by a dry run, which leaves nothing behind and knows taken names', async () => {
    await create('jan');
    const before = (await events()).length;
    const dry = { 'x-dry-run': 'true' };
    const body = { metadata: { name: 'joe' }, spec: { username: 'joe' } };
    const reply = await manager('POST', `${PUBLIC}/users`, body, dry);
    expect(reply.status, reply.text).to.equal(200);
    expect(reply.json).to.have.nested.property('spec.username', 'joe');
    expect(reply.json).to.have.nested.property('metadata.name', 'joe');
    const taken = await manager('POST', `${PUBLIC}/users`, { metadata: { name: 'jan' } }, dry);
    expect([taken.status, taken.json['code']]).to.deep.equal([409, 6]);
    expect(await events()).to.have.length(before);
  });

  it('answer a repeated key with the same user', async () => {
    const key = { 'idempotency-key': '"users-1"' };
    const body = { metadata: { name: 'kim' }, spec: { username: 'kim' } };
    const [first, second] = [
      await manager('POST', `${PUBLIC}/users`, body, key),
      await manager('POST', `${PUBLIC}/users`, body, key),
    ];
    expect([first.status, second.status], second.text).to.deep.equal([200, 200]);
    expect(second.json).to.deep.equal(first.json);
  });
});
