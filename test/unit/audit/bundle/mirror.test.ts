import { expect } from 'chai';
import fc from 'fast-check';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { checkpointText } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import { mirrorLog, type MirrorReport, type MirrorStore } from '../../../../src/app/audit/bundle/mirror.ts';
import { keysIn, verifyTileLog, type TileLog } from '../../../../src/app/audit/bundle/tile-log.ts';
import { signRotation, type Trust } from '../../../../src/app/audit/merkle/key-chain.ts';
import { parseTilePath } from '../../../../src/app/audit/merkle/tiles.ts';
import {
  eventsOf,
  historyOf,
  keyOf,
  ORIGIN,
  vkey,
  type History,
} from '../../../support/audit/signed-history.ts';
import { filesOfHistory } from '../../../support/audit/tampering/tiles.ts';
import { checkAsync } from '../../../support/property.ts';

const SIZE = 600;
const history = historyOf(eventsOf(SIZE));
const fork = historyOf([...history.events.slice(0, 300), ...eventsOf(SIZE, 1).slice(300)]);

/** A service that shows a history up to a size; `asked` lists what it was asked for. */
const service = (of: History, size: number, asked: string[] = []): TileLog => {
  const files = filesOfHistory(of, size);
  return {
    note: of.noteAt(size),
    keys: of.trust,
    read: (path) => {
      asked.push(path);
      return files.get(path);
    },
  };
};

const memoryStore = (
  files = new Map<string, Uint8Array>(),
): MirrorStore & { files: Map<string, Uint8Array> } => ({
  files,
  read: (path) => files.get(path),
  write: (path, bytes) => {
    files.set(path, bytes);
    return Promise.resolve();
  },
  partial: () =>
    Promise.resolve([...files.keys()].filter((path) => (parseTilePath(path)?.width ?? 256) < 256)),
  remove: (path) => {
    files.delete(path);
    return Promise.resolve();
  },
});

/** As `audit verify --tiles` looks at a mirror. */
const offline = ({ files }: ReturnType<typeof memoryStore>, trust?: Trust) => {
  const text = (name: string) => {
    const bytes = files.get(name);
    return bytes === undefined ? undefined : Buffer.from(bytes).toString('utf8');
  };
  return verifyTileLog(
    { note: text('checkpoint'), keys: keysIn(text('keys.json') ?? ''), read: (path) => files.get(path) },
    trust === undefined ? {} : { trust },
  );
};
const listed = ({ findings }: Pick<MirrorReport, 'findings'>): string[] => findings.map(findingText);

describe('a mirror of the tiles', () => {
  it('holds the files of the specification, and is checked without the service', async () => {
    const store = memoryStore();
    const report = await mirrorLog(service(history, SIZE), store, { trust: history.trust });
    expect(listed(report)).to.deep.equal([]);
    expect([...store.files.keys()].toSorted()).to.deep.equal([
      'checkpoint',
      'keys.json',
      'tile/0/000',
      'tile/0/001',
      'tile/0/002.p/88',
      'tile/1/000.p/2',
      'tile/entries/000',
      'tile/entries/001',
      'tile/entries/002.p/88',
    ]);
    expect(report).to.include({ ok: true, fetched: 7, keys: 'pinned', pin: 'none' });
    const checked = await offline(store, { ...history.trust, pin: history.noteAt(100) });
    expect(checked).to.deep.include({ ok: true, pin: 'continued', keys: 'pinned', tiles: 4, bundles: 3 });
  });

  it('fetches what is new, and has full tiles in place of partial ones', async () => {
    const [store, asked] = [memoryStore(), [] as string[]];
    await mirrorLog(service(history, 300), store);
    expect([...store.files.keys()]).to.include.members(['tile/0/001.p/44', 'tile/entries/001.p/44']);
    const report = await mirrorLog(service(history, SIZE, asked), store);
    expect(report).to.include({ ok: true, heldSize: 300, keys: 'of the mirror' });
    expect(asked).not.to.include('tile/0/000');
    expect(asked).not.to.include('tile/entries/000');
    expect([...store.files.keys()].filter((path) => path.includes('.p/')).toSorted()).to.deep.equal([
      'tile/0/002.p/88',
      'tile/1/000.p/2',
      'tile/entries/002.p/88',
    ]);
    expect(await offline(store, { ...history.trust, pin: history.noteAt(300) })).to.include({
      pin: 'continued',
    });
  });

  it('goes on where it was broken off, and is that of the head before until then', async () => {
    const store = memoryStore();
    await mirrorLog(service(history, 300), store);
    const breaking = service(history, SIZE);
    const broken: TileLog = {
      ...breaking,
      read: (path, fits) => {
        if (path === 'tile/entries/001') throw new Error('it broke off');
        return breaking.read(path, fits);
      },
    };
    const outcome = await mirrorLog(broken, store).catch((error: unknown) => error);
    expect(String(outcome)).to.include('it broke off');
    expect(await offline(store)).to.deep.include({ ok: true, findings: [] });
    const asked: string[] = [];
    expect((await mirrorLog(service(history, SIZE, asked), store)).ok).to.equal(true);
    expect(asked).not.to.include('tile/0/001');
  });

  it('fetches anew what was damaged in it, and says so', async () => {
    const store = memoryStore();
    await mirrorLog(service(history, SIZE), store);
    for (const path of ['tile/0/001', 'tile/1/000.p/2', 'tile/entries/002.p/88']) {
      const bytes = Buffer.from(store.files.get(path) as Uint8Array);
      bytes.writeUInt8(bytes.readUInt8(7) ^ 1, 7);
      store.files.set(path, bytes);
      expect((await offline(store)).findings.map(({ file }) => file)).to.deep.equal([path]);
      expect(await mirrorLog(service(history, SIZE), store)).to.deep.include({ ok: true, mended: [path] });
      expect((await offline(store)).ok).to.equal(true);
    }
  });

  it('keeps nothing of a service whose tiles are not those that it signed', async () => {
    const sound = service(history, SIZE);
    for (const [path, kept] of [
      ['tile/1/000.p/2', 0],
      ['tile/0/001', 2],
      ['tile/entries/001', 4],
    ] as const) {
      const store = memoryStore();
      const lying: TileLog = {
        ...sound,
        read: async (asked, fits) => {
          const bytes = Buffer.from((await sound.read(asked, fits)) ?? []);
          if (asked === path) bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40);
          return bytes.length === 0 ? undefined : bytes;
        },
      };
      const report = await mirrorLog(lying, store);
      expect(report.ok, path).to.equal(false);
      expect(store.files.has('checkpoint')).to.equal(false);
      expect(store.files.has(path), path).to.equal(false);
      expect(store.files.size, path).to.be.at.least(kept);
      if (path !== 'tile/1/000.p/2') expect(report.findings[0]).to.include({ file: path });
      expect((await mirrorLog(sound, store)).ok).to.equal(true);
    }
  });

  it('is not replaced by another history: the place is named from which on they differ', async () => {
    const store = memoryStore();
    await mirrorLog(service(history, 500), store);
    const before = new Map(store.files);
    for (const size of [500, SIZE]) {
      const report = await mirrorLog(service(fork, size), store, { trust: history.trust });
      expect(listed(report)).to.deep.equal([
        'places 300 to 500, checkpoint: the service shows another history than the mirror holds up to size 500: ' +
          'they differ from place 300 on; nothing was kept',
      ]);
      expect(store.files).to.deep.equal(before);
    }
    const back = await mirrorLog(service(history, 400), store);
    expect(listed(back)[0]).to.include('a head of size 400, the mirror holds one of size 500');
    expect(store.files).to.deep.equal(before);
    const time = '2026-11-22T12:00:00.000Z';
    const note = signNote(checkpointText({ ...history.checkpointAt(400), time }), history.signer);
    const later = await mirrorLog({ ...service(history, 400), note }, store);
    expect(listed(later)).to.deep.equal([
      `places 400 to 500, checkpoint: history was taken back: size 400 was signed at ${time}, after size 500 at ` +
        `${history.checkpointAt(500).time}; nothing was kept`,
    ]);
    expect(store.files).to.deep.equal(before);
  });

  it('is held against the pin of the auditor before anything is kept', async () => {
    const store = memoryStore();
    const trust = { ...history.trust, pin: history.noteAt(450) };
    const report = await mirrorLog(service(fork, SIZE), store, { trust });
    expect([report.ok, report.pin]).to.deep.equal([false, 'broken']);
    expect(store.files.size).to.equal(0);
    const older = await mirrorLog(service(history, 440), store, { trust });
    expect([older.ok, older.pin]).to.deep.equal([false, 'ends before']);
    const same = await mirrorLog(service(history, 450), store, { trust });
    expect([same.ok, same.pin]).to.deep.equal([true, 'continued']);
  });

  it('follows keys that were announced, and no others', async () => {
    const store = memoryStore();
    const [first, second] = [keyOf('first'), keyOf('second')];
    await mirrorLog(service(history, 300), store);
    const next = { vkey: vkey(second), since: '2026-11-21T13:00:00.000Z', size: 400 };
    const note = history.noteAt(SIZE, second);
    const shown = (keys: Trust['keys']): TileLog => ({
      ...service(history, SIZE),
      note,
      keys: { ...history.trust, keys },
    });
    const stolen = await mirrorLog(shown([{ vkey: next.vkey, since: next.since }]), store);
    expect(stolen.ok).to.equal(false);
    const unsigned = await mirrorLog(
      shown([...history.trust.keys, { vkey: next.vkey, since: next.since }]),
      store,
    );
    expect(listed(unsigned).join()).to.include('came without a note of the key before it');
    const rotation = signRotation(ORIGIN, next, first);
    const announced = { vkey: next.vkey, since: next.since, rotation };
    const report = await mirrorLog(shown([...history.trust.keys, announced]), store);
    expect(listed(report)).to.deep.equal([]);
    expect((await offline(store, history.trust)).ok).to.equal(true);
  });

  it('shows at every size and every pin that the one continues the other', () =>
    checkAsync(
      fc.asyncProperty(fc.nat(SIZE), fc.nat(SIZE), async (one, two) => {
        const [pin, size] = [Math.min(one, two), Math.max(one, two)];
        const trust = { ...history.trust, pin: history.noteAt(pin) };
        const store = memoryStore();
        const report = await mirrorLog(service(history, size), store, { trust });
        expect([listed(report), report.pin]).to.deep.equal([[], 'continued']);
        expect((await offline(store, trust)).pin).to.equal('continued');
      }),
      { numRuns: 25 },
    ));
});
