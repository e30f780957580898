import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection } from '../../../../src/domain/decider.ts';
import { defined, objectAt } from '../../../../src/domain/json-tools.ts';
import {
  externalIp,
  type ExternalIpCommand,
  type ExternalIpState,
} from '../../../../src/domain/networks/external-ip.resource.ts';
import { cases, check } from '../../../support/property.ts';

const at = '2026-11-23T09:00:00.000Z';
const { decider } = externalIp;
const order: ExternalIpCommand = {
  type: 'CreateDocument',
  at,
  id: 'ip1',
  tenant: 't1',
  project: '',
  name: 'web',
  creator: 'someone',
  document: { spec: { pool: { id: 'p1', name: 'public' } } },
};
const place = {
  hub: 'h1',
  namespace: 'osac',
  objectName: 'a',
  simulated: true,
  controller: 'ledger',
} as const;
const holder = fc.record({
  kind: fc.constantFrom('externalIpAttachment', 'natGateway'),
  id: fc.constantFrom('a', 'b'),
});
const status = fc.record({
  state: fc.constantFrom('', 'EXTERNAL_IP_STATE_ALLOCATED'),
  attached: fc.boolean(),
});
const command: fc.Arbitrary<ExternalIpCommand> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(holder, fc.constantFrom('c1', 'c2', undefined))
      .map(([one, by]): ExternalIpCommand => ({ type: 'AttachTo', at, holder: one, ...defined({ by }) })),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(holder, fc.integer({ min: 1, max: 4 }))
      .map(([by, generation]): ExternalIpCommand => ({ type: 'DetachFrom', at, holder: by, generation })),
  },
  fc.constantFrom<ExternalIpCommand>(
    { type: 'PlaceOnHub', at, ...place },
    { type: 'RecordAllocated', at, address: '192.0.2.5' },
    { type: 'RecordFailure', at, reason: 'No', message: 'no' },
    { type: 'ReportWaiting', at, message: 'no address is free' },
    { type: 'AbortOrder', at, reason: 'no' },
    { type: 'RetryOrder', at },
    { type: 'DeleteDocument', at },
    { type: 'ConfirmAbsence', at },
  ),
  status.map(
    (written): ExternalIpCommand => ({
      type: 'ReviseDocument',
      at,
      document: { spec: { pool: { id: 'p1', name: 'public' } }, status: written },
    }),
  ),
);

const shownAttached = (state: ExternalIpState): boolean => {
  const view = externalIp.view(state);
  return view.exists && objectAt(view.document, 'status')['attached'] === true;
};

describe('the user of an external IP', () => {
  it('is one at most, shown at every event, and is never left behind by a deletion', () => {
    check(
      fc.property(fc.array(command, { maxLength: 30 }), (commands) => {
        let state = decider.initialState();
        let user: string | undefined;
        for (const each of [order, ...commands]) {
          const decision = decider.decide(state, each);
          if (isRejection(decision)) continue;
          for (const event of decision) {
            state = decider.evolve(state, event);
            if (event.type === 'ExternalIPAttached') {
              const holderText = JSON.stringify(event.data.holder);
              expect([undefined, holderText], 'nobody else had it').to.include(user);
              user = holderText;
            }
            if (event.type === 'ExternalIPDetached') {
              expect(JSON.stringify(event.data.holder), 'its user gave it back').to.equal(user);
              user = undefined;
            }
            expect(shownAttached(state), event.type).to.equal(user !== undefined);
            if (/(DeletionRequested|Deleted|Withdrawn)$/.test(event.type))
              expect(user, `${event.type} while it is used`).to.equal(undefined);
          }
        }
      }),
      { numRuns: cases(1_000) },
    );
  });
});
