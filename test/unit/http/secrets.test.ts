import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ResourceKind } from '../../../src/domain/resource.ts';
import { ApiError } from '../../../src/http/errors.ts';
import {
  changedSecrets,
  newValues,
  storeSecrets,
  takeSecrets,
  withoutSecrets,
} from '../../../src/http/osac/secrets.ts';
import { memorySecrets } from '../../support/http/service.ts';

type Rules = Pick<ResourceKind, 'kind' | 'secrets'>;
const map: Rules = {
  kind: 'secret',
  secrets: [{ path: 'data.*', kind: 'secret-data', reads: 'absent', encoding: 'base64' }],
};
const single: Rules = {
  kind: 'identityProvider',
  secrets: [{ path: 'spec.oidc.client_secret', kind: 'client-secret', reads: 'absent', encoding: 'text' }],
};
const starred: Rules = {
  kind: 'cluster',
  secrets: [{ path: 'spec.pull_secret', kind: 'pull-secret', reads: '***', encoding: 'text' }],
};
const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** What an update does: `merged` is given, as the update rule makes it. */
const change = (
  rules: Rules,
  before: JsonObject,
  merged: JsonObject,
  present: JsonObject,
  stored: readonly string[],
  updateMask?: readonly string[],
) => {
  const message = { present, ...(updateMask === undefined ? {} : { updateMask }) };
  const { values, removed } = changedSecrets(rules, before, merged, message, stored);
  return { set: values.map(({ path }) => path), removed: [...removed] };
};

describe('write-only fields', () => {
  it('are taken out of a new object, every entry of a map by its key', () => {
    const data = { 'tls.crt': b64('C'), __proto__x: b64(''), constructor: b64('D') };
    const { document, values } = takeSecrets(map, { metadata: { name: 's' }, data });
    expect(document).to.deep.equal({ metadata: { name: 's' } });
    expect(values.map(({ path, value }) => [path, Buffer.from(value).toString()])).to.deep.equal([
      ['data.tls.crt', 'C'],
      ['data.__proto__x', ''],
      ['data.constructor', 'D'],
    ]);
  });

  it('an entry named __proto__ is an entry like any other', () => {
    const data = JSON.parse(`{"__proto__":"${b64('x')}"}`) as JsonObject;
    expect(takeSecrets(map, { data }).values.map(({ path }) => path)).to.deep.equal(['data.__proto__']);
  });

  it('what reads show is refused where a secret is due; so are too many entries', () => {
    expect(() => takeSecrets(starred, { spec: { pull_secret: '***' } })).to.throw(ApiError, /secret itself/);
    const data = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, b64('v')]));
    expect(() => takeSecrets(map, { data })).to.throw(ApiError, /at most 200 entries/);
  });

  it('are not left in what is stored', () => {
    expect(withoutSecrets(map, { data: { a: 'x' }, backend: 'B' })).to.deep.equal({ backend: 'B' });
    expect(withoutSecrets(single, { spec: { oidc: { client_secret: 's', issuer: 'i' } } })).to.deep.equal({
      spec: { oidc: { issuer: 'i' } },
    });
  });

  describe('in a map, on update', () => {
    const stored = ['data.a', 'data.b.c'];
    it('the map as a whole is replaced', () => {
      const data = { a: b64('1'), n: b64('2') };
      expect(change(map, {}, { data }, { data }, stored)).to.deep.equal({
        set: ['data.a', 'data.n'],
        removed: ['data.b.c'],
      });
    });
    for (const [what, data] of [
      ['null', null],
      ['{}', {}],
    ] as const)
      it(`${what} clears it`, () => {
        expect(change(map, {}, {}, { data }, stored)).to.deep.equal({ set: [], removed: stored });
      });
    it('a body that does not name it leaves it alone', () => {
      expect(change(map, {}, {}, { metadata: {} }, stored)).to.deep.equal({ set: [], removed: [] });
    });
    it('a mask that names one key changes that key only', () => {
      const data = { a: b64('1') };
      expect(change(map, {}, { data }, { data }, stored, ['data.a'])).to.deep.equal({
        set: ['data.a'],
        removed: [],
      });
      expect(change(map, {}, {}, {}, stored, ['data.b.c'])).to.deep.equal({ set: [], removed: ['data.b.c'] });
      expect(change(map, {}, { data }, { data }, [...stored, 'data.a.x'], ['data.a']).removed).to.deep.equal(
        [],
      );
    });
    it('a mask that names the map replaces it, and clears it when the body does not hold it', () => {
      const data = { a: b64('1') };
      expect(change(map, {}, { data }, { data }, stored, ['data']).removed).to.deep.equal(['data.b.c']);
      expect(change(map, {}, {}, {}, stored, ['data']).removed).to.deep.equal(stored);
    });
    it('a mask that names something else leaves it alone, whatever the body holds', () => {
      expect(change(map, {}, {}, { data: null }, stored, ['metadata.labels']).removed).to.deep.equal([]);
    });
  });

  describe('that reads never show, on update', () => {
    const stored = ['spec.oidc.client_secret'];
    const before = { spec: { title: 'T', oidc: { issuer: 'i' } } };
    it('stay when the object is sent back as it was read', () => {
      expect(change(single, before, before, before, stored)).to.deep.equal({ set: [], removed: [] });
      expect(change(single, before, before, before, stored, ['spec']).removed).to.deep.equal([]);
    });
    it('are replaced by a new value', () => {
      const sent = { spec: { oidc: { client_secret: 'n' } } };
      expect(change(single, before, sent, sent, stored).set).to.deep.equal(stored);
    });
    for (const key of ['client_secret', 'clientSecret'])
      for (const value of [null, ''])
        it(`go when ${key} is ${JSON.stringify(value)}`, () => {
          const present = { spec: { oidc: { [key]: value } } };
          expect(change(single, before, before, present, stored).removed).to.deep.equal(stored);
        });
    it('go with the message around them', () => {
      const merged = { spec: { title: 'T' } };
      for (const oidc of [null, {}])
        expect(change(single, before, merged, { spec: { oidc } }, stored).removed).to.deep.equal(stored);
      expect(change(single, before, merged, {}, stored, ['spec.oidc']).removed).to.deep.equal(stored);
    });
    it('go when a mask names them and the body does not', () => {
      for (const path of ['spec.oidc.client_secret', 'spec.oidc.clientSecret'])
        expect(change(single, before, before, {}, stored, [path]).removed).to.deep.equal(stored);
    });
    it('nothing is removed that is not there', () => {
      const present = { spec: { oidc: { client_secret: null } } };
      expect(change(single, before, before, present, []).removed).to.deep.equal([]);
    });
  });

  it('that show as *** stay when *** is sent, and go when they are cleared', () => {
    const stored = ['spec.pull_secret'];
    const shown = { spec: { pull_secret: '***', ssh_public_key: 'k' } };
    expect(change(starred, shown, shown, shown, stored)).to.deep.equal({ set: [], removed: [] });
    const cleared = { spec: { ssh_public_key: 'k' } };
    expect(change(starred, shown, cleared, { spec: { pull_secret: null } }, stored).removed).to.deep.equal(
      stored,
    );
  });

  it('that are sent again as they are stored are no change', async () => {
    const store = memorySecrets();
    const owner = { kind: 'secret', id: 's1', tenant: 't1' };
    const { values } = takeSecrets(map, { data: { a: b64('1'), b: b64('2') } });
    const refs = await storeSecrets(store, owner, { commandId: 'c', requestHash: 'h' }, values);
    const again = takeSecrets(map, { data: { a: b64('1'), b: b64('3'), c: b64('4') } }).values;
    const changed = await newValues(store, again, refs, 't1');
    expect(changed.map(({ path }) => path)).to.deep.equal(['data.b', 'data.c']);
  });

  it('that cannot be read any more are replaced', async () => {
    const store = { ...memorySecrets(), reveal: () => Promise.reject(new Error('tampered with')) };
    const owner = { kind: 'secret', id: 's1', tenant: 't1' };
    const { values } = takeSecrets(map, { data: { a: b64('1') } });
    const refs = await storeSecrets(store, owner, { commandId: 'c', requestHash: 'h' }, values);
    expect(await newValues(store, values, refs, 't1')).to.deep.equal(values);
  });

  it('are not stored by a dry run', async () => {
    const store = memorySecrets();
    const owner = { kind: 'secret', id: 's1', tenant: 't1' };
    const { values } = takeSecrets(map, { data: { a: b64('1') } });
    const command = { commandId: 'c', requestHash: 'h', dryRun: true } as const;
    const refs = await storeSecrets(store, owner, command, values);
    expect(Object.keys(refs)).to.deep.equal(['data.a']);
    expect(store.values.size).to.equal(0);
  });
});
