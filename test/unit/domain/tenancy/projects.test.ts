import { expect } from 'chai';
import fc from 'fast-check';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { claimsOf } from '../../../../src/app/names/names.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { kindOf } from '../../../../src/domain/kinds.ts';
import {
  defaultProjectId,
  isDefaultProject,
  parentOf,
  project,
  projectNameRejection,
  projectPointer,
} from '../../../../src/domain/tenancy/project.resource.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';

type ProjectEvent = EventOf<typeof project>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const { given } = specify(project.decider);
const facts = { id: 'p1', at, tenant: 'acme', project: '', name: 'research', creator: 'u1' };
const status = { state: 'PROJECT_STATE_ACTIVE' };
const open = (more: object = {}): DocumentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document: {},
  ...more,
});
const opened: ProjectEvent = { type: 'ProjectOpened', data: { ...facts, document: { status } } };
const shown = (...history: ProjectEvent[]) => project.view(given(...history).state());

describe('projects', () => {
  it('are active as soon as they are open, and as a controller reports afterwards', () => {
    given().when(open()).thenEvents(opened);
    given(opened)
      .when({ type: 'ReviseDocument', at: later, document: { status: { state: 'PROJECT_STATE_FAILED' } } })
      .thenEvents({
        type: 'ProjectRevised',
        data: { at: later, document: { status: { state: 'PROJECT_STATE_FAILED' } } },
      });
    given(opened).when({ type: 'ReviseDocument', at: later, document: {} }).thenNothing();
    expect(shown(opened)).to.include({ state: 'PROJECT_STATE_ACTIVE', name: 'research' });
    expect(shown()).to.deep.equal({ exists: false });
  });
  it('close at once, or once their finalizers are gone', () => {
    const remove: DocumentCommand = { type: 'DeleteDocument', at: later };
    given(opened)
      .when(remove)
      .thenEvents({ type: 'ProjectClosed', data: { at: later } });
    const held: ProjectEvent = {
      type: 'ProjectRevised',
      data: { at, document: { metadata: { finalizers: ['f'] }, status } },
    };
    given(opened, held)
      .when(remove)
      .thenEvents({ type: 'ProjectClosureRequested', data: { at: later } });
  });
  it('know which creations are on their way, while they are open', () => {
    const enter = (stream: string, left: readonly string[] = []) =>
      ({
        type: 'EnterProject',
        at: later,
        tenant: opened.data.tenant,
        path: opened.data.name,
        stream,
        left,
      }) as const;
    given(opened)
      .when(enter('secret-1'))
      .thenEvents({ type: 'ProjectEntered', data: { at: later, stream: 'secret-1' } });
    const one = { type: 'ProjectEntered', data: { at, stream: 'secret-1' } } as const;
    const two = { type: 'ProjectEntered', data: { at, stream: 'secret-2', left: ['secret-1'] } } as const;
    given(opened, one)
      .when(enter('secret-2', ['secret-1']))
      .thenEvents({ ...two, data: { ...two.data, at: later } });
    expect(given(opened, one).state()).to.deep.include({ entering: ['secret-1'] });
    expect(given(opened, one, one).state()).to.deep.include({ entering: ['secret-1'] });
    expect(given(opened, one, two).state()).to.deep.include({ entering: ['secret-2'] });
    const requested = { type: 'ProjectClosureRequested', data: { at } } as const;
    const closed = { type: 'ProjectClosed', data: { at } } as const;
    for (const history of [[], [opened, requested], [opened, closed]])
      given(...history)
        .when(enter('secret-1'))
        .thenRejected('PROJECT_NOT_FOUND');
    // The project of this id may be another one by the time that somebody enters who looked up a path.
    for (const other of [{ path: 'other' }, { tenant: 'stranger' }])
      given(opened)
        .when({ ...enter('secret-1'), ...other })
        .thenRejected('PROJECT_NOT_FOUND');
    expect(given(opened, one, closed, opened).state()).to.deep.equal(given(opened).state());
    given(opened, one)
      .when({ type: 'DeleteDocument', at: later })
      .thenEvents({ type: 'ProjectClosed', data: { at: later } });
  });
  it('lie where their name says, in a tenant', () => {
    given()
      .when(open({ name: 'a.b', project: 'a' }))
      .thenEvents({
        type: 'ProjectOpened',
        data: { ...facts, name: 'a.b', project: 'a', document: { status } },
      });
    given()
      .when(open({ name: 'a.b', project: 'c' }))
      .thenRejected('PROJECT_PARENT', { field: 'metadata.project' });
    given()
      .when(open({ name: 'a', project: 'c' }))
      .thenRejected('PROJECT_PARENT');
    for (const tenant of ['shared', 'system'])
      given().when(open({ tenant })).thenRejected('TENANT_REQUIRED', { field: 'metadata.tenant' });
  });
  it('have no name only as the default one, whose id nobody else takes', () => {
    const id = defaultProjectId('acme');
    expect(isDefaultProject(id)).to.equal(true);
    expect(isDefaultProject('p1')).to.equal(false);
    expect(given().when(open({ id, name: '' })).decision).to.have.length(1);
    const shared = { id: defaultProjectId('shared'), tenant: 'shared', name: '' };
    expect(given().when(open(shared)).decision).to.have.length(1);
    given()
      .when(open({ name: '' }))
      .thenRejected('VALIDATION_FAILED');
    given().when(open({ id })).thenRejected('RESERVED_ID', { field: 'id' });
    given()
      .when(open({ id: defaultProjectId('other'), name: '' }))
      .thenRejected('RESERVED_ID');
  });
  it('have paths of one to four DNS labels', () => {
    for (const name of ['a', 'a.b', 'a-1.b.c.d', `${'x'.repeat(63)}.${'y'.repeat(63)}`])
      expect(projectNameRejection(name), name).to.equal(undefined);
    for (const name of ['', '.', 'a.', '.a', 'a..b', 'A', 'a_b', '-a', 'a-', 'a.b.c.d.e', 'x'.repeat(64)])
      expect(projectNameRejection(name)?.code, name).to.equal('VALIDATION_FAILED');
    given()
      .when(open({ name: 'a..b', project: 'a.' }))
      .thenRejected('VALIDATION_FAILED');
    expect(['a', 'a.b', 'a.b.c', ''].map(parentOf)).to.deep.equal(['', 'a', 'a.b', '']);
  });
  it('protect nothing by themselves; what lies in them points at them by path', () => {
    expect(project.pointsAt({})).to.deep.equal([]);
    const document = { metadata: { tenant: 'acme', project: 'a.b' } };
    for (const name of ['secret', 'project', 'cluster', 'projectMembership'])
      expect(kindOf(name)?.pointsAt(document), name).to.deep.include(projectPointer('acme', 'a.b'));
    expect(kindOf('secret')?.pointsAt({ metadata: { tenant: 'acme' } })).to.deep.equal([]);
  });
});

describe('names across projects', () => {
  const segment = fc.stringMatching(/^[a-z]([a-z0-9-]{0,8}[a-z0-9])?$/);
  const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'));

  it('a valid path is accepted with exactly its parent', () => {
    check(
      fc.property(path, fc.option(path, { nil: '' }), (name, parent) => {
        const { decision } = given().when(open({ name, project: parent }));
        expect(isRejection(decision)).to.equal(parent !== parentOf(name));
      }),
    );
  });
  it('two objects claim the same name exactly when kind, tenant, project and name agree', () => {
    const owner = fc.record({
      kind: fc.constantFrom('secret', 'diskImage', 'projectMembership'),
      tenant: fc.constantFrom('t1', 't2', 't1/a'),
      project: fc.constantFrom('', 'a', 'a.b', 'a/b'),
      name: fc.constantFrom('x', 'y', 'a'),
    });
    const claimOf = ({ kind, tenant, project: place, name }: { [key: string]: string }) => {
      const declared = kindOf(kind ?? '');
      if (declared === undefined) throw new Error('no such kind');
      const view = { exists: true, archived: false, id: 'i', creationTimestamp: at, document: {} } as const;
      const seen = { ...view, tenant: tenant ?? '', project: place ?? '', name: name ?? '' };
      return claimsOf(declared, seen).find(({ field }) => field === 'metadata.name')?.id;
    };
    check(
      fc.property(owner, owner, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other);
        expect(claimOf(one) === claimOf(other)).to.equal(same);
      }),
      { numRuns: 500 },
    );
  });
});
