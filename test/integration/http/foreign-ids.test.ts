import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { v5, v7 } from 'uuid';
import { keyedCreationId, subjectIdOf } from '../../../src/app/log/identifiers.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { KIND_SAMPLES, makeHousePool } from '../../support/http/kind-samples.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

/**
 * Whoever knows an id, perhaps because it was the command id of a keyless creation, learns nothing from it:
 * foreign and absent ids run the same statements and answer the same.
 */
describe('ids of another tenant', () => {
  let service: TestService;
  let admin: Caller;
  let strangers: readonly Caller[];
  let users: string[];
  let asked: string[] = [];
  let serial = 0;

  before(async () => {
    service = await startTestService({ onRead: (question) => void asked.push(question) });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    const make = async (collection: string, body: object): Promise<Reply> => {
      const reply = await admin('POST', `${PRIVATE}/${collection}`, body);
      expect(reply.status, `${collection}: ${reply.text}`).to.equal(200);
      return reply;
    };
    await make('projects', { metadata: { name: 'house', tenant: 't1' } });
    await make('roles', { metadata: { name: 'house-role' } });
    await makeHousePool(admin);
    users = [];
    for (let i = 0; i < 2; i += 1) {
      const user = await make('users', {
        metadata: { name: `m-${i}`, tenant: 't1' },
        spec: { username: `m-${i}` },
      });
      users.push(textAt(user.json['object'] ?? user.json, 'id'));
    }
    strangers = [
      callerOf(service, await service.token({ user: 'ann', tenants: ['t2'] })),
      callerOf(service, await service.token({ user: 'eli', tenants: ['t2'], roles: ['tenant-admin'] })),
    ];
  });
  after(() => service.close());

  /** One object of tenant t1 and the id that its creation had as a command. */
  const foreign = async (kind: string, collection: string): Promise<{ id: string; command: string }> => {
    const name = `f-${(serial += 1)}`;
    const sample = KIND_SAMPLES[kind]?.body(name, { user: () => users.pop() ?? '' }) as {
      metadata: object;
    };
    const metadata = kind === 'tenant' ? sample.metadata : { ...sample.metadata, tenant: 't1' };
    const command = v7();
    const headers = { 'x-ledger-command-id': command };
    const reply = await admin('POST', `${PRIVATE}/${collection}`, { ...sample, metadata }, headers);
    expect(reply.status, reply.text).to.equal(200);
    const id = textAt(reply.json['object'] ?? reply.json, 'id');
    const settled = KIND_SAMPLES[kind]?.settled;
    if (settled !== undefined) await admin('PATCH', `${PRIVATE}/${collection}/${id}`, settled);
    return { id, command };
  };

  const HEADERS: readonly ((command: string, kind: string) => Readonly<Record<string, string>>)[] = [
    () => ({}),
    (command) => ({ 'x-ledger-command-id': command }),
    (command, kind) => ({ 'x-ledger-command-id': command, 'if-match': `"${kind}-7"` }),
    () => ({ 'idempotency-key': randomUUID() }),
    (_, kind) => ({ 'if-match': `"${kind}-7"` }),
    (command) => ({ 'x-ledger-command-id': command, 'x-dry-run': 'true' }),
  ];
  const CALLS = [
    ['PATCH', '', { metadata: { labels: { a: 'b' } } }],
    ['PATCH', '?lock=true', { metadata: { version: 9, labels: { a: 'b' } } }],
    ['DELETE', '', undefined],
  ] as const;

  for (const { kind, collection, words } of kinds) {
    // Those of all tenants are nobody's.
    if (kind === 'instanceType' || kind === 'bareMetalInstanceType') continue;
    it(`${words}: read like ids that never were, whatever the header, also once they are gone`, async () => {
      const { id, command } = await foreign(kind, collection);
      const outcome = async (
        stranger: Caller,
        verb: string,
        path: string,
        body: object | undefined,
        headers: Readonly<Record<string, string>>,
        known: string,
      ) => {
        asked = [];
        const { status, text } = await stranger(verb, path, body, headers);
        return { status, text: text.replaceAll(known, '<id>'), asked };
      };
      for (const gone of [false, true]) {
        if (gone) expect((await admin('DELETE', `${PRIVATE}/${collection}/${id}`)).status).to.equal(200);
        for (const stranger of strangers)
          for (const surface of [PUBLIC, PRIVATE])
            for (const [verb, query, body] of CALLS)
              for (const headersOf of surface === PUBLIC ? HEADERS : HEADERS.slice(1, 2)) {
                const absent = id.replace(/[0-9a-f]{4}$/, 'zzzz');
                const never = absent === id ? `${id}-x` : absent;
                const at = (one: string): string => `${surface}/${collection}/${one}${query}`;
                const one = await outcome(stranger, verb, at(id), body, headersOf(command, kind), id);
                const other = await outcome(stranger, verb, at(never), body, headersOf(v7(), kind), never);
                expect(one, `${verb} ${at(id)} ${JSON.stringify(headersOf(command, kind))}`).to.deep.equal(
                  other,
                );
              }
      }
    });
  }

  it('an id taken by the command id of a creation answers like one that was chosen and is taken', async () => {
    const spec = {
      source_type: 'SOURCE_TYPE_REGISTRY',
      source_ref: 'quay.example/i:1',
      architecture: ['ARCHITECTURE_AMD64'],
    };
    const { id } = await foreign('diskImage', 'disk_images');
    const [ann] = strangers;
    const images = `${PUBLIC}/disk_images`;
    const chosen = await ann?.('POST', images, { id, metadata: { name: 'mine' }, spec });
    const repeated = await ann?.(
      'POST',
      images,
      { metadata: { name: 'mine' }, spec },
      {
        'x-ledger-command-id': id,
      },
    );
    const both = await ann?.(
      'POST',
      images,
      { id, metadata: { name: 'mine' }, spec },
      {
        'x-ledger-command-id': id,
      },
    );
    expect(chosen?.status).to.equal(409);
    expect([repeated?.status, repeated?.text]).to.deep.equal([409, chosen?.text]);
    expect([both?.status, both?.text]).to.deep.equal([409, chosen?.text]);
  });

  /** What a keyed creation gets can be computed by anybody; so nobody may choose ids of that form. */
  it('ids of the form that keys lead to cannot be chosen by tenants, so that none is taken beforehand', async () => {
    const scope = {
      tenant: 't1',
      subjectId: subjectIdOf('t1', 'https://sso.example/realms/osac', 'vic'),
      method: 'POST',
      route: `${PUBLIC}/disk_images`,
    };
    const squatted = keyedCreationId(scope, 'order-1');
    const image = (name: string, id?: string) => ({
      ...(id === undefined ? {} : { id }),
      metadata: { name },
      spec: {
        source_type: 'SOURCE_TYPE_REGISTRY',
        source_ref: 'quay.example/i:1',
        architecture: ['ARCHITECTURE_AMD64'],
      },
    });
    const admins = callerOf(
      service,
      await service.token({ user: 'eli', tenants: ['t2'], roles: ['tenant-admin'] }),
    );
    for (const stranger of [...strangers, admins])
      for (const id of [squatted, squatted.toUpperCase()])
        for (const [body, headers] of [
          [image('sq', id), {}],
          [image('sq', id), { 'idempotency-key': 'k' }],
          [image('sq', id), { 'x-dry-run': 'true' }],
          [image('sq'), { 'x-ledger-command-id': id }],
        ] as const) {
          const reply = await stranger('POST', `${PUBLIC}/disk_images`, body, headers);
          expect(reply.status, reply.text).to.equal(400);
          expect(reply.text).to.contain('version 5');
        }
    const vic = callerOf(service, await service.token({ user: 'vic', tenants: ['t1'] }));
    const made = await vic('POST', `${PUBLIC}/disk_images`, image('vics'), { 'idempotency-key': 'order-1' });
    expect([made.status, textAt(made.json, 'id')], made.text).to.deep.equal([200, squatted]);
    const own = v5('mine', v5.URL);
    const chosen = await admin('POST', `${PRIVATE}/disk_images`, image('of-admin', own));
    expect(chosen.status, 'an admin may bring ids along').to.equal(200);
    const command = await admin('PATCH', `${PRIVATE}/disk_images/${own}`, image('of-admin'), {
      'x-ledger-command-id': own,
    });
    expect(command.status, 'commands of that form are those of keys').to.equal(400);
  });
});
