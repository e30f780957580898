import { expect } from 'chai';
import { PAGES_AHEAD } from '../../../../src/adapters/audit/line-protocol.ts';
import { createLineThreads } from '../../../../src/adapters/audit/line-threads.ts';
import { BundleInconsistent, type LinePage } from '../../../../src/app/audit/bundle/writer.ts';
import type { LinesAsked } from '../../../../src/app/audit/exports/export-lines.ts';
import type { StubConfig } from '../../../support/audit/stub-lines.ts';

const ASKED: LinesAsked = {
  of: 'events',
  scope: { kind: 'log' },
  range: { from: 0, to: 1 },
  request: { filter: {} },
  productVersion: '1',
};

const pagesOf = (
  config: StubConfig,
  {
    tree = () => 'view',
    signal = new AbortController().signal,
  }: { tree?: () => unknown; signal?: AbortSignal } = {},
): AsyncIterable<LinePage> | undefined =>
  createLineThreads({
    module: new URL('../../../support/audit/stub-lines.ts', import.meta.url).href,
    config,
    tree,
  })(ASKED, signal);

/** The texts of the pages, and what ended them. */
const taken = async (
  pages: AsyncIterable<LinePage> | undefined,
): Promise<{ texts: string[]; error: unknown }> => {
  const texts: string[] = [];
  try {
    for await (const { text } of pages ?? []) texts.push(Buffer.from(text).toString());
    return { texts, error: undefined };
  } catch (error) {
    return { texts, error };
  }
};

describe('lines of exports that are made on a thread of their own', () => {
  it('come in their order with hashes and counts', async () => {
    const pages: LinePage[] = [];
    for await (const page of pagesOf({ pages: 30 }) ?? []) pages.push(page);
    expect(pages.map(({ text }) => Buffer.from(text).toString())).to.deep.equal(
      Array.from({ length: 30 }, (_, n) => `view ${n}\n`),
    );
    expect(pages[7]?.hashes).to.deep.equal(new Uint8Array(32).fill(7));
    expect(pages[7]?.counts).to.deep.equal({ events: 1, full: 1, redacted: 0, withheld: 0 });
  });

  it('are made no further ahead than some pages, however slowly they are taken', async () => {
    const made = new SharedArrayBuffer(4);
    let seen = 0;
    for await (const _page of pagesOf({ pages: 100, made }) ?? []) {
      seen += 1;
      // The one that waits to be handed over, too.
      expect(Atomics.load(new Int32Array(made), 0)).to.be.at.most(seen + PAGES_AHEAD);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(seen).to.equal(100);
  });

  it('end with the reason of the signal, and are not begun behind it', async () => {
    const stop = new AbortController();
    const reason = new Error('called off');
    const iterator = pagesOf({}, { signal: stop.signal })?.[Symbol.asyncIterator]();
    await iterator?.next();
    stop.abort(reason);
    let error: unknown;
    try {
      for (;;) await iterator?.next();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).to.equal(reason);
    expect(await taken(pagesOf({}, { signal: stop.signal }))).to.deep.equal({ texts: [], error: reason });
  });

  it('end with what went wrong: that log and tree differ is told apart', async () => {
    const { texts, error } = await taken(pagesOf({ pages: 2, ends: 'disagrees' }));
    expect(texts).to.have.length(2);
    expect(error).to.be.instanceOf(BundleInconsistent).with.property('message', 'log and tree differ');
    expect((await taken(pagesOf({ pages: 0, ends: 'fails' }))).error)
      .to.be.instanceOf(Error)
      .with.property('message', 'it did not work');
    expect((await taken(pagesOf({ pages: 1, ends: 'exits' }))).error)
      .to.be.instanceOf(Error)
      .with.property('message', 'the thread of an export ended before its time');
  });

  it('are begun again when a rebuild replaced the file before it was opened, and only then', async () => {
    const files = ['old', 'new', 'new'];
    const replaced = await taken(
      pagesOf({ pages: 1, missing: 'old' }, { tree: () => files.shift() ?? 'new' }),
    );
    expect(replaced).to.deep.equal({ texts: ['new 0\n'], error: undefined });
    const { error } = await taken(pagesOf({ pages: 1, missing: 'old' }, { tree: () => 'old' }));
    expect(error).to.have.property('message', 'there is no old');
  });

  it('are not to be had of a view in memory', () => {
    expect(pagesOf({}, { tree: () => ({}) })).to.equal(undefined);
  });
});
