import { expect } from 'chai';
import fc from 'fast-check';
import { kinds } from '../../../src/domain/kinds.ts';
import { evaluate } from '../../../src/projections/filter/evaluate.ts';
import { limitOf, sees, seesTenant, type Visibility } from '../../../src/projections/visibility.ts';
import { check } from '../../support/property.ts';

const tenants = fc.constantFrom('t1', 't2', 'shared', '__proto__');
const projects = fc.constantFrom('', 'p1', 'p2', 'p1.p2');
const visibilities: fc.Arbitrary<Visibility> = fc.oneof(
  fc.record({
    tenants: fc.uniqueArray(tenants),
    within: fc
      .array(fc.tuple(fc.constantFrom('t1', 't2'), fc.uniqueArray(fc.constantFrom('p1', 'p2', 'p1.p2'))))
      .map((entries) => Object.fromEntries(entries)),
  }),
  fc.constant({ all: true } as const),
);

describe('what a caller sees', () => {
  const see = (visibility: Visibility, kind: string, project: string, name = 'n'): boolean =>
    sees(visibility, kind, { tenant: 't1', project, name });
  const member: Visibility = { tenants: ['t1', 'shared'], within: { t1: ['p1'] } };

  it('of a limited tenant is what lies in its projects; a project lies in itself', () => {
    expect(see(member, 'cluster', 'p1')).to.equal(true);
    for (const project of ['', 'p2', 'p1.p2'])
      expect(see(member, 'cluster', project), project).to.equal(false);
    expect(see(member, 'project', '', 'p1')).to.equal(true);
    expect(see(member, 'project', 'p1', 'p1.p2')).to.equal(false);
    expect(sees(member, 'cluster', { tenant: 'shared', project: '', name: 'n' })).to.equal(true);
    expect(sees(member, 'cluster', { tenant: 't2', project: 'p1', name: 'n' })).to.equal(false);
  });

  it('is the catalogue of the tenant where it lies in no project, and nothing that tenants order', () => {
    const whole = kinds.filter(({ kind }) => see(member, kind, '')).map(({ kind }) => kind);
    expect(whole).to.include.members([
      'clusterCatalogItem',
      'clusterTemplate',
      'clusterVersion',
      'externalIpPool',
      'hostType',
      'instanceType',
      'user',
    ]);
    for (const { kind, rights } of kinds.filter((one) => whole.includes(one.kind))) {
      expect(rights, kind).to.not.equal('owned');
      expect(see(member, kind, 'p2'), kind).to.equal(false);
    }
    for (const kind of ['cluster', 'diskImage', 'secret', 'project', 'hub'])
      expect(whole, kind).to.not.include(kind);
  });

  it('is the same in lists as one by one', () => {
    const kind = fc.constantFrom('cluster', 'project', 'clusterTemplate');
    const name = fc.constantFrom('p1', 'p2', 'x');
    check(
      fc.property(visibilities, kind, tenants, projects, name, (visibility, of, tenant, project, called) => {
        const listed = 'all' in visibility ? undefined : visibility.tenants;
        const limit = limitOf(visibility, of, listed);
        const row = { metadata: { tenant, project, name: called } };
        const inList = seesTenant(visibility, tenant) && (limit === undefined || evaluate(limit, row, 0));
        expect(inList).to.equal(sees(visibility, of, { tenant, project, name: called }));
      }),
    );
  });
});
