import { expect } from 'chai';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import {
  contentOf,
  eventsOf,
  historyOf,
  memorySink,
  memorySource,
  writeBundle,
} from '../../../support/audit/signed-history.ts';

const history = historyOf(eventsOf(20));

describe('files that a bundle lists and does not hold', () => {
  it('are named one by one, those of a folder of which nothing is left at once', async () => {
    const names = ['ClusterDeleted', 'ClusterOrdered', 'ClusterScaled'].map((type) => `schemas/${type}.json`);
    const schemas = { ClusterDeleted: {}, ClusterOrdered: {}, ClusterScaled: {} };
    const without = async (gone: readonly string[]): Promise<BundleReport> => {
      const { sink, files } = memorySink();
      await writeBundle({ ...contentOf(history), schemas }, sink);
      for (const name of gone) expect(files.delete(name), name).to.equal(true);
      return verifyBundle(memorySource(files), { trust: history.trust });
    };
    expect((await without([])).ok).to.equal(true);
    expect((await without(names)).findings).to.deep.equal([
      {
        code: 'missing-file',
        file: 'schemas/',
        files: names,
        message: 'the whole folder is missing: the manifest lists 3 files in it',
      },
    ]);
    expect((await without(names.slice(1))).findings.map(({ file }) => file)).to.deep.equal(names.slice(1));
  });
});
