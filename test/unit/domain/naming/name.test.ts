import { nameDecider, type NameCommand, type NameEvent } from '../../../../src/domain/naming/name.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { expect } from 'chai';

const { given } = specify(nameDecider);
const at = '2026-11-21T12:00:00.000Z';
const who = { at, kind: 'cluster', holder: 'c1', commandId: 'k1', stream: 'cluster-c1' };
const wanted = { type: 'ReserveName', anyCommand: false, takesOver: false } as const;
const reserve: NameCommand = { ...wanted, ...who };
const reserved: NameEvent = { type: 'NameReserved', data: who };
const other = { ...who, holder: 'c2', commandId: 'k2', stream: 'cluster-c2' };
const released = (why: 'deleted' | 'abandoned'): NameEvent => ({
  type: 'NameReleased',
  data: { at, holder: 'c1', why },
});

describe('naming: one holder per name', () => {
  it('is reserved, and by its own command again', () => {
    given().when(reserve).thenEvents(reserved);
    given(reserved).when(reserve).thenEvents(reserved);
  });
  it('is reserved again by any command of a holder that is there', () => {
    const next = { ...who, commandId: 'k2' };
    given(reserved)
      .when({ ...reserve, ...next, anyCommand: true })
      .thenEvents({ type: 'NameReserved', data: next });
    given(reserved)
      .when({ ...wanted, ...other, anyCommand: true })
      .thenRejected('NAME_TAKEN');
  });
  it('is taken over where it passes on, with who had it', () => {
    given(reserved)
      .when({ ...wanted, ...other, takesOver: true })
      .thenEvents({ type: 'NameReserved', data: { ...other, takenFrom: 'cluster-c1' } });
  });
  it('is refused to anybody else, also to a second creation of the same id', () => {
    given(reserved)
      .when({ ...wanted, ...other })
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
    given().when(release).thenNothing();
    given(reserved, released('deleted'))
      .when({ ...wanted, ...other })
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
