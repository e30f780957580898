import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { type CallOptions, HubError } from '../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { createWorkerChannel } from '../../../src/adapters/management-cluster/simulated/channel.ts';
import { createSimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { readHubCalls } from '../../support/hubs/hub-journal.ts';
import { manifestOf, REF } from '../../unit/simulated-hub/hub-support.ts';

const by = (effectId: string): CallOptions => ({
  effectId,
  deadlineMs: 60_000,
  signal: new AbortController().signal,
});

describe('thread of the simulated hubs', function () {
  this.timeout(120_000);
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sim-thread-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
  const open = (name: string, channel = createWorkerChannel()) => ({
    channel,
    hub: createSimulatedHub({
      hubId: name,
      file: join(dir, `${name}.sqlite`),
      clock: systemClock(),
      timers: systemTimers(),
      channel,
    }),
  });

  it('a file that another process holds does not hold the caller', async () => {
    const { channel, hub } = open('sim-a');
    await hub.get(CLUSTER_ORDER, REF('nobody'), by('first'));
    const holder = new DatabaseSync(join(dir, 'sim-a.sqlite'), { timeout: 1000 });
    holder.exec('BEGIN IMMEDIATE');
    let turns = 0;
    let done = false;
    const pending = hub.create(CLUSTER_ORDER, manifestOf('order-a'), by('create')).then(() => {
      done = true;
    });
    const end = performance.now() + 200;
    while (performance.now() < end) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    expect(done).to.equal(false);
    expect(turns).to.be.greaterThan(50);
    holder.exec('COMMIT');
    holder.close();
    await pending;
    await channel.close();
  });

  it('many calls at once on several hubs of one thread all get their own answer', async () => {
    const { channel, hub: first } = open('sim-a');
    const { hub: second } = open('sim-b', channel);
    const signal = new AbortController().signal;
    const names = Array.from({ length: 60 }, (_, index) => `order-${index}`);
    const made = await Promise.all(
      names.map((name, index) =>
        (index % 2 === 0 ? first : second).create(CLUSTER_ORDER, manifestOf(name), { ...by(name), signal }),
      ),
    );
    expect(made.map((order) => order.name)).to.deep.equal(names);
    expect(await second.get(CLUSTER_ORDER, REF('order-0'), by('other hub'))).to.equal(undefined);
    await channel.close();
  });

  it('calls that share a flush do not disturb each other', async () => {
    const { channel, hub } = open('sim-a');
    const bad = manifestOf('order-bad', { spec: { templateID: 'a-b' } });
    const told = await Promise.allSettled([
      hub.create(CLUSTER_ORDER, manifestOf('order-a'), by('one')),
      hub.create(CLUSTER_ORDER, bad, by('two')),
      hub.create(CLUSTER_ORDER, manifestOf('order-a', { clusterId: 'another' }), by('three')),
      hub.create(CLUSTER_ORDER, manifestOf('order-b', { simulation: 'lostAnswer=1' }), by('four')),
      hub.patch(CLUSTER_ORDER, REF('nobody'), { sshPublicKey: 'x' }, by('five')),
      hub.get(CLUSTER_ORDER, REF('order-b'), by('six')),
    ]);
    const kinds = told.map((one) =>
      one.status === 'fulfilled'
        ? 'done'
        : one.reason instanceof HubError
          ? one.reason.kind
          : 'another error',
    );
    expect(kinds).to.deep.equal([
      'done',
      'invalid',
      'already-exists',
      'unknown-outcome',
      'not-found',
      'done',
    ]);
    await channel.close();
    const results = readHubCalls(join(dir, 'sim-a.sqlite')).map(({ result }) => result);
    expect(results).to.deep.equal([
      'created',
      'refused: invalid',
      'refused: already-exists',
      'created',
      'refused: not-found',
      'found',
    ]);
  });

  it('a question that cannot be sent is refused, and the next one is answered', async () => {
    const { channel, hub } = open('sim-a');
    const unsendable = { ...manifestOf('order-bad'), made: () => undefined } as never;
    const [refused] = await Promise.allSettled([hub.create(CLUSTER_ORDER, unsendable, by('one'))]);
    expect(refused.status).to.equal('rejected');
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by('two'));
    await channel.close();
  });

  it('a lost thread makes writes in flight unknown; the next call starts another', async () => {
    let lost = createWorkerChannel();
    const { hub } = open('sim-a', {
      next: () => lost.next(),
      ask: (number, question) => lost.ask(number, question),
      close: () => lost.close(),
    });
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by('one'));
    const holder = new DatabaseSync(join(dir, 'sim-a.sqlite'), { timeout: 1000 });
    holder.exec('BEGIN IMMEDIATE');
    const inFlight = hub.create(CLUSTER_ORDER, manifestOf('order-b'), by('two')).then(
      () => 'answered',
      (error: unknown) => (error instanceof HubError ? error.kind : 'another error'),
    );
    // The thread waits inside SQLite for the file; it is ended there, before it could answer.
    await new Promise((resolve) => setImmediate(resolve));
    const ended = lost.close();
    holder.exec('COMMIT');
    holder.close();
    await ended;
    expect(await inFlight).to.equal('unknown-outcome');
    lost = createWorkerChannel();
    expect((await hub.get(CLUSTER_ORDER, REF('order-a'), by('three')))?.name).to.equal('order-a');
    await hub.close();
    await lost.close();
  });

  it('a folder that cannot be written is unavailable, not a crash', async () => {
    const { channel, hub } = open('sim-a');
    const file = join(dir, 'sim-a.sqlite');
    new DatabaseSync(file).close();
    rmSync(dir, { recursive: true });
    const blocked = createSimulatedHub({
      hubId: 'sim-x',
      file: join('/dev/null', 'sim-x.sqlite'),
      clock: systemClock(),
      timers: systemTimers(),
      channel,
    });
    const error: unknown = await blocked
      .create(CLUSTER_ORDER, manifestOf('order-a'), by('one'))
      .catch((e: unknown) => e);
    expect(error).to.include({ kind: 'unavailable' });
    await hub.close();
    await channel.close();
  });
});
