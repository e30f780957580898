import { nameDecider, type NameCommand } from '../../../../src/domain/naming/name.ts';
import type { NameEvent } from '../../../../src/domain/naming/events.ts';
import { specify } from '../../../support/decider-spec.ts';
import { expect } from 'chai';

const { given } = specify(nameDecider);
const at = '2026-11-21T12:00:00.000Z';
const who = { at, kind: 'cluster', holder: 'c1', commandId: 'k1', stream: 'cluster-c1' };
const reserve: NameCommand = { type: 'ReserveName', ...who };
const reserved: NameEvent = { type: 'NameReserved', data: who };
const other = { ...who, holder: 'c2', commandId: 'k2', stream: 'cluster-c2' };
const released = (why: 'deleted' | 'abandoned'): NameEvent => ({
  type: 'NameReleased',
  data: { at, holder: 'c1', why },
});

describe('naming: one holder per name', () => {
  it('is reserved once, and found again by its own command', () => {
    given().when(reserve).thenEvents(reserved);
    given(reserved).when(reserve).thenNothing();
  });
  it('is refused to anybody else, also to a second creation of the same id', () => {
    given(reserved)
      .when({ type: 'ReserveName', ...other })
      .thenRejected('NAME_TAKEN');
    given(reserved)
      .when({ ...reserve, commandId: 'k2' })
      .thenRejected('NAME_TAKEN');
  });
  it('is free again once released, and only its holder can release it', () => {
    const release: NameCommand = { type: 'ReleaseName', at, holder: 'c1', why: 'deleted' };
    given(reserved).when(release).thenEvents(released('deleted'));
    given(reserved)
      .when({ ...release, holder: 'c2' })
      .thenNothing();
    given(reserved)
      .when({ ...release, commandId: 'k2' })
      .thenNothing();
    given(reserved)
      .when({ ...release, commandId: 'k1' })
      .thenEvents(released('deleted'));
    given().when(release).thenNothing();
    given(reserved, released('deleted'))
      .when({ type: 'ReserveName', ...other })
      .thenEvents({ type: 'NameReserved', data: other });
  });
  it('ignores a release of somebody else and events of newer releases', () => {
    const state = given(reserved).state();
    const foreign: NameEvent = { type: 'NameReleased', data: { at, holder: 'c9', why: 'deleted' } };
    expect(nameDecider.evolve(state, foreign)).to.equal(state);
    const unknown = { type: 'SomethingNew', data: {} } as unknown as NameEvent;
    expect(nameDecider.evolve(state, unknown)).to.equal(state);
  });
});
