import { execFile } from 'node:child_process';
import { inspect, promisify } from 'node:util';
import { expect } from 'chai';
import { CorruptEvent } from '../../../src/adapters/event-store/eventstoredb/convert.ts';
import { StoreUnavailable, type Position } from '../../../src/app/log/event-store.ts';
import type { Logger } from '../../../src/app/ports.ts';
import { collect, createBench, event, rejection } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../support/eventually.ts';

describe('EventStoreDB adapter: reads and connections', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  const many = (count: number) => Array.from({ length: count }, (_, n) => event('Counted', { n }));
  const system = (peer: Peer, count: number): void => {
    for (let n = 0; n < count; n += 1) peer.log.inject('$stats', { type: '$Stats' });
  };

  describe("the store's own events", () => {
    it('are in no read of the log, and are not its last position', async () => {
      const peer = await bench.peer({ systemEvents: 20 });
      const store = await bench.store(peer);
      expect(await store.lastPosition()).to.equal(undefined);
      expect(await collect(store.readAll({ limit: 10 }))).to.deep.equal([]);
      await store.append('order-1', 'no_stream', many(3));
      system(peer, 700);
      const last = await store.append('order-1', 2, many(1));
      system(peer, 700);
      const read = await collect(store.readAll({ limit: 10 }));
      expect(read.map((e) => e.stream)).to.deep.equal(Array.from({ length: 4 }, () => 'order-1'));
      expect(await store.lastPosition()).to.equal(last.position);
      const other = await bench.store(peer);
      expect(await other.lastPosition(), 'also for a process that has seen nothing yet').to.equal(
        last.position,
      );
    });

    it('do not count for the limit of a page', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      const positions: Position[] = [];
      for (let n = 0; n < 6; n += 1) {
        positions.push((await store.append(`order-${n}`, 'no_stream', many(1))).position);
        system(peer, 5);
      }
      const page = await collect(store.readAll({ limit: 4 }));
      expect(page.map((e) => e.position)).to.deep.equal(positions.slice(0, 4));
      const rest = await collect(store.readAll({ after: positions[3] ?? '', limit: 4 }));
      expect(rest.map((e) => e.position)).to.deep.equal(positions.slice(4));
    });
  });

  it('a soft-deleted stream and one deleted for good read as nothing', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    await store.append('order-soft', 'no_stream', many(2));
    await store.append('order-gone', 'no_stream', many(2));
    peer.log.softDelete('order-soft');
    peer.log.tombstone('order-gone');
    for (const stream of ['order-soft', 'order-gone', 'order-never']) {
      expect(await collect(store.readStream(stream)), stream).to.deep.equal([]);
      expect(await store.currentRevision(stream), stream).to.equal('no_stream');
    }
  });

  describe('an event that is none of ours is an error that names stream and revision', () => {
    const foreign = {
      'data that is no JSON': { data: Buffer.from('{"a":') },
      'data that is a JSON string': { data: Buffer.from('"a"') },
      'data that is a list': { data: Buffer.from('[]') },
      'metadata that is no JSON': { metadata: Buffer.from('\u0001') },
      'binary content': { contentType: 'application/octet-stream' },
    };
    for (const [what, fields] of Object.entries(foreign))
      it(what, async () => {
        const peer = await bench.peer();
        const store = await bench.store(peer);
        await store.append('order-1', 'no_stream', many(1));
        peer.log.inject('order-1', { type: 'Strange', ...fields });
        const reads = [collect(store.readStream('order-1')), collect(store.readAll({ limit: 10 }))];
        for (const read of reads) {
          const error = await rejection(read);
          expect(error).to.be.instanceOf(CorruptEvent).and.to.include({ stream: 'order-1', revision: 1 });
          expect((error as Error).message)
            .to.include('order-1')
            .and.to.include('1');
        }
      });

    it('a message without an event id fails the call, not the process', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      peer.log.inject('order-1', { type: 'Strange', id: '' });
      const error = await rejection(collect(store.readStream('order-1')));
      expect(error).to.be.instanceOf(StoreUnavailable);
      expect((error as Error).message, 'what is wrong, not that nothing came').to.include('id is undefined');
      await store.append('order-2', 'no_stream', many(1));
      await store.ping();
    });
  });

  describe('A: a read that is left', () => {
    it('early is cancelled at the server', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      for (let n = 0; n < 5; n += 1)
        await store.append('order-1', n === 0 ? 'no_stream' : n * 400 - 1, many(400));
      const before = peer.stats.cancelled;
      for await (const read of store.readStream('order-1')) if (read.revision === 1) break;
      await eventually('the cancellation', () => peer.stats.cancelled > before);
      expect(peer.stats.eventsSent).to.be.below(1000);
    });
  });

  describe('a read that breaks', () => {
    for (const behaviour of [{ kind: 'drop' }, { kind: 'cut' }] as const)
      it(`in the middle (${behaviour.kind}) goes on where it stopped`, async () => {
        const peer = await bench.peer();
        const store = await bench.store(peer);
        await store.append('order-1', 'no_stream', many(100));
        peer.faults.add({ on: 'read', do: { ...behaviour, events: 40 }, times: 1 });
        const forward = await collect(store.readStream('order-1', { from: 5 }));
        expect(forward.map((e) => e.revision)).to.deep.equal(Array.from({ length: 95 }, (_, n) => n + 5));
        peer.faults.add({ on: 'read', do: { ...behaviour, events: 40 }, times: 1 });
        const backward = await collect(store.readStream('order-1', { direction: 'backward', limit: 60 }));
        expect(backward.map((e) => e.revision)).to.deep.equal(Array.from({ length: 60 }, (_, n) => 99 - n));
        peer.faults.add({ on: 'read', do: { ...behaviour, events: 40 }, times: 1 });
        const all = await collect(store.readAll({ limit: 1000 }));
        expect(all.map((e) => e.revision)).to.deep.equal(Array.from({ length: 100 }, (_, n) => n));
        expect(peer.faults.hits()).to.equal(3);
      });

    it('again and again is unavailable', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      peer.faults.add({ on: 'read', do: { kind: 'drop' } });
      expect(await rejection(collect(store.readStream('order-1')))).to.be.instanceOf(StoreUnavailable);
    });

    it('by silence is unavailable at the deadline, and tries a new connection before', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 2_400 });
      const lift = peer.faults.add({ on: 'read', do: { kind: 'never-answer' } });
      const { connections } = store.stats();
      const started = performance.now();
      expect(await rejection(store.currentRevision('order-1'))).to.be.instanceOf(StoreUnavailable);
      expect(performance.now() - started).to.be.within(2_300, 10_000);
      expect(store.stats().connections).to.be.greaterThan(connections);
      lift();
      expect(await store.currentRevision('order-1')).to.equal('no_stream');
    });

    it('because the server is down tries again until the deadline and says why, whatever the library makes of it', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      await peer.goDown();
      const started = performance.now();
      const calls = [store.ping(), store.lastPosition(), store.currentRevision('order-1')].map(rejection);
      for (const error of await Promise.all(calls)) {
        expect(error).to.be.instanceOf(StoreUnavailable).and.to.include({ reason: 'down' });
        expect((error as Error).message.split('ECONNREFUSED'), 'the cause, once').to.have.lengthOf(2);
        expect((error as Error).message)
          .to.not.include('no answer')
          .and.to.not.include('Resolution note');
      }
      expect(performance.now() - started).to.be.below(9_000);
      await peer.restart();
      await store.ping();
    });
  });

  it('a ping has a shorter limit of its own', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 20_000, pingMs: 80 });
    peer.faults.add({ on: 'read', do: { kind: 'never-answer' } });
    const started = performance.now();
    expect(await rejection(store.ping())).to.be.instanceOf(StoreUnavailable);
    expect(performance.now() - started).to.be.below(15_000);
  });

  it('positions are 40 digits, and anything else is refused', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    const { position } = await store.append('order-1', 'no_stream', many(1));
    expect(position).to.match(/^\d{40}$/);
    for (const after of ['17', `-${position.slice(1)}`, '']) {
      expect(await rejection(collect(store.readAll({ after, limit: 1 })))).to.be.instanceOf(RangeError);
      const { signal } = new AbortController();
      expect(await rejection(collect(store.subscribe({ after, signal })))).to.be.instanceOf(RangeError);
    }
  });

  it('asks the leader, not a node that has stopped being it and may be behind', async () => {
    const [old, leader] = [await bench.peer(), await bench.peer()];
    const seed = await bench.store(leader);
    await seed.append('order-1', 'no_stream', many(2));
    const store = await bench.store(old);
    old.faults.add({
      on: 'read',
      do: { kind: 'refuse', as: 'not-leader', leader: { host: '127.0.0.1', port: leader.port } },
    });
    expect(await store.currentRevision('order-1')).to.equal(1);
    expect(await collect(store.readStream('order-1'))).to.have.length(2);
    expect(old.faults.hits(), 'and stays with it').to.equal(1);
  });

  describe('the id of the store', () => {
    it('is written once, whoever of two comes first, and read ever after', async () => {
      const peer = await bench.peer();
      const stores = await Promise.all([bench.store(peer), bench.store(peer), bench.store(peer)]);
      const ids = new Set([...stores, await bench.store(peer)].map((store) => store.storeId));
      expect(ids).to.have.property('size', 1);
      expect(peer.log.all.filter((e) => e.stream === 'sys-store')).to.have.lengthOf(1);
      const elsewhere = await bench.store(await bench.peer());
      expect(ids.has(elsewhere.storeId)).to.equal(false);
    });
  });

  describe('discovery', () => {
    it('finds the server by gossip', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer.discoveryString, { deadlineMs: 2000 });
      expect(await store.append('order-1', 'no_stream', many(1))).to.include({ revision: 0 });
      expect(peer.stats.calls.gossip).to.be.greaterThan(0);
    });

    it('that finds nobody is unavailable, and leaves no rejection behind', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer.discoveryString, { deadlineMs: 2000 });
      await peer.goDown();
      const unhandled: unknown[] = [];
      const note = (reason: unknown): void => void unhandled.push(reason);
      process.on('unhandledRejection', note);
      const calls = [
        store.ping(),
        store.lastPosition(),
        store.append('order-1', 'no_stream', many(1)),
        store.ping(),
      ];
      for (const outcome of await Promise.allSettled(calls)) expect(outcome.status).to.equal('rejected');
      await new Promise(setImmediate);
      process.off('unhandledRejection', note);
      expect(unhandled).to.deep.equal([]);
      await peer.restart();
      await store.ping();
    });
  });

  it('credentials are in no log line, error or warning', async () => {
    const secret = 'p%40ss-w0rd-never-shown';
    const lines: unknown[] = [];
    const logger: Logger = {
      debug: (...line) => void lines.push(line),
      info: (...line) => void lines.push(line),
      warn: (...line) => void lines.push(line),
      error: (...line) => void lines.push(line),
      child: () => logger,
    };
    const warn = console.warn;
    console.warn = (...line: unknown[]) => void lines.push(line);
    try {
      const peer = await bench.peer();
      const at = (query: string): string => `esdb://admin:${secret}@127.0.0.1:${peer.port}?${query}`;
      const store = await bench.store(at('tls=false'), { logger });
      const controller = new AbortController();
      const following = (async () => {
        for await (const _ of store.subscribe({ signal: controller.signal }));
      })();
      await eventually('subscribed', () => peer.stats.openSubscriptions === 1);
      await peer.goDown();
      lines.push(
        await rejection(store.ping()),
        await rejection(store.append('order-1', 'no_stream', many(1))),
      );
      await eventually('resubscribing', () => store.stats().resubscribed > 0);
      controller.abort();
      await following;
      for (const query of [
        'tls=false&tlsVerifyCert=false',
        'tls=false&colour=red',
        'tls=maybe',
        'tlsCAFile=/nowhere',
      ])
        lines.push(await rejection(bench.store(at(query), { logger })));
      lines.push(await rejection(bench.store(`http://admin:${secret}@host`, { logger })));
      lines.push(await rejection(bench.store(`esdb://admin:${secret}@host:port`, { logger })));
      expect(lines.length).to.be.greaterThan(8);
      const shown = lines.map((line) => inspect(line, { depth: 20, showHidden: true })).join('\n');
      expect(shown)
        .to.not.include('w0rd')
        .and.to.not.include(Buffer.from(`admin:${decodeURIComponent(secret)}`).toString('base64'));
      expect(shown, 'but it is said that they are not sent').to.include('not sent without TLS');
    } finally {
      console.warn = warn;
    }
  });

  it('a store that is closed keeps no connection', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    await store.append('order-1', 'no_stream', many(1));
    const following = rejection(collect(store.subscribe({ signal: new AbortController().signal })));
    await eventually('subscribed', () => peer.stats.openSubscriptions === 1);
    await store.close();
    expect(await following)
      .to.be.instanceOf(StoreUnavailable)
      .and.to.include({ reason: 'closed' });
    await eventually('its connections are gone', () => peer.stats.connections === 0);
  });

  it('a process that closed its store can end, also after drops', async () => {
    const peer = await bench.peer();
    const adapter = new URL(
      '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts',
      import.meta.url,
    );
    const script = `
      const { createEventStoreDbStore } = await import(${JSON.stringify(adapter.href)});
      const store = await createEventStoreDbStore({ connectionString: process.argv[1], instance: 'child' });
      const event = { id: crypto.randomUUID(), type: 'Placed', data: '{}', metadata: '{}' };
      await store.append('order-1', 'no_stream', [event]);
      for await (const item of store.subscribe({ signal: new AbortController().signal })) break;
      const following = (async () => { for await (const item of store.subscribe({ signal: new AbortController().signal })); })();
      await store.ping();
      await store.close();
      await following.catch(() => {});
      process.stdout.write('closed');`;
    const run = promisify(execFile)(
      process.execPath,
      ['--input-type=module', '-e', script, peer.connectionString],
      {
        timeout: 8000,
      },
    );
    expect((await run).stdout).to.equal('closed');
    await eventually('its connections are gone', () => peer.stats.connections === 0);
  });
});
