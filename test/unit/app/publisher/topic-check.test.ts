import { expect } from 'chai';
import type { HistoryCheck } from '../../../../src/app/publisher/history.ts';
import type { TopicOnBrokers } from '../../../../src/app/publisher/ports.ts';
import { createTopicCheck } from '../../../../src/app/publisher/topic-check.ts';
import type { TopicSpec } from '../../../../src/app/streams/stream.ts';

const signal = new AbortController().signal;
const topicNamed = (name: string): TopicSpec => ({
  name,
  kind: 'events',
  cleanup: 'delete',
  partitions: 1,
  retentionMs: -1,
  filter: { streamPrefixes: ['thing-'] },
});
const SOUND: TopicOnBrokers = {
  partitions: 1,
  replicas: 1,
  cleanup: 'delete',
  retentionMs: -1,
  minInsync: 1,
};

describe('the check of topics', () => {
  let now: number;
  let existing: Set<string>;
  let empty: Set<string>;
  let others: ReadonlyMap<string, string>;
  let compared: string[][];
  let failing: Error | undefined;
  const history: HistoryCheck = async (topics) => {
    compared.push(topics.map(({ name }) => name));
    if (failing !== undefined) throw failing;
    return { others, not: new Map() };
  };
  const checkOf = (...names: readonly string[]) =>
    createTopicCheck({
      admin: {
        describe: async () => ({ brokers: 1, topics: new Map([...existing].map((name) => [name, SOUND])) }),
        endsOf: async (names) =>
          new Map(
            names.map((name) => [
              name,
              { offsets: new Map([[0, empty.has(name) ? 0n : 1n]]), topicId: undefined },
            ]),
          ),
      },
      history,
      topics: names.map(topicNamed),
      clock: { monotonicMs: () => now },
    });
  const reasonOf = (ready: Promise<void>): Promise<unknown> =>
    ready.then(
      () => undefined,
      ({ reason }: { reason: string }) => reason,
    );
  beforeEach(() => {
    now = 0;
    existing = new Set(['a', 'b']);
    empty = new Set();
    others = new Map();
    compared = [];
    failing = undefined;
  });

  it('compares topics with the log once, while another one is missing and asked for again and again', async () => {
    const check = checkOf('a', 'b', 'missing');
    for (const ms of [0, 5_000, 10_000, 15_000]) {
      now = ms;
      expect(await reasonOf(check.ready('missing', signal))).to.equal('topic-missing');
    }
    expect(compared).to.deep.equal([['a', 'b']]);
    // That one is new then.
    existing.add('missing');
    now = 20_000;
    expect(await reasonOf(check.ready('missing', signal))).to.equal(undefined);
    expect(compared.slice(1)).to.deep.equal([['missing']]);
  });

  it('compares all of them again after five minutes, and whenever an operator asks', async () => {
    const check = checkOf('a', 'b');
    await check.look(signal);
    await check.plan(signal);
    now = 299_999;
    await check.look(signal);
    now = 300_000;
    await check.look(signal);
    expect(compared).to.deep.equal([
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('compares those of another history with each look, those that a send did not find, and all for a new owner', async () => {
    const check = checkOf('a', 'b');
    others = new Map([['b', 'holds what this log does not have']]);
    expect(await reasonOf(check.ready('b', signal))).to.equal('other-history');
    now = 5_000;
    others = new Map();
    expect(await reasonOf(check.ready('b', signal))).to.equal(undefined);
    check.forget('a');
    await check.ready('b', signal);
    check.forget();
    await check.ready('b', signal);
    expect(compared).to.deep.equal([['a', 'b'], ['b'], ['a'], ['a', 'b']]);
  });

  it('compares again with each look what could not be compared, and says so until it was; a sound topic goes on', async () => {
    const check = checkOf('a', 'b');
    failing = new Error('a leader is away');
    await check.look(signal);
    const why = () => check.last().map(({ notCompared }) => notCompared?.message);
    const said = 'the look at its newest records failed: a leader is away';
    expect(why()).to.deep.equal([said, said]);
    expect(await reasonOf(check.ready('a', signal))).to.equal(undefined);
    failing = undefined;
    now = 1;
    await check.look(signal);
    expect(why()).to.deep.equal([undefined, undefined]);
    now = 2;
    await check.look(signal);
    expect(compared).to.deep.equal([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('knows of one of another history although it could not be compared since', async () => {
    const check = checkOf('a', 'b');
    others = new Map([['b', 'holds what this log does not have']]);
    await check.look(signal);
    failing = new Error('a leader is away');
    now = 5_000;
    expect(await reasonOf(check.ready('b', signal))).to.equal('other-history');
    expect(compared.at(-1)).to.deep.equal(['b']);
  });

  it('knows after each look which topics hold nothing, and says when it has looked', async () => {
    const check = checkOf('a', 'b');
    const looked = check.looked();
    empty = new Set(['b']);
    await check.look(signal);
    expect(looked.aborted).to.equal(true);
    expect(['a', 'b'].map((name) => check.lastEnds(name)?.offsets.get(0))).to.deep.equal([1n, 0n]);
    empty.clear();
    await check.look(signal);
    expect(check.lastEnds('b')?.offsets.get(0)).to.equal(1n);
  });
});
