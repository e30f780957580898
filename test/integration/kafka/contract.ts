import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import {
  KafkaFault,
  type KafkaCluster,
  type KafkaProducer,
  type KafkaRecord,
} from '../../../src/app/publisher/ports.ts';
import { notRunHere } from '../../support/not-run-here.ts';

/** A record as a consumer reads it. */
export type ReadRecord = Pick<KafkaRecord, 'key' | 'value'> & {
  readonly headers: { readonly [name: string]: string };
  readonly partition: number;
};

export type KafkaUnderTest = {
  readonly cluster: KafkaCluster;
  /** All records of a topic, each partition in its order. */
  readonly read: (topic: string) => Promise<readonly ReadRecord[]>;
  readonly deleteTopic: (topic: string) => Promise<void>;
  /** Takes the records away that a topic holds now, as its retention does one day. */
  readonly expire: (topic: string) => Promise<void>;
  /** The same brokers with credentials that they refuse; absent where they ask for none. */
  readonly withWrongPassword?: KafkaCluster;
  /** A cluster that nobody answers for. */
  readonly unreachable: KafkaCluster;
  readonly dispose: () => Promise<void>;
};

/** What every adapter of the Kafka ports keeps. `factory` is called once; topics have names of their own. */
export const describeKafkaContract = (
  name: string,
  factory: () => Promise<KafkaUnderTest>,
  { timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {},
): void => {
  describe(`Kafka contract: ${name}`, function () {
    this.timeout(timeoutMs);
    let current: KafkaUnderTest | undefined;
    const underTest = (): KafkaUnderTest => {
      if (current === undefined) throw new Error('the brokers were not started');
      return current;
    };
    let topic = '';
    const stop = new AbortController();
    const open: KafkaProducer[] = [];
    const producer = async (): Promise<KafkaProducer> => {
      const made = await underTest().cluster.producers.open(stop.signal);
      open.push(made);
      return made;
    };
    before(async () => {
      current = await factory();
    });
    beforeEach(async () => {
      topic = `test.${randomBytes(6).toString('hex')}`;
      await underTest().cluster.admin.create([spec(topic)], stop.signal);
    });
    afterEach(async () => {
      for (const each of open.splice(0)) await each.close();
    });
    after(async () => current?.dispose());

    const record = (key: string, value: string | null, headers = {}): KafkaRecord => ({
      topic,
      key,
      value,
      headers,
    });

    const endsSoon = async (names: readonly string[], deadline = performance.now() + 10_000) => {
      for (;;) {
        try {
          return await underTest().cluster.admin.endsOf(names, stop.signal);
        } catch (error) {
          // A topic that has just been made may be led by nobody for a moment, and whoever asks is told so.
          const isEarly = error instanceof KafkaFault && error.reason === 'unreachable' && error.isAnswer;
          if (!isEarly || performance.now() > deadline) throw error;
        }
      }
    };

    it('stores key, value and headers of a record', async () => {
      const sender = await producer();
      await sender.send([
        record('k-1', '{"ä":1}', { 'content-type': 'application/json', osacrevision: '3' }),
      ]);
      const [read] = await underTest().read(topic);
      const { key, value, headers } = read ?? {};
      expect({ key, value, headers }).to.deep.equal({
        key: 'k-1',
        value: '{"ä":1}',
        headers: { 'content-type': 'application/json', osacrevision: '3' },
      });
    });

    it('stores a tombstone as null', async () => {
      await (await producer()).send([record('gone', null)]);
      expect((await underTest().read(topic)).map(({ key, value }) => [key, value])).to.deep.equal([
        ['gone', null],
      ]);
    });

    it('keeps the order of each key over batches and producers, on one partition', async () => {
      const keys = Array.from({ length: 10 }, (_, i) => `key-${i}`);
      for (let round = 0; round < 3; round += 1) {
        const sender = await producer();
        for (let batch = 0; batch < 3; batch += 1)
          await sender.send(keys.map((key) => record(key, String(round * 3 + batch))));
      }
      const read = await underTest().read(topic);
      expect(read).to.have.length(90);
      for (const key of keys) {
        const own = read.filter((each) => each.key === key);
        expect(own.map(({ value }) => Number(value))).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8]);
        expect(new Set(own.map(({ partition }) => partition)).size).to.equal(1);
      }
      expect(new Set(read.map(({ partition }) => partition)).size).to.be.greaterThan(1);
    });

    it('takes records of several topics in one send', async () => {
      const other = `${topic}.other`;
      await underTest().cluster.admin.create([spec(other)], stop.signal);
      await (await producer()).send([record('a', '1'), { ...record('b', '2'), topic: other }]);
      expect((await underTest().read(topic)).map(({ value }) => value)).to.deep.equal(['1']);
      expect((await underTest().read(other)).map(({ value }) => value)).to.deep.equal(['2']);
    });

    it('refuses records of a topic that does not exist', async () => {
      const sender = await producer();
      const missing = { ...record('a', '1'), topic: `${topic}.missing` };
      expect((await faultOf(sender.send([missing]))).reason).to.equal('topic-missing');
    });

    it('refuses a record that is larger than the brokers take', async () => {
      const sender = await producer();
      const fault = await faultOf(sender.send([record('a', 'x'.repeat(2 * 1024 * 1024))]));
      expect(fault.reason).to.equal('too-large');
      expect(await underTest().read(topic)).to.deep.equal([]);
    });

    it('sends one batch at a time', async () => {
      const sender = await producer();
      const first = sender.send([record('a', '1')]);
      const second = await sender.send([record('a', '2')]).catch((error: unknown) => error);
      expect(second).to.be.instanceOf(TypeError);
      await first;
      expect((await underTest().read(topic)).map(({ value }) => value)).to.deep.equal(['1']);
    });

    it('sends nothing after close, which ends what is under way', async () => {
      const sender = await producer();
      const sending = sender.send([record('a', '1')]).then(
        () => 'stored' as const,
        (error: unknown) => error,
      );
      await sender.close();
      const ended = await sending;
      if (ended !== 'stored') expect((ended as KafkaFault).reason).to.equal('closed');
      expect((await faultOf(sender.send([record('a', '2')]))).reason).to.equal('closed');
      await sender.close();
      expect((await underTest().read(topic)).map(({ value }) => value)).to.not.include('2');
    });

    it('sends nothing once it may not write any more', async () => {
      let mayWrite = true;
      const sender = await underTest().cluster.producers.open(stop.signal, () => mayWrite);
      open.push(sender);
      await sender.send([record('a', '1')]);
      mayWrite = false;
      expect((await faultOf(sender.send([record('a', '2')]))).reason).to.equal('closed');
      await sender.close();
      expect((await underTest().read(topic)).map(({ value }) => value)).to.deep.equal(['1']);
    });

    it('opens nothing once it is told to stop', async () => {
      const fault = await faultOf(underTest().cluster.producers.open(AbortSignal.abort()));
      expect(fault.reason).to.equal('closed');
    });

    it('says that nobody answers', async () => {
      const { unreachable } = underTest();
      expect((await faultOf(unreachable.producers.open(stop.signal))).reason).to.equal('unreachable');
      expect((await faultOf(unreachable.admin.describe([topic], stop.signal))).reason).to.equal(
        'unreachable',
      );
    });

    it('gives up at once when it is told to stop while nobody answers', async () => {
      const giveUp = new AbortController();
      const opening = faultOf(underTest().unreachable.producers.open(giveUp.signal));
      giveUp.abort();
      expect((await opening).reason).to.be.oneOf(['closed', 'unreachable']);
    });

    it('says that credentials are refused', async function () {
      const { withWrongPassword } = underTest();
      if (withWrongPassword === undefined)
        return notRunHere(this, 'kafka-passwords', 'brokers without authentication refuse nobody');
      expect((await faultOf(withWrongPassword.producers.open(stop.signal))).reason).to.equal('unauthorized');
      expect((await faultOf(withWrongPassword.admin.describe([topic], stop.signal))).reason).to.equal(
        'unauthorized',
      );
    });

    it('describes the topics that exist', async () => {
      const { admin } = underTest().cluster;
      const compacted = {
        ...spec(`${topic}.state`),
        cleanup: 'compact' as const,
        partitions: 1,
        retentionMs: -1,
      };
      await admin.create([compacted], stop.signal);
      const names = [topic, compacted.name, `${topic}.missing`];
      const { brokers, topics } = await admin.describe(names, stop.signal);
      expect(brokers).to.be.greaterThan(0);
      expect([...topics.keys()].toSorted()).to.deep.equal([topic, compacted.name]);
      const { replicas, minInsync, ...found } = topics.get(topic) ?? { replicas: 0, minInsync: 0 };
      expect(replicas).to.be.greaterThan(0);
      expect(minInsync).to.be.within(1, replicas);
      expect(found).to.deep.equal({ partitions: 3, cleanup: 'delete', retentionMs: 86_400_000 });
      expect(topics.get(compacted.name)).to.include({ partitions: 1, cleanup: 'compact' });
    });

    it('says where each partition of a topic ends', async () => {
      const { admin } = underTest().cluster;
      const endsOf = async (...names: readonly string[]) =>
        [...(await endsSoon(names))].map(([name, { offsets }]) => [name, new Map(offsets)]);
      const none = new Map([0, 1, 2].map((partition) => [partition, 0n]));
      expect(await endsOf(topic)).to.deep.equal([[topic, none]]);
      const [stored] = await (await producer()).send([record('a', '1'), record('a', '2')]);
      expect(stored?.offset).to.equal('0');
      const { partition = -1 } = stored ?? {};
      const written = new Map(none).set(partition, 2n);
      const other = `${topic}-unused`;
      await admin.create(
        [{ name: other, partitions: 2, cleanup: 'delete', retentionMs: 86_400_000 }],
        stop.signal,
      );
      expect(await endsOf(topic, other)).to.deep.equal([
        [topic, written],
        [
          other,
          new Map([
            [0, 0n],
            [1, 0n],
          ]),
        ],
      ]);
      const missing = admin.endsOf([`${topic}.missing`], stop.signal).catch((error: unknown) => error);
      expect(await missing).to.include({ reason: 'topic-missing' });
    });

    it('says which topic it is: another one of the same name has another id', async () => {
      const { cluster, deleteTopic } = underTest();
      const { admin } = cluster;
      const idOf = async (name: string): Promise<string | undefined> =>
        (await endsSoon([name, other])).get(name)?.topicId;
      const other = `${topic}-other`;
      await admin.create([spec(other)], stop.signal);
      await (await producer()).send([record('a', '1')]);
      const first = await idOf(topic);
      expect(first).to.match(/^\S+$/);
      expect(await idOf(other)).to.not.equal(first);
      await (await producer()).send([record('a', '2')]);
      expect(await idOf(topic)).to.equal(first);
      await deleteTopic(topic);
      await admin.create([spec(topic)], stop.signal);
      await (await producer()).send([record('a', '1'), record('a', '2'), record('a', '3')]);
      expect(await idOf(topic))
        .to.match(/^\S+$/)
        .and.not.equal(first);
    });

    it('tells the newest record of each partition that holds one', async () => {
      const { admin } = underTest().cluster;
      const other = `${topic}.other`;
      await admin.create([spec(other)], stop.signal);
      const before = await admin.lastRecords([topic, other], stop.signal);
      expect([...before]).to.deep.equal([
        [topic, []],
        [other, []],
      ]);
      const sender = await producer();
      const keys = Array.from({ length: 10 }, (_, i) => `key-${i}`);
      for (const round of [1, 2]) await sender.send(keys.map((key) => record(key, `${key} ${round}`)));
      await sender.send([{ ...record('gone', null, { osacrevision: '7' }), topic: other }]);
      const newest = await admin.lastRecords([topic, other], stop.signal);
      const partitions = Map.groupBy(await underTest().read(topic), ({ partition }) => partition);
      const expected = [...partitions].map(([partition, read]) => `${partition} ${read.at(-1)?.value}`);
      const told = newest.get(topic)?.map(({ partition, value }) => `${partition} ${value}`) ?? [];
      expect(told.toSorted()).to.deep.equal(expected.toSorted());
      expect(newest.get(other)?.map(({ value, headers }) => ({ value, headers }))).to.deep.equal([
        { value: null, headers: { osacrevision: '7' } },
      ]);
    });

    it('tells nothing of a partition whose records have all expired, and the newest records of the others', async () => {
      const { cluster, expire } = underTest();
      const { admin } = cluster;
      const other = `${topic}.other`;
      await admin.create([spec(other)], stop.signal);
      const sender = await producer();
      const keys = Array.from({ length: 10 }, (_, i) => `key-${i}`);
      await sender.send(keys.map((key) => record(key, 'old')));
      await sender.send([{ ...record('kept', 'kept'), topic: other }]);
      await expire(topic);
      const told = async (): Promise<unknown> => {
        const newest = await admin.lastRecords([topic, other], stop.signal);
        return [topic, other].map((name) => newest.get(name)?.map(({ value }) => value));
      };
      expect(await told()).to.deep.equal([[], ['kept']]);
      // It is not one that nothing was ever written to.
      const ends = (await admin.endsOf([topic], stop.signal)).get(topic)?.offsets.values() ?? [];
      expect([...ends].reduce((sum, end) => sum + end, 0n)).to.equal(10n);
      await sender.send([record('key-1', 'new')]);
      expect(await told()).to.deep.equal([['new'], ['kept']]);
    });

    it('creates only what is missing, and says what it created', async () => {
      const { admin } = underTest().cluster;
      const second = spec(`${topic}.second`);
      expect(await admin.create([spec(topic), second], stop.signal)).to.deep.equal([second.name]);
      expect(await admin.create([spec(topic), second], stop.signal)).to.deep.equal([]);
    });
  });
};

const spec = (name: string) => ({ name, cleanup: 'delete' as const, partitions: 3, retentionMs: 86_400_000 });

/** The fault that a call ends with; anything else fails the test. */
const faultOf = async (call: Promise<unknown>): Promise<KafkaFault> => {
  const outcome = await call.then(
    () => new Error('it succeeded'),
    (error: unknown) => error,
  );
  if (!(outcome instanceof KafkaFault)) throw outcome;
  return outcome;
};
