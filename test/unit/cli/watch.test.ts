import { expect } from 'chai';
import { InvalidArgumentError } from 'commander';
import { ApiError, Unreachable, type ApiClient, type Stream } from '../../../src/cli/api-client.ts';
import { CliFailure } from '../../../src/cli/exit.ts';
import { createKindNames } from '../../../src/cli/resources/kind-names.ts';
import { forEvents, watchChanges, type WatchOptions } from '../../../src/cli/resources/watch.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { numberAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';

const names = createKindNames(kinds);
const cluster = (id: string, version: number, more: object = {}): JsonObject => ({
  id,
  metadata: { name: id, version, ...more },
});
const event = (id: string, type: string, object: JsonObject): JsonValue => ({
  result: { event: { id, type: `EVENT_TYPE_OBJECT_${type}`, cluster: object } },
});
const over = (code: number): JsonValue => ({ error: { code, message: 'over' } });
const broken = new TypeError('terminated', { cause: new Error('other side closed') });

/** One connection: what it begins after, its lines, and how it ends. */
type Connection = {
  readonly begin?: string;
  readonly lines?: readonly JsonValue[];
  readonly end?: Error;
  readonly refused?: Error;
};

/** Plays connections one after the other; when none is left the watch is interrupted. */
const play = async (
  connections: readonly Connection[],
  lists: readonly (readonly JsonObject[])[],
  more: Partial<WatchOptions> = {},
) => {
  const asked: URL[] = [];
  const lost: string[] = [];
  const waits: number[] = [];
  const stop = new AbortController();
  const left = [...connections];
  const listsLeft = [...lists];
  let openWhenListed = true;
  const open = async (_method: string, path: string): Promise<Stream<JsonValue>> => {
    const next = left.shift();
    if (next === undefined) {
      stop.abort();
      throw new Unreachable('interrupted');
    }
    asked.push(new URL(path, 'http://x'));
    if (next.refused !== undefined) throw next.refused;
    const lines = (async function* () {
      yield* next.lines ?? [];
      if (next.end !== undefined) throw next.end;
    })();
    return {
      headers: new Headers(next.begin === undefined ? {} : { 'x-ledger-watch-id': next.begin }),
      lines,
    };
  };
  const told: string[] = [];
  const failure = await (async () => {
    const changes = watchChanges({
      client: async () => ({ open }) as Partial<ApiClient> as ApiClient,
      kind: names.find('cluster'),
      surface: 'public',
      names: [],
      list: async () => {
        openWhenListed &&= asked.length > 0;
        return listsLeft.shift() ?? [];
      },
      lost: (why) => void lost.push(why),
      pause: async (ms) => void waits.push(ms),
      signal: stop.signal,
      ...more,
    });
    for await (const { type, object } of changes)
      told.push(`${type} ${stringAt(object, 'id')}@${numberAt(objectAt(object, 'metadata'), 'version')}`);
  })().catch((error: unknown) => error);
  return {
    told,
    asked,
    lost,
    waits,
    failure,
    openWhenListed,
    froms: asked.map((url) => url.searchParams.get('from')),
  };
};

describe('watching from the command line', () => {
  it('tells how it stands, then every change once; the stream is open before the list is read', async () => {
    const { told, asked, openWhenListed } = await play(
      [
        {
          lines: [
            event('1', 'UPDATED', cluster('a', 2)),
            event('2', 'UPDATED', cluster('a', 3)),
            event('3', 'CREATED', cluster('b', 0)),
            event('4', 'DELETED', cluster('a', 3)),
          ],
        },
      ],
      [[cluster('a', 2)]],
    );
    expect(told).to.deep.equal(['LISTED a@2', 'UPDATED a@3', 'CREATED b@0', 'DELETED a@3']);
    expect(openWhenListed).to.equal(true);
    expect(asked[0]?.pathname).to.equal('/api/events/v1/events');
    expect(asked[0]?.searchParams.get('filter')).to.equal('has(event.cluster)');
  });

  it('tells that a deletion was asked for, which changes no version', async () => {
    const going = cluster('a', 2, { deletion_timestamp: '2026-11-21T12:00:00Z' });
    const { told } = await play(
      [{ lines: [event('1', 'UPDATED', going), event('2', 'UPDATED', going)] }],
      [[cluster('a', 2)]],
    );
    expect(told).to.deep.equal(['LISTED a@2', 'UPDATED a@2']);
  });

  it('goes on after the last event when the connection is lost, the service stops or the reader was too slow', async () => {
    for (const ending of [
      { end: broken },
      {},
      { lines: [over(14)] },
      { lines: [over(8)] },
      { lines: [over(16)] },
    ]) {
      const first = {
        lines: [event('7', 'CREATED', cluster('a', 0)), ...('lines' in ending ? (ending.lines ?? []) : [])],
      };
      const { told, froms, lost } = await play(
        [{ ...ending, ...first }, { lines: [event('8', 'UPDATED', cluster('a', 1))] }],
        [[], [cluster('must not be listed', 1)]],
      );
      expect(told).to.deep.equal(['CREATED a@0', 'UPDATED a@1']);
      expect(froms).to.deep.equal([null, '7']);
      expect(lost).to.have.length(2);
    }
  });

  it('goes on from where the stream began when nothing was told before it was lost', async () => {
    const { froms, told } = await play(
      [{ begin: 's.5', end: broken }, { lines: [event('6', 'CREATED', cluster('a', 0))] }],
      [[]],
    );
    expect(froms).to.deep.equal([null, 's.5']);
    expect(told).to.deep.equal(['CREATED a@0']);
  });

  it('lists anew where it does not know how to go on, and tells what is different', async () => {
    const first = {
      lines: [
        event('1', 'UPDATED', cluster('a', 3)),
        event('2', 'CREATED', cluster('b', 0)),
        event('3', 'CREATED', cluster('c', 0)),
      ],
    };
    const now = [cluster('a', 3), cluster('b', 1), cluster('d', 0)];
    for (const reason of [
      [{ ...first, lines: [...first.lines, over(11)] }],
      [first, { refused: new ApiError('GET', '/x', 400, {}) }],
    ]) {
      const { told, froms } = await play([...reason, {}], [[cluster('a', 2)], now]);
      expect(told.slice(4)).to.deep.equal(['DELETED c@0', 'LISTED b@1', 'LISTED d@0']);
      expect(froms.at(-1)).to.equal(null);
    }
  });

  it('ends with what cannot pass: a wrong filter, no rights', async () => {
    for (const status of [400, 403, 401, 404]) {
      const refused = new ApiError('GET', '/x', status, {});
      expect((await play([{ refused }], [])).failure).to.equal(refused);
    }
    expect((await play([{ lines: [over(3)] }], [[]])).failure).to.have.property('message', 'over');
  });

  it('waits longer each time and gives up in the end', async () => {
    const refused = new Unreachable('cannot reach it');
    const { failure, waits } = await play(
      Array.from({ length: 20 }, () => ({ refused })),
      [],
    );
    expect(failure).to.be.instanceOf(CliFailure).with.property('status', 4);
    expect(waits).to.deep.equal([250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
  });

  it('asks for names, a tenant and a filter in the words of events', async () => {
    const { asked } = await play([{}], [[]], {
      names: ['a', 'b"'],
      tenant: 't',
      filter: "this.metadata.labels['this'] == 'x' || this.id == \"this.id\"",
    });
    expect(asked[0]?.searchParams.get('filter')).to.equal(
      '(has(event.cluster)) && ' +
        '(event.cluster.id in ["a", "b\\""] || event.cluster.metadata.name in ["a", "b\\""]) && ' +
        '(event.cluster.metadata.tenant == "t") && ' +
        "(event.cluster.metadata.labels['this'] == 'x' || event.cluster.id == \"this.id\")",
    );
  });

  it('a word that only holds or follows "this" is left alone', () => {
    expect(forEvents('thistle.this == this_one && has(this.spec)', 'event.x')).to.equal(
      'thistle.this == this_one && has(event.x.spec)',
    );
  });

  it('kinds that public watches tell nothing of are listed again and again', async () => {
    const stop = new AbortController();
    const lists: (readonly JsonObject[] | Error)[] = [
      [cluster('a', 1), cluster('b', 1)],
      [cluster('a', 1), cluster('b', 2)],
      new Unreachable('away'),
      [cluster('b', 2), cluster('c', 1)],
    ];
    const { told, asked, lost } = await play([], [], {
      kind: names.find('virtual_network'),
      list: async () => {
        const next = lists.shift() ?? [];
        if (lists.length === 0) stop.abort();
        if (next instanceof Error) throw next;
        return next;
      },
      signal: stop.signal,
    });
    expect(told).to.deep.equal(['LISTED a@1', 'LISTED b@1', 'UPDATED b@2', 'DELETED a@1', 'CREATED c@1']);
    expect([asked, lost]).to.deep.equal([[], ['away']]);
  });

  it('kinds whose changes are not told are usage', async () => {
    const hub = await play([], [], { kind: names.find('hub') });
    expect(hub.failure)
      .to.be.instanceOf(InvalidArgumentError)
      .with.property('message', 'hub: changes are not told on the public surface; use --private');
  });
});
