import { expect } from 'chai';
import fc from 'fast-check';
import type { HoldScope, RetentionEvent } from '../../../../src/domain/audit/events.ts';
import {
  erasureOf,
  retentionDecider,
  type RetentionCommand,
  type RetentionState,
} from '../../../../src/domain/audit/retention.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';

const AT = '2026-11-21T12:00:00.000Z';
const LATER = '2026-11-21T12:00:01.000Z';
const erasure = { erasureId: 'e1', subjectId: 'alice', tenant: 'acme', reason: 'asked for' } as const;
const begin: RetentionCommand = { type: 'BeginErasure', at: LATER, hasKey: true, ...erasure };
const begun: RetentionEvent = { type: 'ErasureBegun', data: { at: AT, ...erasure } };
const held = (scope: HoldScope): RetentionEvent => ({
  type: 'LegalHoldPlaced',
  data: { at: AT, holdId: 'h1', scope, reason: 'litigation' },
});
const place = (scope: HoldScope): RetentionCommand => ({
  type: 'PlaceLegalHold',
  at: LATER,
  holdId: 'h1',
  scope,
  reason: 'litigation',
});
const covering: readonly HoldScope[] = [
  { kind: 'all' },
  { kind: 'tenant', id: 'acme' },
  { kind: 'subject', id: 'alice' },
];
const elsewhere: readonly HoldScope[] = [
  { kind: 'tenant', id: 'alice' },
  { kind: 'subject', id: 'acme' },
];
const { given } = specify(retentionDecider);

describe('legal holds and erasures', () => {
  it('says of a hold whom it concerns, and what was kept when it is released', () => {
    const scope = { kind: 'subject', id: 'alice' } as const;
    const placed: RetentionEvent = {
      type: 'LegalHoldPlaced',
      data: { at: LATER, holdId: 'h1', scope, tenant: 'acme', reason: 'litigation' },
    };
    given()
      .when({ type: 'PlaceLegalHold', at: LATER, holdId: 'h1', scope, tenant: 'acme', reason: 'litigation' })
      .thenEvents(placed);
    given(placed)
      .when({ type: 'ReleaseLegalHold', at: LATER, holdId: 'h1', reason: 'settled' })
      .thenEvents({ type: 'LegalHoldReleased', data: { at: LATER, holdId: 'h1', scope, reason: 'settled' } });
  });
  it('begins an erasure, and says once that the key is gone', () => {
    given()
      .when(begin)
      .thenEvents({ type: 'ErasureBegun', data: { at: LATER, ...erasure } });
    given(begun)
      .when({ type: 'CompleteErasure', at: LATER, erasureId: 'e1' })
      .thenEvents({ type: 'SubjectKeyDestroyed', data: { ...erasure, at: LATER } });
    given(begun, { type: 'SubjectKeyDestroyed', data: { at: LATER, ...erasure } })
      .when({ type: 'CompleteErasure', at: LATER, erasureId: 'e1' })
      .thenNothing();
  });
  it('does nothing when the same erasure is begun again, and refuses another of the same person', () => {
    given(begun).when(begin).thenNothing();
    given(begun)
      .when({ ...begin, erasureId: 'e2' })
      .thenRejected('ERASURE_UNDER_WAY');
  });
  it('erases somebody again whose data came back after an erasure', () => {
    given(begun, { type: 'SubjectKeyDestroyed', data: { at: AT, ...erasure } })
      .when({ ...begin, erasureId: 'e2' })
      .thenEvents({ type: 'ErasureBegun', data: { at: LATER, ...erasure, erasureId: 'e2' } });
  });
  it('does nothing for somebody who was erased and of whom nothing was stored since, hold or not', () => {
    const gone: RetentionEvent[] = [begun, { type: 'SubjectKeyDestroyed', data: { at: AT, ...erasure } }];
    const again = { ...begin, erasureId: 'e2', hasKey: false };
    given(...gone)
      .when(again)
      .thenNothing();
    given(...gone, held({ kind: 'all' }))
      .when(again)
      .thenNothing();
    // Whoever was never erased may have no key, too: nothing of them is readable, but nobody has said so yet.
    given()
      .when({ ...begin, hasKey: false })
      .thenEvents({ type: 'ErasureBegun', data: { at: LATER, ...erasure } });
    given(...gone)
      .when({ ...again, subjectId: 'bob' })
      .thenEvents({
        type: 'ErasureBegun',
        data: { at: LATER, ...erasure, erasureId: 'e2', subjectId: 'bob' },
      });
  });
  it('knows of many who were erased, and copies little of that for one more', () => {
    const subjects = ['__proto__', 'constructor', ...Array.from({ length: 5_000 }, (_, n) => `s-${n}`)];
    const erase = (state: RetentionState, subjectId: string, erasureId: string): RetentionState => {
      const data = { ...erasure, at: AT, subjectId, erasureId };
      return retentionDecider.evolve(state, { type: 'SubjectKeyDestroyed', data });
    };
    let state = retentionDecider.initialState();
    for (const subject of subjects) state = erase(state, subject, `of ${subject}`);
    const after = erase(state, 's-7', 'again');
    // As a snapshot keeps it.
    const read = JSON.parse(JSON.stringify(after)) as RetentionState;
    for (const subject of subjects)
      expect(erasureOf(read, subject)).to.equal(subject === 's-7' ? 'again' : `of ${subject}`);
    expect(erasureOf(read, 'toString')).to.equal(undefined);
    const changed = Object.entries(after.erased).filter(([bucket, part]) => part !== state.erased[bucket]);
    expect(changed).to.have.length(1);
    expect(Object.keys(after.erased)).to.have.length.most(256);
    expect(Object.keys(changed[0]?.[1] ?? {})).to.have.length.below(100);
  });
  for (const scope of covering) {
    it(`refuses an erasure under a hold of ${JSON.stringify(scope)}, until that is released`, () => {
      given(held(scope)).when(begin).thenRejected('LEGAL_HOLD');
      given(held(scope), {
        type: 'LegalHoldReleased',
        data: { at: AT, holdId: 'h1', scope, reason: 'settled' },
      })
        .when(begin)
        .thenEvents({ type: 'ErasureBegun', data: { at: LATER, ...erasure } });
    });
    it(`tells a hold of ${JSON.stringify(scope)} that it comes too late`, () => {
      given(begun).when(place(scope)).thenRejected('ERASURE_UNDER_WAY', { field: 'scope' });
    });
  }
  for (const scope of elsewhere) {
    it(`lets nobody else be held by ${JSON.stringify(scope)}`, () => {
      given(held(scope))
        .when(begin)
        .thenEvents({ type: 'ErasureBegun', data: { at: LATER, ...erasure } });
      expect(isRejection(given(begun).when(place(scope)).decision)).to.equal(false);
    });
  }
  it('lets a hold over any tenant in which the person appears keep the data', () => {
    const wide = { ...erasure, tenants: ['acme', 'globex'] };
    const scope: HoldScope = { kind: 'tenant', id: 'globex' };
    given(held(scope))
      .when({ ...begin, ...wide })
      .thenRejected('LEGAL_HOLD');
    given(held({ kind: 'tenant', id: 'initech' }))
      .when({ ...begin, ...wide })
      .thenEvents({ type: 'ErasureBegun', data: { at: LATER, ...wide } });
    const wideBegun: RetentionEvent = { type: 'ErasureBegun', data: { at: AT, ...wide } };
    given(wideBegun).when(place(scope)).thenRejected('ERASURE_UNDER_WAY', { field: 'scope' });
    given(wideBegun)
      .when({ type: 'CompleteErasure', at: LATER, erasureId: 'e1' })
      .thenEvents({ type: 'SubjectKeyDestroyed', data: { ...wide, at: LATER } });
  });
  it('places a hold once and releases only one that stands', () => {
    given(held({ kind: 'all' }))
      .when(place({ kind: 'all' }))
      .thenNothing();
    given()
      .when({ type: 'ReleaseLegalHold', at: AT, holdId: 'h9', reason: 'settled' })
      .thenRejected('HOLD_NOT_FOUND');
  });

  const subject = fc.constantFrom('alice', 'bob');
  const tenant = fc.constantFrom('acme', 'globex', 'initech');
  const scope: fc.Arbitrary<HoldScope> = fc.oneof(
    fc.constant({ kind: 'all' } as const),
    tenant.map((id) => ({ kind: 'tenant', id }) as const),
    subject.map((id) => ({ kind: 'subject', id }) as const),
  );
  const command: fc.Arbitrary<RetentionCommand> = fc.oneof(
    fc.record({
      type: fc.constant('PlaceLegalHold' as const),
      at: fc.constant(AT),
      holdId: fc.constantFrom('h1', 'h2', 'h3'),
      scope,
      reason: fc.constant('litigation'),
    }),
    fc.record({
      type: fc.constant('ReleaseLegalHold' as const),
      at: fc.constant(AT),
      holdId: fc.constantFrom('h1', 'h2', 'h3'),
      reason: fc.constant('settled'),
    }),
    fc.record({
      type: fc.constant('BeginErasure' as const),
      at: fc.constant(AT),
      hasKey: fc.boolean(),
      erasureId: fc.constantFrom('e1', 'e2', 'e3'),
      subjectId: subject,
      tenant,
      tenants: fc.subarray(['acme', 'globex', 'initech']),
      reason: fc.constant('asked for'),
    }),
    fc.record({
      type: fc.constant('CompleteErasure' as const),
      at: fc.constant(AT),
      erasureId: fc.constantFrom('e1', 'e2', 'e3'),
    }),
  );

  it('never has a key destroyed that a standing hold keeps, in whatever order they come', () => {
    check(
      fc.property(fc.array(command, { maxLength: 30 }), (commands) => {
        let state: RetentionState = retentionDecider.initialState();
        for (const each of commands) {
          const decision = retentionDecider.decide(state, each);
          if (isRejection(decision)) continue;
          state = decision.reduce(retentionDecider.evolve, state);
          for (const { subjectId, tenant: of, tenants = [] } of state.pending)
            for (const hold of state.holds)
              expect(
                hold.scope.kind !== 'all' && ![subjectId, of, ...tenants].includes(hold.scope.id),
                JSON.stringify({ subjectId, of, tenants, hold }),
              ).to.equal(true);
          expect(new Set(state.pending.map(({ subjectId }) => subjectId)).size).to.equal(
            state.pending.length,
          );
        }
      }),
    );
  });
});
