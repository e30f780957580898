import { expect } from 'chai';
import type { BundleLine, BundleSink } from '../../../../src/app/audit/bundle/format.ts';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import { BundleInconsistent } from '../../../../src/app/audit/bundle/writer.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import {
  bundleOf,
  contentOf,
  eventsOf,
  historyOf,
  lineOf,
  memorySink,
  memorySource,
  textOf,
  type MemoryBundle,
  writeBundle,
} from '../../../support/audit/signed-history.ts';

const SIZE = 60;
const history = historyOf(eventsOf(SIZE));

const verify = (files: MemoryBundle, trust = history.trust, chunk?: number): Promise<BundleReport> =>
  verifyBundle(memorySource(files, chunk), { trust });
const texts = ({ findings }: BundleReport): string => findings.map(findingText).join('\n');

describe('export bundles', () => {
  for (const [what, ask] of [
    ['the whole log', {}],
    ['one tenant', { tenant: 'acme' }],
    ['the service itself', { tenant: '' }],
    ['a part of the log', { from: 13, to: 37 }],
    ['a part of a tenant', { tenant: 'globex', from: 3, to: 9 }],
    ['nothing', { from: 20, to: 20 }],
    ['nothing, at the beginning', { to: 0 }],
    ['an older checkpoint', { at: 33 }],
  ] as const)
    it(`prove ${what}`, async () => {
      const files = await bundleOf(history, ask);
      const report = await verify(files);
      expect(report.findings, texts(report)).to.deep.equal([]);
      expect(report.ok).to.equal(true);
      expect(report.keys).to.equal('pinned');
      expect(report.counts.events).to.equal(textOf(files, 'events.ndjson').split('\n').length - 1);
      expect(report.counts.full).to.equal(report.counts.events);
      const [first, last] = textOf(files, 'events.ndjson')
        .split('\n')
        .flatMap((text) => /"occurredAt":"([^"]+)"/.exec(text)?.slice(1) ?? [])
        .reduce<[string?, string?]>(([begin], at) => [begin ?? at, at], []);
      expect(report.occurred).to.deep.equal({ first: first ?? '', last: last ?? '' });
      // However the bytes come.
      expect(await verify(files, history.trust, 7)).to.deep.equal(report);
    });

  it('count what is redacted or withheld, of which less is proven', async () => {
    const show = (_: unknown, place: number) =>
      (['full', 'redacted', 'withheld'] as const)[place % 3] ?? 'full';
    const report = await verify(await bundleOf(history, { show }));
    expect(report.findings, texts(report)).to.deep.equal([]);
    expect(report.counts).to.deep.equal({ events: 60, full: 20, redacted: 20, withheld: 20 });
    expect(report.withheldBy).to.deep.equal({ filter: 0, audience: 20 });
    expect(report.proven.join()).to.include('withheld events: they exist');
  });

  it('hold what has no canonical form, and names that every object inherits', async () => {
    const hostile = JSON.parse(
      '{"__proto__":{"a":1},"constructor":"c","half":"\\ud800","1e3":1000,"b":-0}',
    ) as JsonObject;
    const odd = historyOf(
      history.events.map((event, n) => (n === 9 ? { ...event, data: { ...event.data, ...hostile } } : event)),
    );
    const files = await bundleOf(odd);
    const report = await verify(files);
    expect(report.findings, texts(report)).to.deep.equal([]);
    files.set('events.ndjson', Buffer.from(textOf(files, 'events.ndjson').replace('\\ud800', '\\ud801')));
    expect((await verify(files)).findings[0]).to.include({ code: 'content', place: 9 });
  });

  it('say whose keys were taken when nobody pins any', async () => {
    const report = await verifyBundle(memorySource(await bundleOf(history)));
    expect([report.ok, report.keys, report.pin]).to.deep.equal([true, 'from the bundle', 'none']);
  });

  it('are not written of events that were not signed', async () => {
    const write = (change: (lines: BundleLine[]) => BundleLine[]) => {
      const content = contentOf(history);
      return writeBundle(
        { ...content, lines: change([...(content.lines as BundleLine[])]) },
        memorySink().sink,
      );
    };
    for (const change of [
      (lines: BundleLine[]) => lines.slice(1),
      (lines: BundleLine[]) => lines.toReversed(),
      (lines: BundleLine[]) => [...lines, lineOf(history, 0)],
    ]) {
      const error = await write(change).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).to.be.instanceOf(BundleInconsistent);
    }
    const none = await bundleOf(history, { tenant: 'nobody' }).catch(String);
    expect(none).to.include('knows no tree of this tenant');
  });

  it('leave no file open, whatever breaks them off', async () => {
    let open = 0;
    const sink: BundleSink = {
      file: async () => {
        open += 1;
        return {
          write: async () => undefined,
          close: async () => {
            open -= 1;
          },
        };
      },
    };
    const lines = async function* (): AsyncGenerator<BundleLine> {
      yield* contentOf(history).lines as BundleLine[];
      throw new Error('called off');
    };
    const error = await writeBundle({ ...contentOf(history), lines: lines() }, sink).catch(String);
    expect(error).to.equal('Error: called off');
    expect(open).to.equal(0);
  });

  it('say what broke them off, also where the file does not close then', async () => {
    const sink: BundleSink = {
      file: async () => ({
        write: () => Promise.reject(new Error('no space')),
        close: () => Promise.reject(new Error('not synced')),
      }),
    };
    expect(await writeBundle(contentOf(history), sink).catch(String)).to.equal('Error: no space');
  });
});
