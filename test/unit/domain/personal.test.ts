import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import {
  encryptedIn,
  isEncrypted,
  revealed,
  revealing,
  subjectOf,
  type Encrypted,
} from '../../../src/domain/personal.ts';
import type { ResourceView } from '../../../src/domain/resource.ts';
import { check } from '../../support/property.ts';

/** A stand-in for encryption: the clear text is the ciphertext, marked. */
const seal = (text: string, subject = 's'): Encrypted & JsonObject => ({
  alg: 'A256GCM',
  keyId: `${subject}.1`,
  nonce: 'n',
  ct: text,
  tag: 't',
});
const open = (values: readonly Encrypted[]) =>
  values.map((value) => (value.keyId === 'gone.1' ? undefined : value.ct));

describe('personal data of documents', () => {
  it('is opened wherever it stands, and the rest stays as it is', () => {
    const document = {
      metadata: { name: seal('ann'), labels: { a: 'b' } },
      spec: {
        users: [
          { id: '1', name: seal('bob', 'x.y') },
          { id: '2', name: seal('eve', 'gone') },
        ],
        size: 0,
      },
    };
    expect(revealed(document, open)).to.deep.equal({
      metadata: { name: 'ann', labels: { a: 'b' } },
      spec: {
        users: [
          { id: '1', name: 'bob' },
          { id: '2', name: 'erased' },
        ],
        size: 0,
      },
    });
    expect(subjectOf(seal('bob', 'x.y'))).to.equal('x.y');
    expect(subjectOf({ ...seal('x'), keyId: 'no-generation' })).to.equal('');
  });

  it('is told from what only looks like it', () => {
    for (const value of [null, 'x', [], {}, { ...seal('x'), alg: 'none' }, { ...seal('x'), ct: 1 }])
      expect(isEncrypted(value), JSON.stringify(value)).to.equal(false);
    const document = { alg: 'A256GCM', keyId: 's.1' };
    expect(revealed(document, open)).to.equal(document);
  });

  it('is all found, and nothing is left of it once it was opened, whatever surrounds it', () => {
    const leaf = fc.oneof(
      fc.string().map((text): JsonValue => seal(text)),
      fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
    );
    const { tree } = fc.letrec<{ tree: JsonValue }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie('tree'), { maxKeys: 3 }),
      ),
    }));
    check(
      fc.property(tree, (value) => {
        const document = { value };
        const shown = revealed(document, open);
        expect(encryptedIn(shown)).to.deep.equal([]);
        const count = JSON.stringify(document).split('"alg":"A256GCM"').length - 1;
        expect(encryptedIn(document).length).to.be.at.most(count);
        if (encryptedIn(document).length === 0) expect(shown).to.equal(document);
      }),
    );
  });

  const kindWith = (view: ResourceView, personal?: readonly string[]) => ({
    kind: 'user',
    ...(personal === undefined ? {} : { personal }),
    view: (): ResourceView => view,
  });
  const view = (name: JsonValue, claimed = 'p00'): ResourceView => ({
    exists: true,
    archived: false,
    id: 'u',
    tenant: 't1',
    project: '',
    name: claimed,
    creationTimestamp: '2026-11-21T00:00:00Z',
    document: { id: 'u', metadata: { name } },
  });

  it('changes nothing of kinds without any', () => {
    const kind = kindWith(view('x'));
    expect(revealing(kind, { open })).to.equal(kind);
  });

  it('shows the name and keeps what is reserved in its place', () => {
    const shown = revealing(kindWith(view(seal('ann')), ['metadata.name']), { open }).view();
    expect(shown).to.include({ name: 'ann', claimedName: 'p00' });
    const erased = revealing(kindWith(view(seal('ann', 'gone')), ['metadata.name']), { open });
    expect(erased.view()).to.include({ name: 'erased', claimedName: 'p00' });
  });

  it('reserves the same for a name that is still in clear, as in a rehearsed command', () => {
    const nameToken = (kind: string, tenant: string, name: string) => `${kind}/${tenant}/${name}`;
    const kind = revealing(kindWith(view('ann', 'ann'), ['metadata.name']), { open, nameToken });
    expect(kind.view()).to.include({ name: 'ann', claimedName: 'user/t1/ann' });
  });

  it('has nothing to show of what does not exist', () => {
    const kind = revealing(kindWith({ exists: false }, ['metadata.name']), { open });
    expect(kind.view()).to.deep.equal({ exists: false });
  });
});
