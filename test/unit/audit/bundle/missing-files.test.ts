import { expect } from 'chai';
import { missingFiles } from '../../../../src/app/audit/bundle/missing-files.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import { writeBundle } from '../../../../src/app/audit/bundle/writer.ts';
import {
  contentOf,
  eventsOf,
  historyOf,
  memorySink,
  memorySource,
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
    expect(missingFiles(['one/file.json', 'top.json', 'two/a/x', 'two/b/y'], ['other/two/a'])).to.deep.equal([
      ...['one/file.json', 'top.json'].map((file) => ({
        code: 'missing-file',
        file,
        message: 'the manifest lists it, the bundle does not hold it',
      })),
      {
        code: 'missing-file',
        file: 'two/',
        files: ['two/a/x', 'two/b/y'],
        message: 'the whole folder is missing: the manifest lists 2 files in it',
      },
    ]);
  });
});
