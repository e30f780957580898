import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt, valueAt } from '../../../src/domain/json-tools.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { resolveReferences, type Home, type ReferenceRules } from '../../../src/http/osac/references.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../../../src/projections/read-models.ts';

const row = (id: string, name: string, tenant: string, project = '', kind = 'hostType'): ResourceRow => ({
  kind,
  id,
  name,
  tenant,
  project,
  revision: 0,
  version: 0,
  position: '0',
  deleting: false,
  publicJson: '{}',
  privateJson: '{}',
});

const ROWS = [
  row('s-small', 'small', 'shared'),
  row('t1-small', 'small', 't1'),
  row('t1-p-small', 'small', 't1', 'p'),
  row('t1-q-only', 'only-q', 't1', 'q'),
  row('t1-a-twin', 'twin', 't1', 'a'),
  row('t1-b-twin', 'twin', 't1', 'b'),
  row('s-big', 'big', 'shared'),
  row('s-x-pair', 'pair', 'shared', 'x'),
  row('s-y-pair', 'pair', 'shared', 'y'),
  row('t2-foreign', 'foreign', 't2'),
];

/** Answers as the read model does, and counts the statements. */
const reader = () => {
  const calls: string[] = [];
  const seen = (visibility: Visibility) => (one: ResourceRow) =>
    'all' in visibility || visibility.tenants.includes(one.tenant);
  const resources = {
    get: (kind: string, id: string, visibility: Visibility) => {
      calls.push('get');
      return ROWS.filter(seen(visibility)).find((one) => one.kind === kind && one.id === id);
    },
    findByName: (kind: string, name: string, visibility: Visibility) => {
      calls.push('findByName');
      return ROWS.filter(seen(visibility)).filter((one) => one.kind === kind && one.name === name);
    },
  } as unknown as ResourceReader;
  return { resources, calls };
};

const rules = (...references: ReferenceRules['references']): ReferenceRules => ({
  references,
  messageOf: (kind) => kind[0]?.toUpperCase() + kind.slice(1),
});
const FULL = rules({ path: 'spec.ref', kind: 'hostType', scope: 'full' });
const LOCAL = rules({ path: 'spec.ref', kind: 'hostType', scope: 'local' });
const t1: Home = { tenant: 't1', project: 'p' };
const ofT1: Visibility = { tenants: ['t1', 't2', 'shared'] };

type Where = { home?: Home; visibility?: Visibility; of?: ReferenceRules };
const resolve = (ref: JsonObject, { home = t1, visibility = ofT1, of = FULL }: Where = {}): string => {
  const { document } = resolveReferences(of, { spec: { ref } }, home, reader().resources, visibility);
  return stringAt(valueAt(document, 'spec.ref'), 'id');
};
const refusal = (run: () => unknown): ApiError => {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('expected a refusal');
};

/** Object references, with the scopes in which a name is looked for. */
describe('references', () => {
  describe('by name', () => {
    it('the own project comes first, then the own tenant, then what is shared', () => {
      expect(resolve({ name: 'small' })).to.equal('t1-p-small');
      expect(resolve({ name: 'small' }, { home: { tenant: 't1', project: '' } })).to.equal('t1-small');
      expect(resolve({ name: 'small' }, { home: { tenant: 't2', project: '' } })).to.equal('s-small');
      expect(resolve({ name: 'only-q' })).to.equal('t1-q-only');
      expect(resolve({ name: 'big' })).to.equal('s-big');
    });
    it('more than one in the same scope is an error that says so', () => {
      for (const name of ['twin', 'pair']) {
        const error = refusal(() => resolve({ name }));
        expect(error.status).to.equal(400);
        expect(error.message).to.match(
          new RegExp(`^reference validation failed: object\\.spec\\.ref: HostType "${name}" is ambiguous`),
        );
      }
      expect(resolve({ name: 'twin' }, { home: { tenant: 't1', project: 'b' } })).to.equal('t1-b-twin');
    });
    it('project and shared say where to look', () => {
      expect(resolve({ name: 'twin', project: 'a' })).to.equal('t1-a-twin');
      expect(resolve({ name: 'small', shared: true })).to.equal('s-small');
      expect(resolve({ name: 'pair', project: 'y', shared: true })).to.equal('s-y-pair');
      expect(refusal(() => resolve({ name: 'only-q', project: 'p' })).message).to.contain('not found');
      expect(refusal(() => resolve({ id: 't1-small', shared: true })).message).to.contain('not found');
    });
    it('names of other tenants are not found, not even by admins', () => {
      for (const visibility of [ofT1, { all: true }] as const)
        expect(refusal(() => resolve({ name: 'foreign' }, { visibility })).message).to.contain('not found');
    });
  });

  describe('by id', () => {
    it('finds the object, and fills in its name', () => {
      const { document, found } = resolveReferences(
        FULL,
        { spec: { ref: { id: 's-big' } } },
        t1,
        reader().resources,
        ofT1,
      );
      expect(document).to.deep.equal({ spec: { ref: { id: 's-big', name: 'big' } } });
      expect(found.get('spec.ref')?.id).to.equal('s-big');
    });
    it('a name where the id belongs is understood', () => {
      expect(resolve({ id: 'big' })).to.equal('s-big');
    });
    it('an id and the name of another object mean nothing', () => {
      expect(refusal(() => resolve({ id: 's-big', name: 'small' })).message).to.contain('"s-big" not found');
    });
    it("another tenant's object is as absent as one that never was: same text, same statements", () => {
      const asked = ['t2-foreign', 'nonsense'].map((id) => {
        const { resources, calls } = reader();
        const error = refusal(() => resolveReferences(FULL, { spec: { ref: { id } } }, t1, resources, ofT1));
        return { calls, text: error.message.replaceAll(id, 'ID') };
      });
      expect(asked[0]).to.deep.equal(asked[1]);
    });
    it('admins connect tenants by id', () => {
      expect(resolve({ id: 't2-foreign' }, { visibility: { all: true } })).to.equal('t2-foreign');
    });
  });

  it('local ones lie in the own project, else in the own tenant, and nowhere else', () => {
    expect(resolve({ name: 'small' }, { of: LOCAL })).to.equal('t1-p-small');
    expect(resolve({ name: 'only-q' }, { of: LOCAL })).to.equal('t1-q-only');
    for (const id of ['t1-p-small', 't1-small', 't1-q-only'])
      expect(resolve({ id }, { of: LOCAL })).to.equal(id);
    expect(refusal(() => resolve({ name: 'twin' }, { of: LOCAL })).message).to.contain('is ambiguous');
    for (const visibility of [ofT1, { all: true }] as const)
      for (const ref of [{ id: 's-big' }, { name: 'big' }, { id: 't2-foreign' }, { name: 'foreign' }])
        expect(refusal(() => resolve(ref, { of: LOCAL, visibility })).message).to.contain('not found');
  });
  it("local ones say the same of what is shared, another tenant's and absent, by the same statements", () => {
    const asked = ['s-big', 't2-foreign', 'nonsense'].map((id) => {
      const { resources, calls } = reader();
      const error = refusal(() => resolveReferences(LOCAL, { spec: { ref: { id } } }, t1, resources, ofT1));
      return { calls, text: error.message.replaceAll(id, 'ID') };
    });
    expect(asked[1]).to.deep.equal(asked[2]);
    expect(asked[0]).to.deep.equal(asked[2]);
  });

  describe('in maps and lists', () => {
    const many = rules(
      { path: 'sets.*.host', kind: 'hostType', scope: 'full' },
      { path: 'list.*', kind: 'hostType', scope: 'full' },
    );
    it('each is resolved where it stands', () => {
      const sent = {
        sets: { 'a.b': { host: { name: 'big' }, size: 1 }, c: { size: 2 } },
        list: [{ id: 's-small' }, { name: 'big' }],
      };
      const { document, found } = resolveReferences(many, sent, t1, reader().resources, ofT1);
      expect(document).to.deep.equal({
        sets: { 'a.b': { host: { id: 's-big', name: 'big' }, size: 1 }, c: { size: 2 } },
        list: [
          { id: 's-small', name: 'small' },
          { id: 's-big', name: 'big' },
        ],
      });
      expect([...found.keys()]).to.deep.equal(['sets.a.b.host', 'list.0', 'list.1']);
    });
    it('all that is wrong is said at once, each with its field', () => {
      const error = refusal(() =>
        resolveReferences(
          many,
          { sets: { a: { host: {} } }, list: [{ name: 'nope' }] },
          t1,
          reader().resources,
          ofT1,
        ),
      );
      expect(error.message).to.equal(
        'reference validation failed: object.sets.a.host: HostType reference must specify id or name; ' +
          'object.list.0: HostType "nope" not found',
      );
      expect(error.options.violations).to.deep.equal([
        { field: 'object.sets.a.host', description: 'HostType reference must specify id or name' },
        { field: 'object.list.0', description: 'HostType "nope" not found' },
      ]);
    });
  });

  it('what an object refers to already stays, also when it is gone meanwhile', () => {
    const stored = { spec: { ref: { id: 'gone', name: 'gone-name' } } };
    const { resources, calls } = reader();
    for (const ref of [{ id: 'gone' }, { name: 'gone-name' }, { id: 'gone', name: 'gone-name' }]) {
      const { document } = resolveReferences(FULL, { spec: { ref } }, t1, resources, ofT1, stored);
      expect(document).to.deep.equal(stored);
    }
    expect(calls).to.deep.equal([]);
    expect(resolve({ name: 'big' })).to.equal('s-big');
  });

  it('a text of a megabyte is not repeated', () => {
    const error = refusal(() => resolve({ id: 'x'.repeat(1024 * 1024) }));
    expect(error.message.length).to.be.lessThan(400);
  });
});
