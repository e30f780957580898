import { expect } from 'chai';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import {
  externalIp,
  type ExternalIpCommand,
  type ExternalIpEvent,
} from '../../../../src/domain/networks/external-ip.resource.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-23T09:00:00.000Z';
const later = '2026-11-23T10:00:00.000Z';
const facts = { at, id: 'ip1', tenant: 't1', project: '', name: 'web', creator: 'someone' };
const spec = { pool: { id: 'p1', name: 'public' } };
const place = {
  hub: 'h1',
  namespace: 'osac',
  objectName: 'externalip-a',
  simulated: true,
  controller: 'ledger',
} as const;
const wants = (address: string) => ({ annotations: { 'fulfillment-ledger/address': address } });
const ordered = (metadata?: JsonObject): ExternalIpEvent => ({
  type: 'ExternalIPOrdered',
  data: { ...facts, document: { ...(metadata === undefined ? {} : { metadata }), spec } },
});
const order = (document: JsonObject): ExternalIpCommand => ({ type: 'CreateDocument', ...facts, document });
const revise = (document: JsonObject): ExternalIpCommand => ({ type: 'ReviseDocument', at: later, document });
const placed: ExternalIpEvent = { type: 'ExternalIPPlaced', data: { at, ...place } };
const waiting: ExternalIpEvent = { type: 'ExternalIPWaiting', data: { at, message: 'no address is free' } };
const failed: ExternalIpEvent = { type: 'ExternalIPFailed', data: { at, reason: 'No', message: 'no' } };
const allocated: ExternalIpEvent = { type: 'ExternalIPAllocated', data: { at, address: '192.0.2.5' } };
const deleting: ExternalIpEvent = { type: 'ExternalIPDeletionRequested', data: { at } };
const gone: ExternalIpEvent = { type: 'ExternalIPDeleted', data: { at } };
const reported = (status: JsonObject): ExternalIpEvent => ({
  type: 'ExternalIPStatusReported',
  data: { at: later, status },
});
const STATE = (name: string): string => `EXTERNAL_IP_STATE_${name}`;

describe('external IPs', () => {
  const { given } = specify(externalIp.decider);
  const shown = (...history: ExternalIpEvent[]): JsonObject => {
    const view = externalIp.view(given(...history).state());
    if (!view.exists) throw new Error('it shows nothing');
    return objectAt(view.document, 'status');
  };

  it('are ordered from a pool, and pending from then on, unless a private caller says otherwise', () => {
    const written = { state: STATE('ALLOCATED'), address: '192.0.2.9' };
    const told = { type: 'ExternalIPStatusReported', data: { at, status: written } } as const;
    given()
      .when(order({ spec, status: written }))
      .thenEvents(ordered(), told);
    expect(shown(ordered(), told)).to.deep.equal(written);
    given()
      .when(order({ spec, status: { state: STATE('DELETING_FAILED') } }))
      .thenRejected('INVALID_STATE_TRANSITION');
    given()
      .when(order({ spec: {} }))
      .thenRejected('POOL_REQUIRED', { kind: 'invalid' });
    expect(shown(ordered())).to.deep.equal({ state: STATE('PENDING') });
  });

  it('keep their pool and the address that they ask for', () => {
    given()
      .when(order({ metadata: wants('192.0.2.500'), spec }))
      .thenRejected('INVALID_ADDRESS');
    given()
      .when(order({ metadata: wants('192.0.2.5'), spec }))
      .thenEvents(ordered(wants('192.0.2.5')));
    given(ordered())
      .when(revise({ spec: { pool: { id: 'p2', name: 'x' } } }))
      .thenRejected('IMMUTABLE_FIELD');
    given(ordered(wants('192.0.2.5')))
      .when(revise({ metadata: wants('192.0.2.6'), spec }))
      .thenRejected('IMMUTABLE_FIELD');
    given(ordered())
      .when(revise({ metadata: wants('192.0.2.6'), spec }))
      .thenRejected('IMMUTABLE_FIELD');
  });

  it('show what has become of them', () => {
    expect(shown(ordered(), waiting)).to.deep.equal({
      state: STATE('PENDING'),
      message: 'no address is free',
    });
    expect(shown(ordered(), waiting, placed)).to.deep.equal({ state: STATE('PENDING'), hub: 'h1' });
    expect(shown(ordered(), placed, failed)).to.include({ state: STATE('FAILED'), message: 'no' });
    expect(shown(ordered(), placed, failed, allocated)).to.deep.equal({
      state: STATE('ALLOCATED'),
      hub: 'h1',
      address: '192.0.2.5',
    });
    expect(shown(ordered(), placed, allocated, deleting)['state']).to.equal(STATE('DELETING'));
  });

  it('record an address when it was seen, and when it is another one', () => {
    given(ordered(), placed)
      .when({ type: 'RecordAllocated', at, address: '192.0.2.5' })
      .thenEvents(allocated);
    given(ordered(), placed, allocated)
      .when({ type: 'RecordAllocated', at: later, address: '192.0.2.5' })
      .thenNothing();
    given(ordered(), placed, allocated)
      .when({ type: 'RecordAllocated', at, address: '192.0.2.6' })
      .thenEvents({ type: 'ExternalIPAllocated', data: { at, address: '192.0.2.6' } });
    given(ordered(), placed, allocated, deleting)
      .when({ type: 'RecordAllocated', at, address: '192.0.2.6' })
      .thenNothing();
  });

  it('wait with a reason, which is told once', () => {
    const wait: ExternalIpCommand = { type: 'ReportWaiting', at, message: 'no address is free' };
    given(ordered()).when(wait).thenEvents(waiting);
    given(ordered(), waiting).when(wait).thenNothing();
  });

  describe('take a status that a private caller writes', () => {
    const write = (status: JsonObject): ExternalIpCommand => revise({ spec, status });

    it('and show it until the next report', () => {
      const status = { state: STATE('ALLOCATED'), address: '192.0.2.7' };
      given(ordered()).when(write(status)).thenEvents(reported(status));
      expect(shown(ordered(), reported(status))).to.deep.equal(status);
      expect(shown(ordered(), placed, reported(status), allocated)['address']).to.equal('192.0.2.5');
    });

    it('but no way back to pending', () => {
      for (const [history, from] of [
        [[ordered(), allocated], 'ALLOCATED'],
        [[ordered(), failed], 'FAILED'],
      ] as const)
        given(...history)
          .when(write({ state: STATE('PENDING') }))
          .thenRejected('INVALID_STATE_TRANSITION', {
            kind: 'failed-precondition',
            message: `invalid state transition from '${STATE(from)}' to '${STATE('PENDING')}'`,
          });
      given(ordered(), allocated)
        .when(write({ state: STATE('FAILED') }))
        .thenRejected('INVALID_STATE_TRANSITION');
      given(ordered(), failed)
        .when(write({ state: STATE('ALLOCATED') }))
        .thenEvents(reported({ state: STATE('ALLOCATED') }));
    });

    it('and remember what says that they are attached', () => {
      const attached = reported({ state: STATE('ALLOCATED'), address: '192.0.2.5', attached: true });
      expect(shown(ordered(), placed, allocated, attached, waiting, allocated)['attached']).to.equal(true);
      const free = reported({ state: STATE('ALLOCATED'), address: '192.0.2.5' });
      expect(shown(ordered(), placed, allocated, attached, free, allocated)).to.not.have.property('attached');
    });
  });

  describe('are deleted', () => {
    const remove: ExternalIpCommand = { type: 'DeleteDocument', at };

    it('when they are allocated, and then by their absence', () => {
      given(ordered(), placed, allocated).when(remove).thenEvents(deleting);
      given(ordered(), placed, allocated, deleting).when({ type: 'ConfirmAbsence', at }).thenEvents(gone);
      given(ordered(), reported({ state: STATE('ALLOCATED') }))
        .when(remove)
        .thenEvents(gone);
    });

    it('not while they are pending or failed', () => {
      for (const history of [[ordered()], [ordered(), placed], [ordered(), placed, failed]])
        given(...history)
          .when(remove)
          .thenRejected('NOT_RELEASABLE', { kind: 'failed-precondition' });
    });

    it('not while they are attached', () => {
      const attached = reported({ state: STATE('ALLOCATED'), attached: true });
      given(ordered(), placed, allocated, attached)
        .when(remove)
        .thenRejected('NOT_RELEASABLE', { kind: 'failed-precondition' });
    });

    it('once: a second deletion changes nothing', () => {
      given(ordered(), placed, allocated, deleting).when(remove).thenNothing();
      given(ordered(), gone).when(remove).thenRejected('NOT_FOUND');
    });
  });
});
