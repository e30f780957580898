import { expect } from 'chai';
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

  it('replay takes a bare position, one with its store, and a time, and names the three for anything else', async () => {
    const replay = (...argv: readonly string[]) =>
      stub.run(['kafka', 'replay', '--topic', TOPIC, '--name', 'x1', ...argv]);
    for (const place of [
      '0000000000004711',
      '42',
      'f3b1.0000000000004711',
      '2026-10-01T00:00:00Z',
      '2026-10-01t02:00:00.5+02:00',
    ]) {
      answers({ report: { topic: 't', events: 1, records: 1, skipped_events: 0, skipped: [] } });
      const { code, out } = await replay('--from', place, '--to', place);
      expect([code, out], place).to.deep.equal([0, 't: 1 record of 1 event\n']);
      expect(stub.asked[0]?.body).to.deep.equal({ name: 'x1', from: place, to: place });
    }
    answers({});
    for (const wrong of ['yesterday', '2026-10-01', '2026-10-01T00:00', '12:00', 'a b.1']) {
      const { code, err } = await replay('--from', wrong);
      expect(code, wrong).to.equal(2);
      expect(err)
        .to.include('0000000000004711')
        .and.include('<store id>.')
        .and.include('2026-10-01T00:00:00Z');
    }
    expect(stub.asked).to.deep.equal([]);
  });

  it('replay ends with a status that says whether to try again', async () => {
    const replay = () => stub.run(['kafka', 'replay', '--topic', TOPIC, '--name', 'x1']);
    for (const [code, status] of [
      ['KAFKA_UNREACHABLE', 4],
      ['REPLAY_TARGET_IN_USE', 3],
      ['KAFKA_UNAUTHORIZED', 1],
    ] as const) {
      answers({ error: 'it ended', code });
      expect((await replay()).code, code).to.equal(status);
    }
    stub.answers(() => ({ status: 400, body: { code: 'REPLAY_RUNNING', detail: 'another replay runs' } }));
    const running = await replay();
    expect([running.code, running.err.includes('another replay runs')]).to.deep.equal([3, true]);
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
