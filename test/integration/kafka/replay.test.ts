import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createMemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { Position } from '../../../src/app/log/event-store.ts';
import { KafkaFault, ReplayTargetInUse } from '../../../src/app/publisher/ports.ts';
import { replay, type ReplayReport, type ReplayRequest } from '../../../src/app/publisher/replay.ts';
import type { RecordMapper } from '../../../src/app/streams/stream.ts';
import { recordOf, specOf, TOPIC, valuesOf } from './publisher-rig.ts';

const TARGET = `${TOPIC}.replay.again`;

describe('a replay', () => {
  const ids = systemIds();
  const signal = new AbortController().signal;
  const setUp = async (streams: readonly string[]) => {
    const store = createMemoryEventStore();
    const kafka = createMemoryKafka();
    const positions: Position[] = [];
    for (const stream of streams) {
      const event = { id: ids.uuidv7(), type: 'ThingHappened', data: '{}', metadata: '{}' };
      positions.push((await store.append(stream, await store.currentRevision(stream), [event])).position);
    }
    const run = async (request: Partial<ReplayRequest> = {}, map?: RecordMapper): Promise<ReplayReport> => {
      const options = {
        stream: { topic: specOf(TOPIC), map: map ?? ((event) => [recordOf(TOPIC, event)]) },
        cluster: kafka,
        store,
        clock: systemClock(),
        timers: systemTimers(),
      };
      for await (const step of replay(options, { topic: TOPIC, name: 'again', ...request }, signal))
        if ('report' in step) return step.report;
      throw new Error('it ended without a report');
    };
    return { store, kafka, positions, run };
  };
  const STREAMS = ['thing-a', 'other-x', 'thing-b', 'thing-a', 'other-x', 'thing-a'];

  it('makes its topic and sends all of the log, as it is at the beginning', async () => {
    const { kafka, run, positions } = await setUp(STREAMS);
    const report = await run();
    expect(report).to.deep.equal({
      target: TARGET,
      position: positions.at(-1),
      events: 4,
      records: 4,
      skipped: [],
      skippedEvents: 0,
    });
    expect(valuesOf(kafka, TARGET)).to.have.members(['thing-a@0', 'thing-b@0', 'thing-a@1', 'thing-a@2']);
    expect(kafka.connections().open).to.equal(0);
  });

  it('sends only what lies between two positions', async () => {
    const { kafka, run, positions } = await setUp(STREAMS);
    const [first = '', , third = '', fourth = ''] = positions;
    expect(await run({ after: first, until: fourth })).to.include({ events: 2, position: fourth });
    expect(valuesOf(kafka, TARGET)).to.have.members(['thing-b@0', 'thing-a@1']);
    expect(await run({ after: fourth, until: third })).to.include({ events: 0 });
  });

  it('ends in front of what follows a position at which there is nothing of the topic', async () => {
    const { kafka, run, positions } = await setUp(STREAMS);
    const [first = '', other = ''] = positions;
    expect(await run({ until: other })).to.include({ events: 1, position: other });
    expect(valuesOf(kafka, TARGET)).to.deep.equal(['thing-a@0']);
    expect(await run({ after: first, until: other })).to.include({ events: 0, records: 0 });
    expect(valuesOf(kafka, TARGET)).to.deep.equal(['thing-a@0']);
  });

  it('ends where nothing of the topic follows any more', async () => {
    const { run, positions } = await setUp(['thing-a', 'other-x', 'other-x']);
    expect(await run()).to.include({ events: 1, position: positions.at(-1) });
    const empty = await setUp([]);
    expect(await empty.run()).to.include({ events: 0, position: undefined });
  });

  it('leaves out what cannot become a record, and says what', async () => {
    const { kafka, run } = await setUp(STREAMS);
    const report = await run({}, (event) => {
      if (event.stream === 'thing-b') throw new Error('not this one');
      return [recordOf(TOPIC, event)];
    });
    expect(report).to.deep.include({
      events: 4,
      records: 3,
      skippedEvents: 1,
      skipped: [{ stream: 'thing-b', revision: 0, error: 'not this one' }],
    });
    expect(valuesOf(kafka, TARGET)).to.deep.equal(['thing-a@0', 'thing-a@1', 'thing-a@2']);
  });

  it('adds nothing to a topic that holds records, unless it goes on behind a position', async () => {
    const { kafka, run, positions } = await setUp(STREAMS);
    const [first = ''] = positions;
    await run({ until: first });
    const refused = await run().catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(ReplayTargetInUse);
    expect(valuesOf(kafka, TARGET)).to.deep.equal(['thing-a@0']);
    expect(await run({ after: first })).to.include({ records: 3 });
    expect(new Set(valuesOf(kafka, TARGET)).size).to.equal(4);
    // One that was made and never filled is as good as a new one.
    kafka.createTopic({ ...specOf(TOPIC), name: `${TOPIC}.replay.made` });
    expect(await run({ name: 'made' })).to.include({ records: 4 });
  });

  it('sends a batch again whose answer was lost, with another producer', async () => {
    const { kafka, run } = await setUp(STREAMS);
    kafka.faults.loseAnswers(TARGET, 1);
    expect(await run()).to.include({ records: 4 });
    expect(new Set(valuesOf(kafka, TARGET)).size).to.equal(4);
    expect(kafka.connections()).to.deep.equal({ open: 0, made: 2 });
  });

  it('ends with the reason when the brokers refuse it', async () => {
    const { kafka, run } = await setUp(STREAMS);
    kafka.faults.refuse(TARGET, 'unauthorized');
    const outcome = await run().catch((error: unknown) => error);
    expect(outcome).to.be.instanceOf(KafkaFault);
    expect((outcome as KafkaFault).reason).to.equal('unauthorized');
    expect(kafka.connections().open).to.equal(0);
  });
});
