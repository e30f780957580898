import { expect } from 'chai';
import { findingText, type Finding } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyStore, type StoreOptions } from '../../../../src/app/audit/bundle/verify-store.ts';
import { checkpointText } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import type { RecordedEvent } from '../../../../src/app/log/event-store.ts';
import { eventsOf, historyOf, keyOf } from '../../../support/audit/signed-history.ts';
import { signedLog, stoppedLog } from '../../../support/audit/signed-log.ts';

const history = historyOf(eventsOf(50));
/** Heads at 10, 20, 30, 40: the last ten events are not signed. */
const log = signedLog(history, [10, 20, 30, 40]);

const verify = (events: readonly RecordedEvent[], options: StoreOptions = {}) =>
  verifyStore(stoppedLog(events), { trust: history.trust, ...options });

/** Place in the log of leaf `n`. */
const at = (n: number): number => log.findIndex(({ id }) => id === history.events[n]?.id);
const nameOf = (n: number): string => `${history.events[n]?.stream}@${history.events[n]?.revision}`;

describe('verifying a stopped store', () => {
  it('finds nothing in a sound one', async () => {
    const report = await verify(log);
    expect(report.findings.map(findingText)).to.deep.equal([]);
    const { ok, keys, events, leaves, heads, signed } = report;
    expect({ ok, keys, events, leaves, heads, signed }).to.deep.equal({
      ok: true,
      keys: 'pinned',
      events: 55,
      leaves: 50,
      heads: 4,
      signed: 40,
    });
    expect((await verifyStore(stoppedLog(log))).keys).to.equal('from the store');
    expect((await verifyStore(stoppedLog([]))).ok).to.equal(true);
  });

  it('tells between which heads an event was changed, and which one where the tree is at hand', async () => {
    const event = log[at(23)] as RecordedEvent;
    const changed = log.with(at(23), { ...event, data: { forged: true } });
    const report = await verify(changed);
    expect(report.count).to.equal(1);
    expect(report.findings[0]).to.deep.include({ code: 'root', place: [20, 30] });
    expect(report.signed).to.equal(20);
    const exact = await verify(changed, { kept: history.tree });
    expect(exact.findings[1]).to.include({ code: 'changed-event', place: 23, event: nameOf(23) });
    expect(exact.count).to.equal(2);
    // A tree that was changed with it names nobody.
    const theirs = historyOf(eventsOf(50, 1)).tree;
    expect((await verify(changed, { kept: theirs })).count).to.equal(1);
  });

  it('does not look at what nobody signed yet', async () => {
    const event = log[at(45)] as RecordedEvent;
    expect((await verify(log.with(at(45), { ...event, data: {} }))).ok).to.equal(true);
  });

  it('names an event that is missing, and the end of a log that was cut off', async () => {
    // One whose stream goes on: then it is named, otherwise only the heads tell.
    const [taken = 0] = history.events.flatMap(({ stream }, n) =>
      n >= 10 && n < 20 && history.events.slice(n + 1, 40).some((later) => later.stream === stream)
        ? [n]
        : [],
    );
    const missing = await verify(log.toSpliced(at(taken), 1));
    expect(
      missing.findings.some(({ code, event }) => code === 'missing-event' && event === nameOf(taken)),
    ).to.equal(true);
    expect(missing.findings.some(({ code, place }) => code === 'root' && String(place) === '10,20')).to.equal(
      true,
    );
    const cut = await verify(
      log.filter((event) => event.stream.startsWith('sys-') || Number(event.position) < 70),
    );
    expect(cut.findings[0]).to.deep.include({ code: 'missing-event', place: [30, 40] });
  });

  it('names an event that was moved', async () => {
    const [first, second] = [at(12), at(13)];
    const swapped = log.with(first, log[second] as RecordedEvent).with(second, log[first] as RecordedEvent);
    expect((await verify(swapped)).findings[0]).to.deep.include({ code: 'root', place: [10, 20] });
  });

  it('refuses heads of other keys, in another order, or taken out', async () => {
    const theirs = signedLog(history, [10, 20], keyOf('second'));
    const foreign = await verify(theirs);
    expect(foreign.findings.map(({ code }) => code))
      .to.include('key')
      .and.to.include('head');
    const heads = log.filter(({ type }) => type === 'TreeHeadSigned');
    const dropped = await verify(log.filter((event) => event !== heads[1]));
    expect(dropped.findings.map(findingText).join()).to.include('does not follow the one before it');
    const [first, second] = heads as [RecordedEvent, RecordedEvent];
    const exchanged = log.map((event) =>
      event === first
        ? { ...first, data: second.data }
        : event === second
          ? { ...second, data: first.data }
          : event,
    );
    expect((await verify(exchanged)).findings.map(findingText).join()).to.include(
      'not larger than the one before',
    );
  });

  it('compares with a pin, whatever heads the store shows', async () => {
    const rewritten = historyOf([...history.events.slice(0, 15), ...eventsOf(50, 1).slice(15)]);
    const forged = signedLog(rewritten, [10, 20, 30]);
    expect((await verify(forged)).findings.filter(({ code }) => code === 'root')).to.deep.equal([]);
    const report = await verify(forged, { trust: { ...history.trust, pin: history.noteAt(25) } });
    expect(report.findings.map(findingText).join()).to.include('your pin of size 25 has another root');
    const sound = await verify(log, { trust: { ...history.trust, pin: history.noteAt(25) } });
    expect(sound.ok).to.equal(true);
    const without = log.filter(({ stream }) => stream !== 'sys-auditTree');
    expect((await verify(without, { trust: { ...history.trust, pin: history.noteAt(25) } })).signed).to.equal(
      25,
    );
  });

  it('tells a store that ends before the pin from one of which events are missing', async () => {
    const pin = (size: number, time?: string): StoreOptions => ({
      trust: {
        ...history.trust,
        pin: signNote(
          checkpointText({ ...history.checkpointAt(size), ...(time !== undefined && { time }) }),
          history.signer,
        ),
      },
    });
    /** As it was when the head of size 20 was the newest. */
    const old = log.slice(
      0,
      log.findIndex((_, n) => log[n]?.id === history.events[23]?.id),
    );
    const report = await verify(old, pin(50));
    expect(report.findings.map(({ code, place }) => [code, place])).to.deep.equal([
      ['missing-event', [23, 50]],
    ]);
    expect(findingText(report.findings[0] as Finding)).to.equal(
      'places 23 to 50: the store ends at size 23, before your pin of size 50: it is a copy that is older than the pin, or ' +
        'history was taken back. Check an old copy with the trust.json that you kept when it was made',
    );
    // Its head of size 20 is of 12:00:20.
    const back = await verify(old, pin(50, '2026-11-21T12:00:19.999Z'));
    expect(back.findings.map(({ code, place }) => [code, place])).to.deep.equal([['taken-back', [23, 50]]]);
    expect(back.findings[0]?.message).to.equal(
      'the store ends at size 23, before your pin of size 50: history was taken back: size 20 was signed at ' +
        '2026-11-21T12:00:20.000Z, after size 50 at 2026-11-21T12:00:19.999Z',
    );
    // Where its own heads are not right, the events may be missing anywhere.
    const holed = await verify(log.toSpliced(at(13), 1), pin(50));
    expect(holed.findings.map(findingText).join('\n')).to.include(
      'places 0 to 50: your pin is of size 50, the log has 49 events: 1 of those since size 0 are missing',
    );
    expect((await verify([], pin(50))).findings.map(findingText).join('\n')).to.include(
      'the store ends at size 0',
    );
  });

  it('says so when trees of tenants were signed that their events do not have', async () => {
    const lying = historyOf(history.events, keyOf('first'), () => 'acme');
    const report = await verify(signedLog(lying, [10]));
    expect(report.findings.map(findingText).join()).to.include('root over the trees of the tenants');
  });

  it('reports that reading ended', async () => {
    const broken = stoppedLog(log);
    const report = await verifyStore({
      ...broken,
      readAll: async function* (options) {
        for await (const event of broken.readAll(options)) {
          if (event.id === history.events[20]?.id) throw new Error('page 3 is damaged');
          yield event;
        }
      },
    });
    expect(report.findings.map(findingText).join()).to.include('page 3 is damaged');
    expect(report).to.include({ signed: 20, leaves: 20, ended: true });
    expect(await verify(log)).not.to.have.property('ended');
  });
});
