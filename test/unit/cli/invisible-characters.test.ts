import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { clusterOf, startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

/** Each would show one id as another: reordered, cut, or with a part that nobody sees. */
const SLY = ['\u202e', '\u2066', '\u200b', '\u00ad', '\u2028', '\u2800', '\u{e0041}', '\u009b', '\u00a0'];
const SEEN = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u00a0]/u;

describe('ledgerctl never prints what nobody sees or what turns text around', () => {
  let cli: CliStub;
  const objects = SLY.map((character, i) => ({
    ...clusterOf(`id-${i}${character}moc`, `n${i}`, { description: `d${character}` }),
    title: `t${character}`,
  }));
  beforeEach(async () => {
    cli = await startCliStub();
    cli.holds(...objects);
  });
  afterEach(() => cli.close());

  for (const form of ['table', 'wide', 'name', 'json', 'yaml'])
    it(`in the output ${form}`, async () => {
      const out = await cli.succeeds(['get', 'clusters', ...(form === 'table' ? [] : ['-o', form])]);
      expect(out).not.to.match(SEEN);
      expect(out).to.include(form === 'name' ? 'cluster/n0' : 'moc');
    });

  it('and shows that it is there', async () => {
    const out = await cli.succeeds(['get', 'clusters', '-o', 'wide']);
    expect(out).to.include('id-0\\u202emoc').and.include('id-6\\udb40\\udc41moc');
  });

  it('while JSON and YAML say the same as before', async () => {
    const [json, yaml] = [
      await cli.succeeds(['get', 'clusters', '-o', 'json']),
      await cli.succeeds(['get', 'clusters', '-o', 'yaml']),
    ];
    const idsOf = (documents: unknown): unknown[] => (documents as { id: string }[]).map(({ id }) => id);
    const wanted = objects.map(({ id }) => id);
    expect(idsOf(JSON.parse(json))).to.deep.equal(wanted);
    expect(idsOf(parseAllDocuments(yaml).map((document) => document.toJS()))).to.deep.equal(wanted);
  });

  it('in errors', async () => {
    const { err } = await cli.run(['get', 'clusters', 'id\u202emoc']);
    expect(err).not.to.match(SEEN);
  });
});
