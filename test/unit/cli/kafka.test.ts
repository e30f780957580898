import { expect } from 'chai';
import { whileAsked } from '../../../src/cli/commands/kafka-plan.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const KAFKA = '/api/ledger/v1/kafka';
const TOPIC = 'osac.state.cluster.v1';

describe('ledgerctl kafka', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  // What a command of this process leaves would count for the next.
  afterEach(() => {
    process.exitCode = undefined;
  });
  const answers = (body: unknown): void => {
    stub.asked.length = 0;
    stub.answers(() => ({ body }));
  };
  const planned = (topic: string, exists: boolean, problems: readonly object[] = []) => ({
    topic,
    kind: 'state',
    cleanup: 'compact',
    partitions: 3,
    retention_ms: -1,
    exists,
    ...(exists ? { found: { partitions: 3, replicas: 1 } } : {}),
    problems,
  });
  const topicOf = (more: object = {}) => ({
    topic: TOPIC,
    state: 'live',
    waiting_events: 0,
    lag_seconds: 0,
    sent_records: 12,
    parked: [],
    ...more,
  });

  it('plan says what is missing and ends with 1 for it', async () => {
    answers({
      items: [planned(TOPIC, true), planned('b', false, [{ code: 'missing', message: 'does not exist' }])],
    });
    const { code, out, err } = await stub.run(['kafka', 'plan']);
    expect(code).to.equal(1);
    expect(out).to.match(/osac\.state\.cluster\.v1 +compact +3 +for ever +3 partitions, 1 replica$/m);
    expect(out).to.match(/b +compact +3 +for ever +missing/);
    expect(err).to.equal('1 topic does not exist: `ledgerctl kafka create-topics` makes what is missing\n');
  });

  it('plan and status end with 1 without brokers, and say so', async () => {
    const detail = 'no brokers are set: LEDGER_KAFKA_BROKERS is empty';
    stub.answers(() => ({ status: 400, body: { code: 'KAFKA_NOT_CONFIGURED', detail } }));
    const plan = await stub.run(['kafka', 'plan']);
    expect([plan.code, plan.out]).to.deep.equal([1, '']);
    expect(plan.err).to.include(detail);
    for (const argv of [['status'], ['retry', '--all']]) {
      answers({ configured: false, publishing: false, topics: [], problems: [] });
      const told = await stub.run(['kafka', ...argv]);
      expect([told.code, told.out], argv[0]).to.deep.equal([1, '']);
      expect(told.err, argv[0]).to.include(detail);
    }
    for (const command of ['plan', 'status', 'create-topics', 'retry'])
      expect((await stub.run(['kafka', command, '--help'])).out, command).to.match(
        /1 {2}.*no brokers\s+are\s+set/,
      );
  });

  it('plan and create-topics bound how long the brokers may take, and ask once', async () => {
    const detail = 'the brokers do not answer: b1:9092: connect ECONNREFUSED; b2:9092: no answer in time';
    for (const [argv, seconds] of [
      [['plan'], '10'],
      [['plan', '--wait', '3s'], '3'],
      [['create-topics', '--wait', '2m'], '120'],
    ] as const) {
      stub.asked.length = 0;
      stub.answers(() => ({ status: 503, body: { code: 'KAFKA_UNREACHABLE', detail } }));
      const { code, err } = await stub.run(['kafka', ...argv]);
      expect([code, stub.asked.length]).to.deep.equal([4, 1]);
      expect(err).to.include(detail);
      expect(stub.asked[0]?.query.get('timeout_seconds')).to.equal(seconds);
    }
    for (const wait of ['0', '0s', '121s', 'long'])
      expect((await stub.run(['kafka', 'plan', '--wait', wait])).code, wait).to.equal(2);
  });

  it('says that the brokers are asked while they do not answer', async () => {
    let told = '';
    const answer = Promise.withResolvers<number>();
    const io = {
      err: (text: string) => {
        told += text;
        answer.resolve(7);
      },
    };
    expect(await whileAsked(answer.promise, 10, io, 1)).to.equal(7);
    expect(told).to.equal('the brokers are asked: 0 s of at most 10 s\n');
  });

  it('status tells of each missing topic once, and why topics that were published to are missing', async () => {
    const missing = (topic: string) => ({ topic, code: 'missing', message: 'does not exist' });
    const trying = { records: 3, since: '2026-11-21T12:00:00.000Z', attempt: 2, failed: 2, problem: 'none' };
    const waits = topicOf({ topic: 'a', state: 'waiting', published: true, trying });
    const problems = ['a', 'b', 'heartbeat'].map(missing);
    answers({ configured: true, publishing: true, topics: [waits, topicOf({ topic: 'b' })], problems });
    const { code, out, err } = await stub.run(['kafka', 'status']);
    expect(code).to.equal(1);
    expect(out)
      .to.match(/^a +missing .* 3 records wait$/m)
      .and.match(/^b +missing .* -$/m);
    expect(err).to.equal(
      '3 topics do not exist on the brokers (also heartbeat): `ledgerctl kafka create-topics` makes what is missing\n' +
        '1 of them had been published to: these brokers are other ones or were emptied, or somebody deleted the topics. Nothing is lost: once made, they are filled from the beginning of the log\n',
    );
  });

  it('status says that a topic is filled again, and which columns there are', async () => {
    const filling = topicOf({ state: 'catching-up', published: true, filling_since: '2026-11-21T12:00:00Z' });
    answers({ configured: true, publishing: true, topics: [filling], problems: [] });
    const { code, out, err } = await stub.run(['kafka', 'status']);
    expect(code).to.equal(0);
    expect(out).to.match(/catching-up .* filled from the beginning since 2026-11-21T12:00:00Z$/m);
    expect(err).to.include('1 topic was found empty although published to');
    const header = out.split('\n').find((line) => line.startsWith('TOPIC')) ?? '';
    const help = (await stub.run(['kafka', 'status', '--help'])).out;
    for (const column of header.split(/ {2,}/).slice(1))
      expect(help, column).to.match(new RegExp(`^ {2}${column} {2,}\\S`, 'm'));
  });

  it('plan ends with 0 when all is as it should be', async () => {
    answers({ items: [planned(TOPIC, true)] });
    expect((await stub.run(['kafka', 'plan'])).code).to.equal(0);
  });

  it('plan and status are JSON for programs, with the same exit status', async () => {
    const items = [planned('b', false, [{ code: 'missing', message: 'does not exist' }])];
    for (const form of [['-o', 'json'], ['--json']]) {
      answers({ items });
      const plan = await stub.run(['kafka', 'plan', ...form]);
      expect([plan.code, plan.err, JSON.parse(plan.out)]).to.deep.equal([1, '', items]);
      const status = { configured: true, publishing: true, topics: [topicOf()], problems: [] };
      answers(status);
      const told = await stub.run(['kafka', 'status', ...form]);
      expect([told.code, told.err, JSON.parse(told.out)]).to.deep.equal([0, '', status]);
      answers({ ...status, topics: [topicOf({ state: 'waiting' })] });
      expect((await stub.run(['kafka', 'status', ...form])).code).to.equal(1);
    }
  });

  it('commands end with 4 when the brokers do not answer, and say in their help what a status means', async () => {
    for (const command of ['plan', 'create-topics']) {
      stub.answers(() => ({ status: 503, body: { code: 'KAFKA_UNREACHABLE', detail: 'no broker answers' } }));
      expect((await stub.run(['kafka', command, '--help'])).out).to.match(
        /Exit status:[^]*4 {2}the service or/,
      );
    }
    for (const command of ['status', 'retry', 'replay'])
      expect((await stub.run(['kafka', command, '--help'])).out).to.include('Exit status:');
  });

  it('create-topics names what was made', async () => {
    answers({ created: [TOPIC] });
    const { code, out } = await stub.run(['kafka', 'create-topics']);
    expect([code, out]).to.deep.equal([0, `${TOPIC} created\n`]);
    expect(stub.asked[0]).to.include({ verb: 'POST', path: `${KAFKA}/topics` });
  });

  it('status shows each topic', async () => {
    const confirmed = { confirmed_at: '2026-11-21T12:00:01.000Z', behind_events: 3 };
    const brokers = { last_answer_at: '2026-11-21T12:00:02.000Z' };
    answers({ configured: true, publishing: true, brokers, topics: [topicOf(confirmed)], problems: [] });
    const { code, out } = await stub.run(['kafka', 'status']);
    expect(code).to.equal(0);
    expect(out).to.match(/^brokers: last answer 2026-11-21T12:00:02\.000Z$/m);
    expect(out).to.match(/osac\.state\.cluster\.v1 +live +12 +2026-11-21T12:00:01\.000Z +- +- +- +- +-$/m);
    expect(out).to.not.match(/^waiting:/m);
  });

  it('plan and status name the topics that were not compared with the log, and are well all the same', async () => {
    const not = { reason: 'unauthorized', message: 'we have no right to read it (`Read`)' };
    const line = `not compared with the log: ${TOPIC}, b: ${not.message}\n`;
    answers({ items: [TOPIC, 'b'].map((topic) => ({ ...planned(topic, true), not_compared: not })) });
    const plan = await stub.run(['kafka', 'plan']);
    expect([plan.code, plan.err]).to.deep.equal([0, line]);
    const topics = { topics: [topicOf()], not_compared: [TOPIC, 'b'].map((topic) => ({ topic, ...not })) };
    answers({ configured: true, publishing: true, problems: [], ...topics });
    const status = await stub.run(['kafka', 'status']);
    expect([status.code, status.err]).to.deep.equal([0, line]);
  });

  it('plan and status name topics of another history together, and say once what is to be found out before one is deleted', async () => {
    const foreign = 'holds records of another log, fulfillment-ledger/f3b1: nothing is sent to it';
    const lost = 'holds cluster-1@4, which this log does not have: nothing is sent to it';
    const problems = [
      { topic: TOPIC, code: 'history', message: foreign },
      { topic: 'b', code: 'history', message: foreign },
      { topic: 'c', code: 'history', message: lost },
    ];
    const told = (err: string): void => {
      const [first, second, hint = '', ...rest] = err.trimEnd().split('\n');
      expect([first, second, rest]).to.deep.equal([`${TOPIC}, b ${foreign}`, `c ${lost}`, []]);
      expect(hint).to.match(/^hint: .*who else publishes there.*before.*delete.*LedgerKafkaTopicsWrong/);
    };
    answers({
      items: problems.map(({ topic, ...problem }) => planned(topic, true, [problem])),
    });
    const plan = await stub.run(['kafka', 'plan']);
    expect(plan.code).to.equal(1);
    for (const topic of [TOPIC, 'b', 'c'])
      expect(plan.out).to.match(new RegExp(`^${topic} .* other history$`, 'm'));
    told(plan.err);
    const topics = problems.map(({ topic, message }) => {
      const error = { reason: 'other-history', message: `topic ${topic} ${message}`, at: 'then' };
      const trying = { records: 2, since: 'then', attempt: 5, failed: 5, problem: error.message };
      return topicOf({ topic, state: 'failed', last_error: error, ...(topic === 'c' ? {} : { trying }) });
    });
    answers({ configured: true, publishing: true, topics, problems });
    const status = await stub.run(['kafka', 'status']);
    expect(status.code).to.equal(1);
    for (const topic of [TOPIC, 'b'])
      expect(status.out).to.match(new RegExp(`^${topic} +failed .* - +other history: 2 records wait$`, 'm'));
    expect(status.out).to.match(/^c +failed .* - +other history$/m);
    told(status.err);
  });

  it('status says what is tried, since when records wait, and that the brokers are in trouble', async () => {
    const topic = topicOf({
      state: 'waiting',
      behind_events: 41,
      waiting_events: 7,
      waiting_records: 9,
      waiting_since: '2026-11-21T12:00:00.000Z',
      lag_seconds: 12,
      trying: {
        records: 1,
        since: '2026-11-21T12:00:00.000Z',
        attempt: 2,
        failed: 57,
        problem: 'connect ECONNREFUSED',
      },
    });
    const trouble = { message: 'connect ECONNREFUSED', since: '2026-11-21T12:00:05.000Z' };
    const brokers = { last_answer_at: '2026-11-21T11:59:59.000Z', trouble };
    answers({ configured: true, publishing: true, brokers, topics: [topic], problems: [] });
    const { code, out } = await stub.run(['kafka', 'status']);
    expect(code).to.equal(1);
    expect(out).to.include(
      'brokers: in trouble since 2026-11-21T12:00:05.000Z: connect ECONNREFUSED; last answer 2026-11-21T11:59:59.000Z',
    );
    expect(out).to.match(/^waiting: 9 records of 7 events, in 1 topic$/m);
    expect(out).to.match(
      /waiting +12 +- +41 +9 +2026-11-21T12:00:00\.000Z \(12 s\) +- +sending 1 record since 2026-11-21T12:00:00\.000Z, 57 failed attempts: connect/,
    );
    answers({ configured: true, publishing: true, brokers, topics: [topicOf()], problems: [] });
    expect((await stub.run(['kafka', 'status'])).code, 'brokers in trouble').to.equal(1);
    const more = topicOf({ topic: 'b', state: 'catching-up', waiting_events: 1, waiting_records: 1 });
    const topics = [topic, { ...more, more_waiting: true }, topicOf({ topic: 'c' })];
    answers({ configured: true, publishing: true, brokers, topics, problems: [] });
    const both = (await stub.run(['kafka', 'status'])).out;
    expect(both).to.match(/^waiting: at least 10 records of 8 events, in 2 topics$/m);
    expect(both).to.match(/^b +catching-up +12 +- +- +1\+ +- /m);
  });

  it('status ends with 1 for a topic that is held up, a parked stream and a wrong topic', async () => {
    const error = { reason: 'unreachable', message: 'no broker answers', at: '2026-11-21T12:00:00.000Z' };
    const parked = [{ stream: 'cluster-1', revision: 4, position: 'p', error: 'too large', at: 'then' }];
    const wrong = { configured: true, publishing: true, problems: [] };
    answers({ ...wrong, topics: [topicOf({ state: 'waiting', lag_seconds: 75, last_error: error })] });
    const held = await stub.run(['kafka', 'status']);
    expect(held.code).to.equal(1);
    expect(held.out).to.match(/waiting +12 .* no broker answers/);
    answers({ ...wrong, topics: [topicOf({ parked })] });
    const left = await stub.run(['kafka', 'status']);
    expect([left.code, left.err]).to.deep.equal([
      1,
      `${TOPIC}: cluster-1 is parked at revision 4 since then: too large\nhint: \`ledgerctl kafka retry --all\` publishes them, once what is wrong is put right\n`,
    ]);
    answers({
      ...wrong,
      topics: [topicOf()],
      problems: [{ topic: TOPIC, code: 'missing', message: 'is missing' }],
    });
    expect((await stub.run(['kafka', 'status'])).code).to.equal(1);
  });

  it('status of an instance that stands by names the one to ask, and is neither well nor wrong', async () => {
    const topics = [{ topic: TOPIC, state: 'standby' }];
    answers({ configured: true, publishing: false, owner: 'ledger-2/4711', topics, problems: [] });
    const { code, out, err } = await stub.run(['kafka', 'status']);
    expect([code, out]).to.deep.equal([4, '']);
    expect(err).to.include('ask ledger-2/4711, which publishes');
    expect((await stub.run(['kafka', 'status', '--json'])).code).to.equal(4);
    answers({ configured: true, publishing: false, topics, problems: [] });
    expect((await stub.run(['kafka', 'status'])).err).to.include('nobody else holds the lease');
  });

  it('retry says what came of it', async () => {
    answers({ stream: 'cluster-1', published: true, records: 3 });
    const done = await stub.run(['kafka', 'retry', TOPIC, 'cluster-1']);
    expect([done.code, done.out]).to.deep.equal([0, 'cluster-1: 3 records published\n']);
    expect(stub.asked[0]?.path).to.equal(`${KAFKA}/topics/${TOPIC}/parked/cluster-1/retry`);
    answers({ stream: 'cluster-1', published: false, revision: 4, error: 'too large' });
    const again = await stub.run(['kafka', 'retry', TOPIC, 'cluster-1']);
    expect([again.code, again.out]).to.deep.equal([
      1,
      'cluster-1 is parked still, at revision 4: too large\n',
    ]);
  });

  it('retry --all takes all that is parked, retry <topic> what that one has', async () => {
    const parked = (...streams: string[]) => ({
      parked: streams.map((stream) => ({ stream, revision: 1, error: 'e', at: 'then' })),
    });
    const topics = [topicOf(parked('cluster-1', 'cluster-2')), { ...topicOf(parked('a/b')), topic: 'other' }];
    const asked = async (...argv: readonly string[]) => {
      stub.asked.length = 0;
      stub.answers(({ verb, path }) => {
        if (verb === 'GET') return { body: { configured: true, publishing: true, topics, problems: [] } };
        const published = !path.includes('cluster-2');
        return { body: published ? { published, records: 1 } : { published, revision: 1, error: 'e' } };
      });
      const { code, out, err } = await stub.run(['kafka', 'retry', ...argv]);
      return { code, out, err, paths: stub.asked.slice(1).map(({ path }) => path) };
    };
    const retried = (topic: string, stream: string) => `${KAFKA}/topics/${topic}/parked/${stream}/retry`;
    const all = await asked('--all');
    expect(all.paths).to.deep.equal([
      retried(TOPIC, 'cluster-1'),
      retried(TOPIC, 'cluster-2'),
      retried('other', 'a%2Fb'),
    ]);
    expect([all.code, all.out]).to.deep.equal([
      1,
      `${TOPIC}: cluster-1: 1 record published\n${TOPIC}: cluster-2 is parked still, at revision 1: e\nother: a/b: 1 record published\n`,
    ]);
    const one = await asked('other');
    expect([one.code, one.paths]).to.deep.equal([0, [retried('other', 'a%2Fb')]]);
    expect((await asked('nowhere')).code).to.equal(3);
    expect((await asked()).code).to.equal(2);
    expect((await asked('other', '--all')).code).to.equal(2);
    stub.answers(() => ({ body: { configured: true, publishing: true, topics: [topicOf()], problems: [] } }));
    const none = await stub.run(['kafka', 'retry', '--all']);
    expect([none.code, none.err]).to.deep.equal([0, 'nothing is parked\n']);
    expect((await stub.run(['kafka', 'retry', TOPIC])).code).to.equal(3);
    answers({ configured: true, publishing: false, owner: 'ledger-2', topics: [topicOf()], problems: [] });
    const standby = await stub.run(['kafka', 'retry', '--all']);
    expect([standby.code, standby.err]).to.deep.equal([
      4,
      'ledgerctl: this instance stands by and does not know how far the topics are: ask ledger-2, which publishes\n',
    ]);
  });
});
