import { expect } from 'chai';
import fc from 'fast-check';
import { kinds } from '../../../src/domain/kinds.ts';
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
} from '../../support/http/service.ts';
import { checkAsync } from '../../support/property.ts';
import { anyText } from '../../support/arbitraries/any-text.ts';

const CLUSTERS = `${PUBLIC}/clusters`;

describe('lists over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  /** Clusters of t1 in the order of creation: a, b, c, then one with a chosen id that sorts first. */
  const ids: Record<string, string> = {};

  const ok = (reply: Reply): Reply => {
    expect(reply.status, reply.text).to.equal(200);
    return reply;
  };
  const list = (caller: Caller, collection: string, query: Record<string, string>): Promise<Reply> =>
    caller('GET', `${collection}?${new URLSearchParams(query).toString()}`);
  const namesOf = (reply: Reply): string[] =>
    itemsOf(ok(reply)).map((item) => textAt(item, 'metadata', 'name'));
  const filtered = async (filter: string, more: Record<string, string> = {}): Promise<string> =>
    namesOf(await list(user, CLUSTERS, { filter, ...more })).join(' ');

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    await seedCatalogue(admin);
    const order = async (
      caller: Caller,
      name: string,
      more: object = {},
      size = 3,
      id?: string,
    ): Promise<void> => {
      const reply = await caller('POST', CLUSTERS, {
        ...(id === undefined ? {} : { id }),
        metadata: { name, ...more },
        spec: { template: { id: 'osac.templates.small' }, node_sets: { workers: { size } } },
      });
      ids[name] = textAt(ok(reply).json, 'id');
    };
    await order(user, 'b', { labels: { env: 'dev' } });
    await order(user, 'a', { labels: { env: 'prod', 'team/x': 'y' } }, 5);
    await order(user, 'c', {}, 7);
    await order(other, 'a', { labels: { env: 'dev' } });
    await order(user, 'first-by-id', {}, 3, '0-first');
    const state = { status: { state: 'CLUSTER_STATE_READY' } };
    ok(await admin('PATCH', `${PRIVATE}/clusters/${ids['c']}`, state));
  });
  after(() => service.close());

  it('are in the order of creation, whatever the ids', async () => {
    expect(namesOf(await list(user, CLUSTERS, {}))).to.deep.equal(['b', 'a', 'c', 'first-by-id']);
    expect(namesOf(await list(user, CLUSTERS, { limit: '2', offset: '2' }))).to.deep.equal([
      'c',
      'first-by-id',
    ]);
  });

  describe('filter', () => {
    const cases: readonly (readonly [filter: string, names: string])[] = [
      ['this.metadata.name == "a"', 'a'],
      ["this.metadata.labels['env'] == 'dev'", 'b'],
      ["this.metadata.labels['env'] != 'dev'", 'a c first-by-id'],
      ["'team/x' in this.metadata.labels", 'a'],
      ['this.id == "0-first"', 'first-by-id'],
      ['this.status.state == 2', 'c'],
      ['this.status.state == CLUSTER_STATE_READY', 'c'],
      ['this.status.state > 1', 'c'],
      ['this.status.state == CLUSTER_STATE_PROGRESSING', 'b a first-by-id'],
      ['this.status.state == CLUSTER_STATE_READY && this.metadata.name.startsWith("c")', 'c'],
      ['this.spec.template.id == "osac.templates.small" && this.spec.node_sets["workers"].size >= 5', 'a c'],
      ['this.spec.template.name == "small"', 'b a c first-by-id'],
      ['this.spec.node_sets.workers.size % 2 == 1 && !(this.metadata.name in ["a", "b"])', 'c first-by-id'],
      ['this.metadata.deletion_timestamp == null', 'b a c first-by-id'],
      ['this.metadata.creation_timestamp <= now', 'b a c first-by-id'],
      ['has(this.spec.version) && has(this.metadata.creation_timestamp)', 'b a c first-by-id'],
      ['this.metadata.tenant == "t1"', 'b a c first-by-id'],
      ['this.metadata.tenant == "t2"', ''],
      ['false', ''],
      // What the command line sends (OSAC).
      ['this.id == "a" || this.metadata.name == "a"', 'a'],
      ['this.id in ["a", "0-first"] || this.metadata.name in ["a", "0-first"]', 'a first-by-id'],
      [
        '(this.id in ["a", "b"] || this.metadata.name in ["a", "b"]) && (this.spec.node_sets.workers.size > 3)',
        'a',
      ],
    ];
    for (const [filter, names] of cases)
      it(`${filter}`, async () => expect(await filtered(filter)).to.equal(names));

    it('counts all matches in total and the page in size', async () => {
      const reply = ok(
        await list(user, CLUSTERS, {
          filter: 'this.spec.node_sets.workers.size > 0',
          limit: '2',
          offset: '1',
        }),
      );
      expect(reply.json).to.include({ size: 2, total: 4 });
      const only = ok(await list(user, CLUSTERS, { filter: 'this.metadata.name != "b"', limit: '0' }));
      expect(only.json).to.deep.equal({ total: 3 });
      expect(ok(await list(user, CLUSTERS, { filter: 'this.metadata.name == "none"' })).text).to.equal('{}');
    });

    it('never shows what the caller may not see', async () => {
      const reply = ok(
        await list(user, CLUSTERS, { filter: `this.id == "${ids['a']}" || this.metadata.tenant == "t2"` }),
      );
      expect(reply.json['total'] ?? 0).to.equal(0);
      const all = await list(admin, `${PRIVATE}/clusters`, { filter: 'this.metadata.name == "a"' });
      expect(namesOf(all)).to.deep.equal(['a', 'a']);
    });

    it('an empty one is none', async () => {
      expect(namesOf(await list(user, CLUSTERS, { filter: '' }))).to.have.length(4);
      expect(namesOf(await list(user, CLUSTERS, { filter: ' ' }))).to.have.length(4);
    });

    const refused: readonly (readonly [filter: string, words: string])[] = [
      ['this.nope == 1', "line 1, column 5: unknown field 'nope'"],
      ["this.metadata.annotations['note'] == 'x'", "'metadata.annotations' cannot be asked about"],
      ['this.status.state == 99', '99 is not a value of osac.public.v1.ClusterState'],
      ['this.status.hub == "h"', "unknown field 'status.hub'"],
      ['this.spec.pull_secret == "***"', 'write-only'],
      ['this.metadata.name', 'must be true or false'],
      ['this.metadata.name == ', 'line 1'],
      ['size(this.metadata.name) > 1', "'size'"],
    ];
    for (const [filter, words] of refused)
      it(`refuses ${filter}`, async () => {
        const reply = await list(user, CLUSTERS, { filter });
        expect(reply.status).to.equal(400);
        expect(reply.json['code']).to.equal(3);
        expect(reply.json['message']).to.contain(words);
        expect(JSON.stringify(reply.json['details'])).to.contain('"field":"filter"');
      });
  });

  describe('order', () => {
    const cases: readonly (readonly [order: string, names: string])[] = [
      ['metadata.name', 'a b c first-by-id'],
      ['metadata.name desc', 'first-by-id c b a'],
      ['this.metadata.name ASC', 'a b c first-by-id'],
      ['metadata.creation_timestamp desc', 'first-by-id c a b'],
      ['spec.template.id', 'b a c first-by-id'],
      ['spec.template.id desc', 'first-by-id c a b'],
      [" status.state desc , metadata.labels['env'], metadata.name", 'c first-by-id b a'],
      ['spec.node_sets["workers"].size desc, metadata.name asc', 'c a b first-by-id'],
      ['id', 'first-by-id'],
    ];
    for (const [order, names] of cases)
      it(`${order}`, async () => {
        const found = namesOf(await list(user, CLUSTERS, { order, limit: order === 'id' ? '1' : '100' }));
        expect(found.join(' ')).to.equal(names);
      });
    it('goes together with a filter and a page', async () => {
      const query = {
        filter: 'this.spec.node_sets.workers.size > 3',
        order: 'metadata.name',
        limit: '1',
        offset: '1',
      };
      const reply = ok(await list(user, CLUSTERS, query));
      expect(namesOf(reply)).to.deep.equal(['c']);
      expect(reply.json['total']).to.equal(2);
    });
    const refused: readonly (readonly [order: string, words: string])[] = [
      ['nope', "order at line 1, column 1: unknown field 'nope'"],
      ['metadata.name, metadata.nope', 'column 25'],
      ['metadata.name up', "'asc', 'desc' or a comma"],
      ['metadata.name,', 'a field is expected'],
      ['spec.template', 'has no order'],
      ['metadata.labels', 'has no order'],
      ['metadata.annotations["x"]', 'cannot be asked about'],
      ['spec.pull_secret', 'write-only'],
      ['metadata..name', 'a field is expected'],
      ['id,'.repeat(300), '8 fields'],
      ['x'.repeat(2000), '1024 characters'],
    ];
    for (const [order, words] of refused)
      it(`refuses ${order.slice(0, 40)}`, async () => {
        const reply = await list(user, CLUSTERS, { order });
        expect(reply.status).to.equal(400);
        expect(reply.json['message']).to.contain(words);
      });
  });

  describe('public defaults', () => {
    const VERSIONS = `${PUBLIC}/cluster_versions`;
    const PRIVATE_VERSIONS = `${PRIVATE}/cluster_versions`;
    const versionsOf = async (filter?: string): Promise<string> => {
      const reply = ok(await list(user, VERSIONS, filter === undefined ? {} : { filter }));
      return itemsOf(reply)
        .map((item: Json) => textAt(item, 'spec', 'version'))
        .toSorted()
        .join(' ');
    };
    let before_ = '';

    before(async () => {
      before_ = await versionsOf();
      for (const [version, spec] of [
        ['9.1.0', { state: 'CLUSTER_VERSION_STATE_DEPRECATED', enabled: true }],
        ['9.2.0', { state: 'CLUSTER_VERSION_STATE_OBSOLETE', enabled: true }],
        ['9.3.0', { state: 'CLUSTER_VERSION_STATE_ACTIVE', enabled: false }],
      ] as const)
        ok(
          await admin('POST', PRIVATE_VERSIONS, {
            metadata: {},
            spec: { version, image: `quay.io/ocp:${version}`, ...spec },
          }),
        );
    });

    it('hide what is obsolete or disabled, on the public surface only', async () => {
      expect(await versionsOf()).to.equal(`${before_} 9.1.0`);
      const all = ok(await list(admin, PRIVATE_VERSIONS, {}));
      expect(itemsOf(all).map((item) => textAt(item, 'spec', 'version'))).to.include.members([
        '9.2.0',
        '9.3.0',
      ]);
    });
    it('give way to a filter that asks about the field, each by itself', async () => {
      expect(await versionsOf('this.spec.state == CLUSTER_VERSION_STATE_OBSOLETE')).to.equal('9.2.0');
      expect(await versionsOf('this.spec.enabled == false')).to.equal('9.3.0');
      expect(await versionsOf('this.spec.version.startsWith("9.")')).to.equal('9.1.0');
      expect(await versionsOf('this.metadata.name == "x" || this.spec.version == "9.2.0"')).to.equal('');
    });
    it("work with the command line's filter of versions", async () => {
      const filter = '(this.metadata.name == "9.1.0" || this.spec.version == "9.1.0") && this.spec.state > 0';
      expect(await versionsOf(filter)).to.equal('9.1.0');
    });
    it('are declared twice in the same sense: as filters and for the index', async () => {
      for (const kind of kinds)
        expect(kind.listed === undefined, kind.kind).to.equal(kind.publicList === undefined);
    });
  });

  describe('bad input', () => {
    it('is refused at once, and exactly', async () => {
      for (const [filter, words] of [
        ['this.id == "x"' + ' || this.id == "x"'.repeat(600), '4096 characters'],
        [`${'('.repeat(1000)}true${')'.repeat(1000)}`, 'nested 32 deep'],
        [`${'!('.repeat(300)}true${')'.repeat(300)}`, 'nested 32 deep'],
        ['\u0000', "unexpected '·'"],
        ['this.__proto__ == null', "unknown field '__proto__'"],
        ['this.constructor.name == "x"', "unknown field 'constructor'"],
        ['this["__proto__"] == null', 'is not a map'],
      ] as const) {
        const reply = await list(user, CLUSTERS, { filter });
        expect(reply.status, filter.slice(0, 40)).to.equal(400);
        expect(reply.json['message']).to.contain(words);
      }
      expect((await user('GET', `${CLUSTERS}?filter=%FF%FE`)).status).to.equal(400);
    });

    it('never gives anything but an answer or a 400', async () => {
      const pieces = fc.constantFrom(
        'this',
        '.',
        'metadata',
        'labels',
        "['k']",
        '==',
        '!=',
        '<',
        '&&',
        '||',
        '!',
        '(',
        ')',
        '[',
        ']',
        '"x"',
        "'",
        '"',

        '1',
        '-',
        '1.5',
        '9223372036854775807',
        'null',
        'true',
        'now',
        'in',
        'has',
        ',',
        '?',
        ':',
        '{',
        '}',
        '+',
        '/',
        '%',

        'spec',
        'template',
        'id',
        'status',
        'state',
        'CLUSTER_STATE_READY',
        '\\',
        '\n',
        '\u{1f600}',
        '.contains("x")',
        'this.id',
        'this.status.state',
        'this.metadata.labels',
        'exists(x, x)',
        '//',
        'r"',
        '"""',
      );
      const garbage = fc.oneof(
        fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
        fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(' ')),
        anyText({ maxLength: 40 }),
      );
      await checkAsync(
        fc.asyncProperty(garbage, garbage, fc.string({ maxLength: 6 }), async (filter, order, limit) => {
          for (const query of [{ filter }, { order }, { limit }]) {
            const reply = await list(user, CLUSTERS, query as Record<string, string>);
            expect([200, 400], `${JSON.stringify(query)} ${reply.text}`).to.include(reply.status);
          }
        }),
        { numRuns: 150 },
      );
    }).timeout(30_000);
  });
});
