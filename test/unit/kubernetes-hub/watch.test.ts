import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { expect } from 'chai';
import { watchObjects, type ObjectWatch } from '../../../src/adapters/management-cluster/kubernetes/watch.ts';
import { HubError } from '../../../src/app/hubs/management-cluster.ts';
import type { HubObjectEvent, OwnedObject } from '../../../src/domain/hubs/hub-object.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { EXTERNAL_IP_POOL as POOL } from '../../../src/domain/networks/hub-objects.ts';
import { away, fakeHub } from './fake-hub.ts';

const MINUTE = 60_000;

describe('watch of the orders of a hub', () => {
  let time: ManualTime;
  let hub: ReturnType<typeof fakeHub>;
  let watch: ObjectWatch;
  let notes: string[];
  let seen: HubObjectEvent[];

  const start = (kind: OwnedObject = CLUSTER_ORDER): void => {
    watch = watchObjects({
      api: hub.api,
      kind,
      namespace: 'osac-hub',
      timers: time.timers,
      random: () => 0.5,
      note: (level, _fields, message) => notes.push(`${level}: ${message}`),
    });
    const read = async (): Promise<void> => {
      for (;;) {
        const events = await watch.next();
        if (events === undefined) return;
        seen.push(...events);
      }
    };
    read().catch((error: unknown) => notes.push(String(error)));
  };
  /** What was told since the last call, shortly. */
  const told = (): string[] =>
    seen
      .splice(0)
      .map((event) =>
        event.type === 'synced'
          ? `synced ${event.names.join(',')}`
          : `${event.type} ${event.object.name}@${event.object.resourceVersion}`,
      );

  beforeEach(() => {
    time = manualTime();
    hub = fakeHub();
    notes = [];
    seen = [];
  });
  afterEach(() => watch.close());

  it('lists in pages, then follows from the version of the list', async () => {
    hub.put('a');
    hub.put('b');
    start();
    await time.pass(0);
    expect(told()).to.deep.equal(['applied a@101', 'applied b@102', 'synced a,b']);
    expect(hub.streams().map(({ from }) => from)).to.deep.equal(['102']);
    hub.put('a');
    hub.remove('b');
    await time.pass(0);
    expect(told()).to.deep.equal(['applied a@103', 'deleted b@104']);
  });

  it('goes on where it was after the server ended the stream, without a list', async () => {
    start();
    await time.pass(0);
    hub.put('a');
    hub.bookmark();
    await time.pass(0);
    hub.cut();
    await time.pass(1_000);
    expect([hub.lists(), hub.streams().map(({ from }) => from)]).to.deep.equal([1, ['101']]);
  });

  for (const [what, deed] of [
    ['an ERROR 410 in the stream', (): void => hub.errorInStream(410)],
    [
      'HTTP 410',
      (): void => {
        hub.refuseStream(410);
        hub.cut();
      },
    ],
  ] as const)
    it(`lists anew after ${what}, tells only what changed, and what is gone by not naming it`, async () => {
      for (const name of ['a', 'b', 'c']) hub.put(name);
      start();
      await time.pass(0);
      told();
      hub.putSilently('b');
      hub.remove('c', true);
      deed();
      await time.pass(1_000);
      expect(told()).to.deep.equal(['applied b@104', 'synced a,b']);
      hub.put('c', 'another-uid');
      await time.pass(0);
      expect(told()).to.deep.equal(['applied c@105']);
    });

  it('a server that says 410 to every stream is not asked in a loop', async () => {
    for (let i = 0; i < 100; i += 1) hub.refuseStream(410);
    start();
    await time.pass(MINUTE);
    expect(hub.lists()).to.be.within(3, 12);
  });

  it('opens again after an error, later each time, and lists when it keeps failing', async () => {
    start();
    await time.pass(0);
    for (let i = 0; i < 6; i += 1) hub.refuseStream(500);
    hub.cut(new Error('reset'));
    await time.pass(30_000);
    expect(hub.lists()).to.be.within(2, 4);
    hub.put('a');
    await time.pass(0);
    expect(told().at(-1)).to.equal('applied a@101');
  });

  it('errors in the stream other than 410 count as errors', async () => {
    start();
    await time.pass(0);
    hub.errorInStream(500);
    await time.pass(0);
    expect(hub.streams()).to.have.length(0);
    await time.pass(1_000);
    expect([hub.streams().length, hub.lists()]).to.deep.equal([1, 1]);
  });

  it('waits as long as it is asked to', async () => {
    start();
    await time.pass(0);
    hub.refuseStream(429, { 'retry-after': '20' });
    hub.cut(new Error('reset'));
    await time.pass(19_000);
    expect(hub.streams()).to.have.length(0);
    await time.pass(3_000);
    expect(hub.streams()).to.have.length(1);
  });

  it('a list that fails is tried until it works', async () => {
    hub.failLists(away());
    start();
    await time.pass(10 * MINUTE);
    expect(hub.lists()).to.be.within(20, 60);
    hub.failLists(undefined);
    hub.putSilently('a');
    await time.pass(MINUTE);
    expect(told()).to.deep.equal(['applied a@101', 'synced a']);
  });

  it('a hub without a kind holds none of it, unless it must have it; once it is there it is listed', async () => {
    hub.failLists(new HubError('not-ready', 'no such kind'));
    start(POOL);
    await time.pass(MINUTE);
    expect(told()).to.deep.equal(['synced ']);
    expect(notes).to.deep.equal([]);
    hub.failLists(undefined);
    hub.put('a');
    await time.pass(6 * MINUTE);
    expect(told()).to.deep.equal(['applied a@101', 'synced a']);
    watch.close();
    notes.splice(0);
    hub.failLists(new HubError('not-ready', 'no such kind'));
    start();
    await time.pass(0);
    expect(told()).to.deep.equal([]);
    expect(notes[0]).to.match(/^warn: watching clusterorders/);
  });
  it('ends with what the rights do not allow, and takes no object for gone', async () => {
    hub.put('a');
    start(POOL);
    await time.pass(0);
    told();
    const forbidden = new HubError('unauthorized', 'may not list', { facts: { status: 403 } });
    hub.failLists(forbidden);
    for (let i = 0; i < 10; i += 1) hub.refuseStream(403);
    hub.cut(new Error('reset'));
    await time.pass(10 * MINUTE);
    expect(told()).to.deep.equal([]);
    expect(notes.at(-1)).to.match(/^HubError: /);
  });

  it('silence for an hour is found out: streams are opened anew, lists find what was never told', async () => {
    start();
    await time.pass(0);
    told();
    hub.putSilently('a');
    await time.pass(6 * MINUTE);
    expect(told()).to.include('applied a@101');
    const before = hub.lists();
    await time.pass(60 * MINUTE);
    expect(hub.lists() - before).to.be.within(9, 20);
    expect(notes.filter((note) => note.startsWith('warn: watch silent')).length).to.be.greaterThan(10);
  });

  it('bookmarks are signs of life', async () => {
    start();
    for (let minute = 0; minute < 4; minute += 1) {
      await time.pass(MINUTE);
      hub.bookmark();
    }
    await time.pass(0);
    expect([hub.lists(), notes]).to.deep.equal([1, []]);
  });

  it('versions are told once and never backwards', async () => {
    hub.put('a');
    start();
    await time.pass(0);
    told();
    const line = (version: number) =>
      `${JSON.stringify({
        type: 'MODIFIED',
        object: { metadata: { name: 'a', uid: 'uid-a', resourceVersion: String(version) } },
      })}\n`;
    hub.line(line(150) + line(150) + line(149) + line(1_000));
    await time.pass(0);
    expect(told()).to.deep.equal(['applied a@150', 'applied a@1000']);
    hub.line(line(999));
    await time.pass(0);
    expect(told()).to.deep.equal([]);
  });

  it('a deletion of an object that another one has replaced is not told', async () => {
    hub.put('a', 'first');
    start();
    await time.pass(0);
    hub.put('a', 'second');
    await time.pass(0);
    told();
    const metadata = { name: 'a', uid: 'first', resourceVersion: '300' };
    hub.line(`${JSON.stringify({ type: 'DELETED', object: { metadata } })}\n`);
    await time.pass(0);
    expect(told()).to.deep.equal([]);
  });

  it('a line that is cut or no JSON ends the stream, and nothing is lost', async () => {
    start();
    await time.pass(0);
    hub.line('{"type":"ADDED","object":{"metad');
    hub.putSilently('a');
    hub.cut();
    await time.pass(0);
    hub.line('not json\n');
    await time.pass(6 * MINUTE);
    expect(told()).to.include('applied a@101');
  });

  it('a hub restored from a backup is taken in anew', async () => {
    hub.put('a');
    hub.put('a');
    start();
    await time.pass(0);
    told();
    hub.goBack(50);
    hub.putSilently('a');
    hub.errorInStream(410);
    await time.pass(0);
    expect(told()).to.deep.equal(['applied a@51', 'synced a']);
  });

  it('so is one whose backup was made after the last list', async () => {
    hub.put('a');
    start();
    await time.pass(0);
    for (let change = 0; change < 10; change += 1) hub.put('a');
    await time.pass(0);
    told();
    hub.goBack(105);
    hub.putSilently('a');
    hub.errorInStream(410);
    await time.pass(0);
    expect(told()).to.deep.equal(['applied a@106', 'synced a']);
  });

  it('other credentials: it lists with them at once', async () => {
    start();
    await time.pass(0);
    watch.restart();
    await time.pass(0);
    expect([hub.lists(), hub.streams().length]).to.deep.equal([2, 1]);
  });

  it('ends when it is closed, and leaves no stream behind', async () => {
    start();
    await time.pass(0);
    watch.close();
    await time.pass(10 * MINUTE);
    expect([hub.streams().length, hub.lists(), await watch.next()]).to.deep.equal([0, 1, undefined]);
  });
});
