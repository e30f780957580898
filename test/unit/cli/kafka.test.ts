import { expect } from 'chai';
import { startCliStub, type CliStub } from '../../support/cli-stub.ts';

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
    ...(exists ? { found: { partitions: 3, replicas: 2 } } : {}),
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
    expect(out).to.match(/osac\.state\.cluster\.v1 +compact +3 +for ever +3 partitions, 2 replicas/);
    expect(out).to.match(/b +compact +3 +for ever +missing/);
    expect(err).to.include('b does not exist');
  });

  it('plan ends with 0 when all is as it should be', async () => {
    answers({ items: [planned(TOPIC, true)] });
    expect((await stub.run(['kafka', 'plan'])).code).to.equal(0);
  });

  it('create-topics names what was made', async () => {
    answers({ created: [TOPIC] });
    const { code, out } = await stub.run(['kafka', 'create-topics']);
    expect([code, out]).to.deep.equal([0, `${TOPIC} created\n`]);
    expect(stub.asked[0]).to.include({ verb: 'POST', path: `${KAFKA}/topics` });
  });

  it('status shows each topic', async () => {
    answers({ configured: true, publishing: true, topics: [topicOf()], problems: [] });
    const { code, out } = await stub.run(['kafka', 'status']);
    expect(code).to.equal(0);
    expect(out).to.match(/osac\.state\.cluster\.v1 +live +12 +0/);
  });

  it('status ends with 1 for a topic that is held up, a parked stream and a wrong topic', async () => {
    const error = { reason: 'unreachable', message: 'no broker answers', at: '2026-11-21T12:00:00.000Z' };
    const parked = [{ stream: 'cluster-1', revision: 4, position: 'p', error: 'too large', at: 'then' }];
    const wrong = { configured: true, publishing: true, problems: [] };
    answers({ ...wrong, topics: [topicOf({ state: 'waiting', lag_seconds: 75, last_error: error })] });
    const held = await stub.run(['kafka', 'status']);
    expect(held.code).to.equal(1);
    expect(held.out).to.match(/waiting +12 +0 +75 s +- +no broker answers/);
    answers({ ...wrong, topics: [topicOf({ parked })] });
    const left = await stub.run(['kafka', 'status']);
    expect([left.code, left.err]).to.deep.equal([
      1,
      `${TOPIC}: cluster-1 is parked at revision 4: too large\n`,
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
    expect([code, out]).to.deep.equal([3, '']);
    expect(err).to.include('ask ledger-2/4711, which publishes');
    expect((await stub.run(['kafka', 'status', '--json'])).code).to.equal(3);
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

  it('replay asks for a range, shows progress and says where it goes', async () => {
    answers({
      report: { topic: `${TOPIC}.replay.x1`, events: 5, records: 4, skipped_events: 0, skipped: [] },
    });
    const { code, out } = await stub.run([
      'kafka',
      'replay',
      '--topic',
      TOPIC,
      '--name',
      'x1',
      '--from',
      's.1',
    ]);
    expect([code, out]).to.deep.equal([0, `${TOPIC}.replay.x1: 4 records of 5 events\n`]);
    expect(stub.asked[0]?.path).to.equal(`${KAFKA}/topics/${TOPIC}/replays`);
    expect(stub.asked[0]?.body).to.deep.equal({ name: 'x1', from: 's.1' });
  });

  it('replay that breaks off ends with its error', async () => {
    answers({ error: 'the brokers do not answer' });
    const { code, err } = await stub.run(['kafka', 'replay', '--topic', TOPIC, '--name', 'x1']);
    expect(code).to.not.equal(0);
    expect(err).to.include('the brokers do not answer');
  });

  it('replay refuses a name that no topic can have', async () => {
    answers({});
    const { code, err } = await stub.run(['kafka', 'replay', '--topic', TOPIC, '--name', 'No Good']);
    expect(code).to.equal(2);
    expect(err).to.include('lower-case letters');
    expect(stub.asked).to.deep.equal([]);
  });
});
