import { expect } from 'chai';
import fc from 'fast-check';
import { InvalidArgumentError } from 'commander';
import { CliFailure } from '../../../src/cli/exit.ts';
import {
  desiredOf,
  identityOf,
  parseDocuments,
  readSource,
  toYaml,
  typed,
} from '../../../src/cli/resources/documents.ts';
import { createKindNames } from '../../../src/cli/resources/kind-names.ts';
import { changedMap, splitChanges } from '../../../src/cli/resources/map-changes.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { INHERITED_NAMES } from '../../support/arbitraries/hostile-names.ts';
import { check, checkAsync } from '../../support/property.ts';

const names = createKindNames(kinds);
const parse = (text: string, kind?: string) =>
  parseDocuments({ file: 'f.yaml', text }, names, kind === undefined ? undefined : names.find(kind));
const failure = async (call: Promise<unknown>): Promise<Error> => {
  const outcome = await call.catch((error: unknown) => error);
  if (outcome instanceof Error) return outcome;
  throw new Error('it was accepted');
};

describe('files of objects', () => {
  it('hold several documents, lists and JSON; each says what it is', async () => {
    const found = await parse(`
kind: cluster
metadata: {name: a}
---
"@type": type.googleapis.com/osac.private.v1.HostType
id: h
---
# nothing here
---
- {kind: host-types, id: i}
- {kind: tenant, metadata: {name: t}}
`);
    expect(found.map(({ kind, where }) => `${kind.singular} ${where}`)).to.deep.equal([
      'cluster f.yaml, document 1',
      'host_type f.yaml, document 2',
      'host_type f.yaml, document 4, entry 1',
      'tenant f.yaml, document 4, entry 2',
    ]);
    expect(found[1]?.document, 'what only says the kind is not sent').to.deep.equal({ id: 'h' });
    const json = await parse('[{"id":"a"},{"id":"b"}]', 'hub');
    expect(json.map(({ document }) => document)).to.deep.equal([{ id: 'a' }, { id: 'b' }]);
  });

  it('are refused whole, with the place of the fault', async () => {
    for (const [text, says] of [
      ['kind: cluster\nkind: hub\n', /f\.yaml: .*unique/],
      ['{"id": "a"', /f\.yaml: /],
      ['', /it holds no object/],
      ['kind: cluster\n---\njust text\n', /document 2: an object is needed/],
      ['kind: volcano\n', /unknown kind "volcano"/],
      ['kind: [a]\n', /"kind" must be the name of a kind/],
      ['kind: hub\n---\nid: x\n', /document 2: say what it is/],
    ] as const)
      expect((await failure(parse(text))).message, text).to.match(says);
    for (const text of ['id: x', 'kind: volcano', '{"@type":"osac.public.v1.Volcano"}', 'kind: [a]'])
      expect(await failure(parse(text)), text).to.be.instanceOf(InvalidArgumentError);
    expect((await failure(parse('kind: "a\\u001b[2J"'))).message).to.not.include('\u001b');
    expect((await failure(parse(`a: &a [1]\nb: [${'*a,'.repeat(200)}]\nkind: hub`))).message).to.match(
      /alias/i,
    );
  });

  it('that cannot be read say so', async () => {
    const stdin = async () => 'kind: hub';
    expect(await readSource('-', stdin)).to.deep.equal({ file: 'stdin', text: 'kind: hub' });
    const missing = await failure(readSource('no/such/file.yaml', stdin));
    expect(missing)
      .to.be.instanceOf(CliFailure)
      .with.property('message', 'cannot read no/such/file.yaml: no such file or directory');
  });

  it('what get prints as YAML is read back as it was', async () => {
    const hub = names.find('hub');
    const value = fc.dictionary(
      fc.string().filter((key) => !['__proto__', 'kind', '@type'].includes(key)),
      fc.oneof(
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constantFrom('yes', 'null', '1e3', '2026-11-21', '~', '|', '- a'),
      ),
    );
    await checkAsync(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 3 }), async (objects) => {
        const plain = objects.map((object) => ({ id: 'x', spec: { ...object } }) as JsonObject);
        const found = await parse(await toYaml(plain.map((object) => typed(hub, 'private', object))));
        expect(found.map(({ document }) => document)).to.deep.equal(plain);
      }),
      { numRuns: 50 },
    );
  });

  it('give what is the caller’s: no status, no stamps; the version is the state the file was made from', () => {
    const metadata = { name: 'a', labels: { x: 'y' }, creation_timestamp: 'c', creator: 'u', version: 7 };
    expect(desiredOf({ id: '1', metadata, spec: {}, status: { state: 'S' } })).to.deep.equal({
      desired: { id: '1', spec: {}, metadata: { name: 'a', labels: { x: 'y' } } },
      version: 7,
    });
    expect(desiredOf({ id: '1' })).to.deep.equal({ desired: { id: '1' } });
  });

  it('name an object by id, by name, or as the service derives the name', () => {
    expect(identityOf(names.find('cluster'), { id: 'i', metadata: { name: 'n' } })).to.deep.equal({
      id: 'i',
    });
    expect(identityOf(names.find('cluster'), { metadata: { name: 'n' } })).to.deep.equal({ name: 'n' });
    expect(identityOf(names.find('cluster'), {})).to.deep.equal({});
    const { name = '' } = identityOf(names.find('cluster_version'), { spec: { version: '4.17.0' } });
    expect(name).to.match(/^4-17-0-[0-9a-f]{4}$/);
  });
});

describe('changes of labels and annotations', () => {
  it('are told from names: = sets, a trailing - removes', () => {
    expect(splitChanges(['web', 'env=prod', 'old-', 'empty=', 'note=a=b-'])).to.deep.equal({
      names: ['web'],
      changes: [
        { key: 'env', value: 'prod' },
        { key: 'old', value: undefined },
        { key: 'empty', value: '' },
        { key: 'note', value: 'a=b-' },
      ],
    });
    for (const [args, says] of [
      [['web'], 'give what to change'],
      [['a=b'], 'give the id or name'],
      [['web', '=b'], 'has no key'],
      [['web', 'a=b', 'a-'], '"a" is given more than once'],
    ] as const)
      expect(() => splitChanges(args), args.join(' ')).to.throw(InvalidArgumentError, says);
  });

  it('set what is asked, keep the rest, and know when nothing changes', () => {
    expect(changedMap({ a: '1', b: '2' }, [{ key: 'a', value: undefined }])).to.deep.equal({ b: '2' });
    expect(changedMap({ a: '1' }, [{ key: 'a', value: undefined }]), 'the last one').to.deep.equal({});
    expect(
      changedMap({ a: '1' }, [
        { key: 'a', value: '1' },
        { key: 'x', value: undefined },
      ]),
    ).to.equal(undefined);
    expect(changedMap({ a: '' }, [{ key: 'b', value: '' }])).to.deep.equal({ a: '', b: '' });
  });

  it('take any key, those of every object too', () => {
    const key = fc.oneof(fc.string(), fc.constantFrom(...INHERITED_NAMES));
    check(
      fc.property(fc.dictionary(key, fc.string()), key, fc.string(), (before, name, value) => {
        const set = changedMap(before, [{ key: name, value }]) ?? before;
        expect(Object.getOwnPropertyDescriptor(set, name)?.value).to.equal(value);
        const gone = changedMap(set, [{ key: name, value: undefined }]) ?? {};
        expect(Object.hasOwn(gone, name)).to.equal(false);
        for (const other of Object.keys(before))
          if (other !== name) expect(Object.hasOwn(gone, other), other).to.equal(true);
      }),
    );
  });
});
