import { expect } from 'chai';
import { collectFindings, findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { checkHead } from '../../../../src/app/audit/bundle/head-check.ts';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import { verifyTileLog } from '../../../../src/app/audit/bundle/tile-log.ts';
import { checkpointText } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import { consistencyPath } from '../../../../src/app/audit/merkle/proofs.ts';
import { pinText } from '../../../../src/cli/audit/report-text.ts';
import { filesOfHistory } from '../../../support/audit/tampering/tiles.ts';
import { bundleOf, eventsOf, historyOf, memorySource } from '../../../support/audit/signed-history.ts';

const SIZE = 60;
/** Heads of this history are signed a second after one another: the one of size 40 at 12:00:40. */
const history = historyOf(eventsOf(SIZE));

const noteAt = (size: number, time: string): string =>
  signNote(checkpointText({ ...history.checkpointAt(size), time }), history.signer);
/** A pin of size 60 with that time. */
const pinned = (time: string) => ({ ...history.trust, pin: noteAt(SIZE, time) });
const path = consistencyPath(40, SIZE, history.tree.hashAt).map((hash) => hash.toString('base64'));

const EARLIER = '2026-11-21T12:00:39.999Z';
const SAME = '2026-11-21T12:00:40.000Z';
const SAYS = `history was taken back: size 40 was signed at 2026-11-21T12:00:40.000Z, after size 60 at ${EARLIER}`;
const PIN = 'pin: BROKEN: history was taken back (size 40 < 60)';

describe('history that was taken back', () => {
  it('is proven by an export that was signed later than the pin and is smaller, whatever proof comes beside it', async () => {
    const source = memorySource(await bundleOf(history, { at: 40 }));
    for (const later of [undefined, { from: 40, to: SIZE, path }]) {
      const report = await verifyBundle(source, {
        trust: pinned(EARLIER),
        ...(later !== undefined && { later }),
      });
      expect([report.pin, report.ok, report.trust]).to.deep.equal(['broken', false, undefined]);
      expect(report.findings.map(findingText)).to.have.length(1);
      expect(findingText(report.findings[0] ?? { code: 'pin', message: '' })).to.include(SAYS);
      expect(pinText(report)).to.equal(PIN);
    }
  });

  it('is not said of an export that is as old as the pin, or older', async () => {
    const source = memorySource(await bundleOf(history, { at: 40 }));
    for (const time of [SAME, '2026-11-21T12:01:00.000Z'])
      expect((await verifyBundle(source, { trust: pinned(time) })).pin, time).to.equal('ends before');
  });

  it('is not said of a larger tree, whenever it was signed', async () => {
    const source = memorySource(await bundleOf(history, { pins: [40] }));
    for (const time of ['2026-11-21T11:00:00.000Z', '2026-11-22T12:00:00.000Z']) {
      const trust = { ...history.trust, pin: noteAt(40, time) };
      expect((await verifyBundle(source, { trust })).pin, time).to.equal('continued');
    }
  });

  it('is proven by the head of a service, whether it gives a proof or none', async () => {
    for (const answer of [path, undefined]) {
      const findings = collectFindings();
      const options = { trust: pinned(EARLIER), shipped: history.trust, between: async () => answer };
      const { pin } = await checkHead(history.noteAt(40), options, findings);
      expect([pin, findings.list().map(({ message }) => message)]).to.deep.equal(['broken', [SAYS]]);
      const older = { ...options, trust: pinned(SAME) };
      const same = await checkHead(history.noteAt(40), older, collectFindings());
      expect(same.pin).to.equal(answer === undefined ? 'not shown' : 'leads to');
    }
  });

  it('is proven by tiles', async () => {
    const files = filesOfHistory(history, 40);
    const log = { note: history.noteAt(40), keys: history.trust, read: (name: string) => files.get(name) };
    const report = await verifyTileLog(log, { trust: pinned(EARLIER) });
    expect([report.pin, report.findings.map(({ message }) => message)]).to.deep.equal(['broken', [SAYS]]);
    expect(pinText(report, 'the tiles end')).to.equal(PIN);
  });
});
