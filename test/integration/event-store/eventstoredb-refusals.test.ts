import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StoreUnavailable } from '../../../src/app/log/event-store.ts';
import { openStore } from '../../../src/composition/event-log.ts';
import { BadSetting, type Config } from '../../../src/config.ts';
import { createBench, event, rejection, timed } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer, PeerOptions } from '../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { loopbackTls, type LoopbackTls } from '../../support/http/loopback-tls.ts';

/** A store that says no is told apart from one that is away: nothing but a person cures it. */
describe('EventStoreDB adapter: rights, passwords and certificates', () => {
  const bench = createBench();
  let directory: string;
  let tls: LoopbackTls;
  let ca: string;
  let otherCa: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-tls-'));
    tls = await loopbackTls();
    ca = join(directory, 'ca.crt');
    otherCa = join(directory, 'other-ca.crt');
    await writeFile(ca, tls.cert);
    await writeFile(otherCa, (await loopbackTls()).cert);
  });
  after(() => rm(directory, { recursive: true }));
  afterEach(() => bench.clean());

  const secured = async (options: PeerOptions = {}) => {
    const users = new Map([['ledger', 'right']]);
    const peer = await bench.peer({ tls, users, ...options });
    const at = (credentials: string, authority: string | undefined = ca): string =>
      `esdb://${credentials}127.0.0.1:${peer.port}${authority === '' ? '' : `?tlsCAFile=${authority}`}`;
    return { peer, users, at };
  };
  /** What a start says, and after how many milliseconds; the deadline is as long as by default. */
  const configOf = (eventStore: string): Config =>
    ({ eventStore, dataDir: directory, storeDeadlineMs: 10_000 }) as Config;
  const start = (connectionString: string) =>
    timed(openStore(configOf(connectionString), 'test', silentLogger));
  const deny = (peer: Peer, on: 'read' | 'append', stream: string): void => {
    peer.faults.chooseWith((call, about) =>
      call === on && about === stream ? { kind: 'refuse', as: 'access-denied' } : undefined,
    );
  };

  describe('at the start, and not only at the deadline', () => {
    const said = ({ error, ms }: { error: unknown; ms: number }): string => {
      expect(error).to.be.instanceOf(BadSetting);
      expect(ms, 'not at the deadline').to.be.below(9_000);
      const { message } = error as Error;
      expect(message).to.include('LEDGER_EVENT_STORE').and.to.not.include('wrong-password');
      return message;
    };

    it('the right that is missing is named, with the user', async () => {
      const { peer, at } = await secured();
      const lacks = async (on: 'read' | 'append', stream: string): Promise<string> => {
        deny(peer, on, stream);
        return said(await start(at('ledger:right@')));
      };
      const write = "user 'ledger' may not write to sys-store in the event store: grant $w on sys-store";
      expect(await lacks('append', 'sys-store'), 'of an empty log').to.include(write);
      expect(await lacks('read', ''))
        .to.include("user 'ledger' may not read $all")
        .and.include('grant $r on $all');
      expect(await lacks('read', 'sys-store')).to.include("user 'ledger' may not read sys-store");
      const events = peer.log.all.length;
      expect(await lacks('append', 'sys-store'), 'of a log that is in use').to.include(write);
      peer.faults.clear();
      const { store } = await openStore(configOf(at('ledger:right@')), 'test', silentLogger);
      await store.close();
      expect(peer.log.all.length, 'the look stores nothing').to.equal(events);
      await eventually('no connection is left', () => peer.stats.connections === 0);
    });

    it('a wrong password', async () => {
      const { at } = await secured();
      expect(said(await start(at('ledger:wrong-password@'))))
        .to.include("does not accept user 'ledger' with this password")
        .and.not.include('tls=false');
    });

    it('no user at all', async () => {
      const { at } = await secured();
      expect(said(await start(at(''))))
        .to.include('without a user')
        .and.to.include('esdb://user:password@');
    });

    it('the certificate authority that is missing, or is another one', async () => {
      const { at } = await secured();
      for (const authority of ['', otherCa])
        expect(said(await start(at('ledger:right@', authority))))
          .to.match(/certificate of the event store is not accepted \([^)]*certificate[^)]*\)/)
          .and.include('tlsCAFile')
          .and.not.include('tls=false');
    });

    it('the certificate authority of a cluster, though discovery only says that it found nobody', async () => {
      const { peer, at } = await secured();
      const cluster = (authority: string): string =>
        at('ledger:right@', authority).replace(/127[^?]*/, (host) => `${host},${host}`);
      expect(said(await start(cluster(otherCa))))
        .to.include('certificate')
        .and.to.include('tlsCAFile');
      const store = await bench.store(cluster(ca), { deadlineMs: 10_000 });
      expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
      expect(peer.stats.calls.gossip).to.be.greaterThan(0);
    });

    it('a server without TLS', async () => {
      const peer = await bench.peer();
      const text = said(await start(`esdb://ledger:right@127.0.0.1:${peer.port}?tlsCAFile=${ca}`));
      expect(text).to.include('does not speak TLS').and.to.include('tls=false');
    });

    it('and nothing of it where all is right', async () => {
      const { peer, at } = await secured();
      const store = await bench.store(at('ledger:right@'), { deadlineMs: 10_000 });
      expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
      expect(peer.stats.lastAppendHeaders['authorization']).to.match(/^Basic /);
    });
  });

  describe('while it runs', () => {
    const expectReason = async (call: Promise<unknown>, reason: string, says: string): Promise<void> => {
      const { error, ms } = await timed(call);
      expect(error).to.be.instanceOf(StoreUnavailable).and.to.include({ reason });
      expect((error as Error).message).to.include(says);
      expect(ms, 'not at the deadline').to.be.below(9_000);
    };

    it('a right that is taken away is said by the ping, and by reads and appends that need it', async () => {
      const { peer, at } = await secured();
      const store = await bench.store(at('ledger:right@'), { deadlineMs: 10_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      deny(peer, 'read', '');
      await expectReason(store.ping(), 'denied', 'grant $r on $all');
      deny(peer, 'read', 'order-1');
      await store.ping();
      await expectReason(store.currentRevision('order-1'), 'denied', "user 'ledger' may not read order-1");
      deny(peer, 'append', 'order-1');
      const { append } = peer.stats.calls;
      await expectReason(store.append('order-1', 0, [event('Paid')]), 'denied', 'grant $w on order-1');
      expect(peer.stats.calls.append - append, 'once').to.equal(1);
      deny(peer, 'append', '$$sys-lease');
      await expectReason(
        store.setMaxCount('sys-lease', 1),
        'denied',
        "user 'ledger' may not write the metadata of sys-lease in the event store: grant $mw on sys-lease",
      );
    });

    it('a password that was changed ends the open call for appends as soon as a read says so', async () => {
      const { peer, users, at } = await secured();
      const store = await bench.store(at('ledger:right@'), { deadlineMs: 10_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      users.set('ledger', 'another');
      await store.append('order-1', 0, [event('Paid')]);
      expect(peer.stats.openAppendCalls, 'an open call goes on as whom it was opened by').to.equal(1);
      await expectReason(store.ping(), 'credentials', "does not accept user 'ledger' with this password");
      await eventually('the call is ended', () => peer.stats.openAppendCalls === 0);
      await expectReason(store.append('order-1', 1, [event('Shipped')]), 'credentials', 'password');
      users.set('ledger', 'right');
      expect(await store.append('order-1', 1, [event('Shipped')])).to.include({ revision: 2 });
    });

    it('what is on its way then is answered first', async () => {
      const { peer, users, at } = await secured();
      const store = await bench.store(at('ledger:right@'), { deadlineMs: 10_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      peer.faults.add({ on: 'append', do: { kind: 'late-work', ms: 300 }, stream: 'order-' });
      const paid = store.append('order-1', 0, [event('Paid')]);
      await eventually('it is on its way', () => peer.stats.queued === 1);
      users.set('ledger', 'another');
      expect(await rejection(store.ping())).to.be.instanceOf(StoreUnavailable);
      expect(await paid).to.deep.include({ revision: 1, duplicate: false });
      await eventually('the call is ended', () => peer.stats.openAppendCalls === 0);
    });
  });
});
