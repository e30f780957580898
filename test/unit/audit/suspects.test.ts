import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createSuspects } from '../../../src/app/audit/changed-events.ts';
import {
  LogDamaged,
  StoreUnavailable,
  type EventStore,
  type RecordedEvent,
} from '../../../src/app/log/event-store.ts';
import type { Logger } from '../../../src/app/ports.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';
import { manualTime } from '../../support/manual-time.ts';

const FOLLOW = 'keep a copy of the store as it is, and follow ops/runbooks/LedgerAuditTreeMismatch.md';

/** An instance that does not sign, or has no tree at all, and reads what somebody has changed. */
describe('events that a read found changed', () => {
  const start = async ({ withTree = true } = {}) => {
    const store = createMemoryEventStore();
    const models = await openAuditView(store);
    const write = createHistoryWriter(store, 's');
    const event = { stream: 'cluster-c', tenant: 'acme', subject: 'alice', types: ['ClusterLabelled'] };
    await write([
      { ...event, data: { n: 1 } },
      { ...event, data: { n: 2 } },
      { ...event, data: { n: 3 } },
    ]);
    await followed(models, store);
    const reads: string[] = [];
    const told: (readonly [level: string, fields: object, text: string | undefined])[] = [];
    const at =
      (level: string): Logger['error'] =>
      (fields, text) =>
        void told.push([level, fields, text]);
    const logger: Logger = {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: () => logger,
    };
    let forge = (read: RecordedEvent): RecordedEvent | undefined => read;
    const forged: Pick<EventStore, 'readStream'> = {
      readStream: async function* (stream, options) {
        reads.push(stream);
        for await (const read of store.readStream(stream, options)) {
          const shown = forge(read);
          if (shown !== undefined) yield shown;
        }
      },
    };
    const time = manualTime();
    const suspects = createSuspects({
      store: forged,
      ...(withTree && { tree: audit(models) }),
      timers: time.timers,
      logger,
    });
    const stopping = new AbortController();
    const ended = suspects.run(stopping.signal);
    return {
      suspects,
      reads,
      told,
      pass: time.pass,
      position: (await store.readStream('cluster-c', { from: 1, limit: 1 })[Symbol.asyncIterator]().next())
        .value.position,
      forge: (how: typeof forge) => {
        forge = how;
      },
      stop: async () => {
        stopping.abort();
        await time.pass(0);
        await ended;
        await models.close();
        await store.close();
      },
    };
  };
  const second = (how: (event: RecordedEvent) => RecordedEvent | undefined) => (event: RecordedEvent) =>
    event.revision === 1 ? how(event) : event;
  const damaged = (event: RecordedEvent): never => {
    throw new LogDamaged('the event log f is damaged: its checksum', {
      event: `${event.stream}@${event.revision}`,
      position: event.position,
    });
  };

  it('given nothing that was found, when time passes, then nothing is read and nothing is wrong', async () => {
    const { suspects, reads, told, pass, stop } = await start();
    await pass(60_000);
    expect([reads, told, suspects.status()]).to.deep.equal([[], [], undefined]);
    await stop();
  });

  it('given an event that was changed with its checksum, when a read finds it, then it is told at once, and once', async () => {
    const { suspects, told, pass, forge, position, stop } = await start();
    forge(second((event) => ({ ...event, data: { n: 4711 } })));
    suspects.suspect('cluster-c@1');
    suspects.suspect('cluster-c@1');
    await pass(0);
    const wrong = `the event cluster-c@1 at position ${position}, leaf 1 of the audit tree, is not what it was when it was recorded`;
    expect(suspects.status()).to.equal(`${wrong}; ${FOLLOW}`);
    await pass(60_000);
    suspects.suspect('cluster-c@1');
    await pass(60_000);
    expect(told).to.deep.equal([['error', { event: 'cluster-c@1', position }, `${wrong}; ${FOLLOW}`]]);
    await stop();
  });

  it('given an event that is gone, when a read misses it, then that is told', async () => {
    const { suspects, pass, forge, stop } = await start();
    forge(second(() => undefined));
    suspects.suspect('cluster-c@1');
    await pass(0);
    expect(suspects.status()).to.match(/^the event cluster-c@1 at position .* is missing in the log; keep/);
    await stop();
  });

  for (const withTree of [true, false])
    it(`given one of which the store knows it, ${withTree ? 'with' : 'without'} a tree, when a read finds it, then it is told until it is right again`, async () => {
      const { suspects, told, pass, forge, position, stop } = await start({ withTree });
      forge(second(damaged));
      suspects.suspect('cluster-c@1');
      await pass(0);
      const wrong = `the event cluster-c@1 that the log holds at position ${position} is not the one that was recorded`;
      expect(suspects.status()).to.equal(`${wrong}; ${FOLLOW}`);
      forge((event) => event);
      await pass(10_000);
      expect(suspects.status()).to.equal(undefined);
      expect(told.map(([level]) => level)).to.deep.equal(['error', 'info']);
      await stop();
    });

  it('given a store that does not answer, when it is asked, then what was known stands, and nothing is made up', async () => {
    const { suspects, told, pass, forge, stop } = await start();
    const down = (): never => {
      throw new StoreUnavailable('down');
    };
    forge(down);
    suspects.suspect('cluster-c@0');
    await pass(0);
    expect(suspects.status()).to.equal(undefined);
    forge(second(damaged));
    suspects.suspect('cluster-c@1');
    await pass(10_000);
    forge(down);
    await pass(20_000);
    expect(suspects.status()).to.include('cluster-c@1');
    expect(told.filter(([level]) => level === 'error')).to.have.length(1);
    await stop();
  });

  it('given a read that was wrong about it, when the event is looked at, then nothing is told, and it is forgotten', async () => {
    const { suspects, reads, told, pass, stop } = await start();
    suspects.suspect('cluster-c@2');
    await pass(60_000);
    expect([reads, told, suspects.status()]).to.deep.equal([['cluster-c'], [], undefined]);
    await stop();
  });

  it('are told by their number beyond the first, and kept up to a hundred', async () => {
    const { suspects, pass, forge, reads, stop } = await start();
    forge(damaged);
    for (let n = 0; n < 200; n += 1) suspects.suspect(`cluster-c@${n}`);
    await pass(0);
    expect(suspects.status()).to.include('cluster-c@0').and.include('(and 2 more)');
    expect(reads.length).to.be.at.most(100);
    await stop();
  });
});
