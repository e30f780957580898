import { expect } from 'chai';
import { connect } from 'node:net';
import { kinds } from '../../../../src/domain/kinds.ts';
import { MAX_BODY_BYTES } from '../../../../src/http/body.ts';
import { heldBy } from '../../../support/held-promise.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../../support/http/service.ts';
import { KIND_SAMPLES, makeHousePool, named, type Around } from '../../../support/http/kind-samples.ts';

const ANNOTATION_BYTES = 256 * 1024;
const OBJECTS = 24;
const ROUNDS = 3;
/** Users for all that bind one. */
const MEMBERS = 2 * ROUNDS;
/** A body of exactly so many bytes: annotations at their limit, and white space, which is JSON, too. */
const bodyOf = (sample: object, bytes: number): string => {
  const { metadata, ...rest } = sample as { readonly metadata: object };
  const annotations = { a: 'é'.repeat(ANNOTATION_BYTES / 2 - 1) };
  const text = JSON.stringify({ ...rest, metadata: { ...metadata, annotations } });
  return text + ' '.repeat(bytes - Buffer.byteLength(text));
};

/** No request, however large, keeps the thread to itself. */
describe('the largest documents over HTTP', function () {
  this.timeout(60_000);
  let service: TestService;
  let admin: Caller;
  let token: string;
  let around: Around;
  /** Documents that were read for parts of lists, by turn of the event loop. */
  const readInTurn = new Map<number, number>();
  let turn = 0;

  before(async () => {
    service = await startTestService({
      forgetful: true,
      onRead: (question) => {
        if (question === 'documentAt') readInTurn.set(turn, (readInTurn.get(turn) ?? 0) + 1);
      },
    });
    token = await service.token({ user: 'root', admin: true });
    admin = callerOf(service, token);
    await seedCatalogue(admin);
    const make = async (collection: string, body: object): Promise<Reply> => {
      const reply = await admin('POST', `${PRIVATE}/${collection}`, body);
      expect(reply.status, `${collection}: ${reply.text}`).to.equal(200);
      return reply;
    };
    await make('projects', named('house'));
    await make('roles', { metadata: { name: 'house-role' } });
    await makeHousePool(admin);
    const users: string[] = [];
    for (let i = 0; i < MEMBERS; i += 1) {
      const { json } = await make('users', { ...named(`member-${i}`), spec: { username: `member-${i}` } });
      users.push(textAt(json['object'] ?? json, 'id'));
    }
    around = { user: () => users.pop() ?? '' };
  });
  after(() => service.close());

  for (const kind of kinds)
    it(`a ${kind.words} of the largest size is made, one byte more is 413`, async () => {
      const path = `${PRIVATE}/${kind.collection}`;
      const sample = KIND_SAMPLES[kind.kind];
      expect(sample).to.not.equal(undefined);
      const bodies = Array.from({ length: ROUNDS }, (_, i) =>
        bodyOf(sample?.body(`large-${i}`, around) ?? {}, MAX_BODY_BYTES),
      );
      const more = await admin('POST', path, `${bodies[0]} `);
      expect([more.status, more.json['code']]).to.deep.equal([413, 3]);
      expect(textAt(more.json, 'message')).to.contain(`larger than ${MAX_BODY_BYTES} bytes`);
      const ms = await heldBy(async () => {
        const made = await admin('POST', path, bodies.pop());
        expect(made.status, made.text.slice(0, 300)).to.equal(200);
      }, ROUNDS);
      process.stdout.write(`      ${kind.words}: ${ms.toFixed(1)} ms\n`);
    });

  it('many changes add up to no more', async () => {
    const path = `${PRIVATE}/cluster_templates/osac.templates.small`;
    const text = 'x'.repeat(100_000);
    const change = (mask: string, body: object): Promise<Reply> =>
      admin('PATCH', `${path}?update_mask=${mask}`, body);
    expect((await change('description', { description: text })).status).to.equal(200);
    expect((await change('title', { title: text })).status).to.equal(200);
    const refused = await change('metadata.annotations', { metadata: { annotations: { a: text } } });
    expect([refused.status, refused.headers.get('x-ledger-reason')]).to.deep.equal([400, 'OBJECT_TOO_LARGE']);
    expect(textAt(refused.json, 'message')).to.contain(`at most ${MAX_BODY_BYTES} bytes`);
    expect((await change('title', { title: 'Small' })).status).to.equal(200);
  });

  it('nor do the values of a secret', async () => {
    const sized = (bytes: number): string => Buffer.alloc(bytes, 'v').toString('base64');
    const made = await admin('POST', `${PRIVATE}/secrets`, {
      ...named('sized'),
      data: { a: sized(100_000), b: sized(100_000) },
    });
    const path = `${PRIVATE}/secrets/${textAt(made.json, 'id')}`;
    const refused = await admin('PATCH', `${path}?update_mask=data.c`, { data: { c: sized(62_145) } });
    expect([refused.status, refused.headers.get('x-ledger-reason')]).to.deep.equal([400, 'OBJECT_TOO_LARGE']);
    expect(textAt(refused.json, 'message')).to.equal(
      "the values of field 'data' may have at most 262144 bytes together",
    );
    for (const [mask, data] of [
      ['data.c', { c: sized(62_144) }],
      ['data.b', { b: sized(99_000) }],
      ['data.b', {}],
      ['data.d', { d: sized(100_000) }],
      ['data', { z: sized(200_000) }],
    ] as const)
      expect((await admin('PATCH', `${path}?update_mask=${mask}`, { data })).status, mask).to.equal(200);
  });

  it('what happened to an order is told in parts, too', async () => {
    const made = await admin('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'told', tenant: 'shared' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    const path = `${PUBLIC}/clusters/${textAt(made.json, 'id')}`;
    const changes = 6;
    let position = '';
    for (let i = 0; i < changes; i += 1) {
      const annotations = { a: String(i).repeat(100_000) };
      const reply = await admin('PATCH', path, { metadata: { annotations } });
      expect(reply.status, reply.text.slice(0, 200)).to.equal(200);
      position = reply.headers.get('x-ledger-position') ?? '';
    }
    const told = (limit: number): Promise<Reply> =>
      admin('GET', `${path}/timeline?limit=${limit}`, undefined, { 'x-ledger-min-position': position });
    const whole = await told(1_000);
    expect(whole.headers.get('content-length')).to.equal(null);
    expect(whole.json['size']).to.equal(changes + 1);
    expect(
      itemsOf(whole)
        .slice(1)
        .map((item) => textAt(item, 'data', 'annotations', 'a').charAt(0)),
    ).to.deep.equal(Array.from({ length: changes }, (_, i) => String(i)));
    expect(itemsOf(await told(4))).to.deep.equal(itemsOf(whole).slice(0, 4));
    const short = await told(2);
    expect(short.headers.get('content-length')).to.equal(String(short.text.length));
    expect(itemsOf(short)).to.deep.equal(itemsOf(whole).slice(0, 2));
  });

  describe('in lists', () => {
    const LIST = `${PRIVATE}/host_types?limit=1000`;
    before(async () => {
      for (let i = 0; i < OBJECTS; i += 1) {
        const name = `long-${i}`;
        const body = bodyOf({ id: name, metadata: { name }, title: 'Long' }, MAX_BODY_BYTES);
        expect((await admin('POST', `${PRIVATE}/host_types`, body)).status).to.equal(200);
      }
    });

    /** Reads an answer without looking at it, which would be measured, too. */
    const drop = async (path: string): Promise<void> => {
      const { body } = await fetch(service.url + path, { headers: { authorization: `Bearer ${token}` } });
      for await (const part of body ?? []) expect(part).to.not.equal(undefined);
    };

    it('come in parts, a bounded one in each turn, and are the documents as they are', async () => {
      readInTurn.clear();
      let going = true;
      const count = (): void => {
        turn += 1;
        if (going) setImmediate(count);
      };
      setImmediate(count);
      const reply = await admin('GET', LIST);
      going = false;
      expect(reply.status).to.equal(200);
      const items = itemsOf(reply) as readonly (Json & { readonly id: string })[];
      expect(reply.json['size']).to.equal(items.length);
      expect(reply.json['total']).to.equal(items.length);
      expect([...readInTurn.values()].reduce((all, one) => all + one)).to.equal(items.length);
      // A long document ends a part, and two turns of the thread may look like one from here.
      const short = items.filter((item) => JSON.stringify(item).length < 1_000).length;
      expect(Math.max(...readInTurn.values())).to.be.at.most(short + 2);
      expect(readInTurn.size).to.be.at.least(OBJECTS / 2);
      for (const item of [items[0], items.at(-1)])
        expect(item).to.deep.equal((await admin('GET', `${PRIVATE}/host_types/${item?.id}`)).json);
      const sorted = await admin('GET', `${LIST}&order=${encodeURIComponent('metadata.name desc')}`);
      expect(itemsOf(sorted).map((item) => textAt(item, 'metadata', 'name'))).to.deep.equal(
        items
          .map((item) => textAt(item, 'metadata', 'name'))
          .toSorted()
          .toReversed(),
      );
      const ms = await heldBy(() => drop(LIST));
      process.stdout.write(
        `      a list of ${(reply.text.length / 1e6).toFixed(1)} MB: ${ms.toFixed(1)} ms\n`,
      );
    });

    it('leave out what is deleted meanwhile, and are sent no faster than they are read', async () => {
      const { hostname, port } = new URL(service.url);
      const socket = connect(Number(port), hostname);
      socket.write(
        `GET ${LIST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      );
      readInTurn.clear();
      const parts: Buffer[] = [];
      const ended = new Promise((resolve) => socket.on('close', resolve));
      await new Promise<void>((resolve) => {
        socket.once('data', (part) => {
          parts.push(part);
          socket.pause();
          resolve();
        });
      });
      // As long as nobody reads, no more is read from the model than fits between the two.
      let before = -1;
      const readSoFar = (): number => [...readInTurn.values()].reduce((all, one) => all + one, 0);
      while (before !== readSoFar()) {
        before = readSoFar();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const total = Number((await admin('GET', `${PRIVATE}/host_types?limit=0`)).json['total']);
      expect(before).to.be.lessThan(total);
      const last = `long-${OBJECTS - 1}`;
      expect((await admin('DELETE', `${PRIVATE}/host_types/${last}`)).status).to.equal(200);
      socket.on('data', (part) => parts.push(part));
      socket.resume();
      await ended;
      const text = Buffer.concat(parts).toString('utf8');
      expect(text)
        .to.contain(`"total":${total},`)
        .and.to.contain(`"size":${total - 1}}`);
      expect(text).to.contain('"id":"long-0"').and.not.to.contain(`"id":"${last}"`);
    });

    it('HEAD gets their head only', async () => {
      readInTurn.clear();
      const reply = await admin('HEAD', LIST);
      expect([reply.status, reply.text, readInTurn.size]).to.deep.equal([200, '', 0]);
    });

    it('short pages are sent as one', async () => {
      const reply = await admin('GET', `${PUBLIC}/host_types?limit=2`);
      expect(reply.headers.get('content-length')).to.equal(String(Buffer.byteLength(reply.text)));
    });
  });
});
