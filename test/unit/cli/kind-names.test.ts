import { expect } from 'chai';
import { InvalidArgumentError } from 'commander';
import { COLUMNS } from '../../../src/cli/resources/columns.ts';
import { createKindNames } from '../../../src/cli/resources/kind-names.ts';
import { kinds, type AnyKind } from '../../../src/domain/kinds.ts';

const declared = (kind: string, more: object = {}): AnyKind =>
  ({
    kind,
    collection: `${kind}s`,
    message: kind,
    service: `${kind}s`,
    words: kind,
    ...more,
  }) as unknown as AnyKind;

describe('names of kinds on the command line', () => {
  const names = createKindNames(kinds);
  const meant = (text: string): string => names.find(text).kind.kind;

  it('every declared kind is found by collection, singular, plural, message and words', () => {
    for (const { kind, collection, message, service, words } of kinds)
      for (const text of [
        kind,
        collection,
        message,
        service,
        words,
        collection.replaceAll('_', '-'),
        words.toUpperCase(),
      ])
        expect(meant(text), text).to.equal(kind);
  });

  it('takes initials and the beginning of one name', () => {
    expect(meant('ct')).to.equal('clusterTemplate');
    expect(meant('ht')).to.equal('hostType');
    expect(meant('ten')).to.equal('tenant');
    expect(meant('cluster'), 'a whole name wins over beginnings').to.equal('cluster');
  });

  it('says what there is, or what may be meant', () => {
    expect(() => meant('lease')).to.throw(
      InvalidArgumentError,
      'unknown kind "lease": bare_metal_instance, ',
    );
    expect(() => meant('cluster_')).not.to.throw();
    expect(() => meant('clustert')).not.to.throw();
    expect(() => meant('clu')).to.throw('"clu" may mean several kinds: cluster, cluster_');
    expect(() => meant('te')).to.throw('unknown kind "te"');
    for (const text of ['constructor', '__proto__', '']) expect(() => meant(text)).to.throw('unknown kind');
  });

  it('initials of two kinds are nobody’s', () => {
    const two = createKindNames([declared('diskImage'), declared('dataIndex')]);
    expect(two.all.map(({ alias }) => alias)).to.deep.equal([undefined, undefined]);
    expect(() => two.find('di')).to.throw('unknown kind "di"');
  });

  it('columns are for kinds that exist', () => {
    expect(kinds.map(({ kind }) => kind)).to.include.members(Object.keys(COLUMNS));
  });
});
