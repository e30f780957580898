import { expect } from 'chai';
import { kinds } from '../../../src/domain/kinds.ts';
import { projectPointer } from '../../../src/domain/tenancy/project.resource.ts';

describe('the list of kinds', () => {
  it('is in the order of their names, each once', () => {
    const names = kinds.map(({ kind }) => kind);
    expect(names).to.deep.equal([...new Set(names)].sort());
  });

  for (const { kind, pointsAt } of kinds)
    it(`lets ${kind} point at the project that it is in, once`, () => {
      const pointer = projectPointer('acme', 'web');
      const found = pointsAt({ metadata: { tenant: 'acme', project: 'web' } });
      expect(found.filter(({ kind: of, id }) => of === pointer.kind && id === pointer.id)).to.have.length(1);
    });
});
