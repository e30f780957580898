import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { hashedMetadata, leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import { consistencyPath, inclusionPath } from '../../../src/app/audit/merkle/proofs.ts';
import type { RecordedEvent } from '../../../src/app/event-store.ts';
import { eventsOf, historyOf, keyOf, type History } from '../../support/audit/signed-history.ts';
import { startCliStub, type CliStub } from '../../support/cli-stub.ts';

const SIZE = 30;
const history = historyOf(eventsOf(SIZE));
const fork = historyOf([...history.events.slice(0, 10), ...eventsOf(SIZE, 1).slice(10)]);
const nameOf = ({ stream, revision }: RecordedEvent): string => `${stream}@${revision}`;
const eventAt = (of: History, index: number): RecordedEvent => of.events[index] as RecordedEvent;

describe('ledgerctl audit proof', () => {
  let stub: CliStub;
  let folder: string;
  let trust: string;
  before(async () => {
    stub = await startCliStub();
    folder = await mkdtemp(join(tmpdir(), 'ledger-proof-'));
    trust = join(folder, 'trust.json');
  });
  after(async () => {
    stub.close();
    await rm(folder, { recursive: true });
  });

  /** The proof of an event under the head of a history of this size, whatever is asked for. */
  const serves = (of: History, index: number, size = SIZE): void =>
    stub.answers(({ path, query }) => {
      if (path.endsWith('/consistency')) {
        const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
        const hashes = consistencyPath(from, to, of.tree.hashAt);
        return { body: { from, to, path: hashes.map((hash) => hash.toString('base64')) } };
      }
      if (path.endsWith('/trust.json')) return { body: of.trust };
      const event = eventAt(of, index);
      return {
        body: {
          id: event.id,
          event: nameOf(event),
          leaf: leafOf(event),
          leaf_hash: leafHashOf(leafOf(event)).toString('base64'),
          index,
          path: inclusionPath(index, size, of.tree.hashAt).map((hash) => hash.toString('base64')),
          checkpoint: { note: of.noteAt(size) },
          stored: { data: event.data, metadata: hashedMetadata(event.metadata) },
        },
      };
    });
  const pin = (size: number | undefined, signer = history.signer): Promise<void> =>
    writeFile(
      trust,
      JSON.stringify({
        ...history.trust,
        ...(size === undefined ? {} : { pin: history.noteAt(size, signer) }),
      }),
    );
  const asked = (event: string, ...more: string[]) =>
    stub.run(['audit', 'proof', event, '--trust', trust, ...more]);

  it('is of the event that was asked for, by its name or its id', async () => {
    await pin(undefined);
    serves(history, 5);
    const event = eventAt(history, 5);
    for (const name of [nameOf(event), event.id, event.id.toUpperCase()]) {
      const { code, out, err } = await asked(name);
      expect([code, err], name).to.deep.equal([0, '']);
      expect(out).to.include(`${nameOf(event)} (${event.type}) is leaf 5,`);
    }
    const { code, err } = await asked(nameOf(eventAt(history, 6)));
    expect([code, err.trim()]).to.deep.equal([
      1,
      `ledgerctl: the proof is of another event, ${nameOf(event)}`,
    ]);
  });

  it('is under a head that continues the pin, or that the pin continues', async () => {
    for (const [pinned, size] of [
      [10, SIZE],
      [SIZE, SIZE],
      [SIZE, 20],
    ] as const) {
      await pin(pinned);
      serves(history, 5, size);
      const { code, out, err } = await asked(nameOf(eventAt(history, 5)));
      expect([code, err], `${pinned} ${size}`).to.deep.equal([0, '']);
      expect(out).to.match(/\nkeys: yours\npin: continued\n$/);
    }
  });

  it('is nothing under the head of another history, whoever signed it', async () => {
    for (const [pinned, size] of [
      [15, SIZE],
      [SIZE, SIZE],
      [SIZE, 20],
    ] as const) {
      await pin(pinned);
      serves(fork, 5, size);
      const { code, err } = await asked(nameOf(eventAt(fork, 5)));
      expect(code, `${pinned} ${size}`).to.equal(1);
      expect(err).to.include(`another history than your pin of size ${pinned}`);
    }
    await pin(15, keyOf('foreign'));
    serves(history, 5);
    const { code, err } = await asked(nameOf(eventAt(history, 5)));
    expect([code, err.includes('your pin cannot be used')]).to.deep.equal([1, true]);
  });
});
