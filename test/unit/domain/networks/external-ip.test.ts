import { expect } from 'chai';
import type { Holder } from '../../../../src/domain/holder.ts';
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
const attachment = (id: string): Holder => ({ kind: 'externalIpAttachment', id });
const attached = (holder: Holder, generation = 1): ExternalIpEvent => ({
  type: 'ExternalIPAttached',
  data: { at, holder, generation },
});
const detached = (holder: Holder, generation = 1): ExternalIpEvent => ({
  type: 'ExternalIPDetached',
  data: { at, holder, generation },
});
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

    it('but not whether they are attached', () => {
      given(ordered(), placed, allocated)
        .when(write({ state: STATE('ALLOCATED'), hub: 'h1', address: '192.0.2.5', attached: true }))
        .thenNothing();
    });
  });

  describe('serve one user at a time', () => {
    const [first, second] = [attachment('a1'), { kind: 'natGateway', id: 'n1' }];
    const attach = (holder: Holder): ExternalIpCommand => ({
      type: 'AttachTo',
      at,
      holder,
    });
    const detach = (holder: Holder, generation = 1): ExternalIpCommand => ({
      type: 'DetachFrom',
      at,
      holder,
      generation,
    });

    it('who claims them, also while they are pending', () => {
      given(ordered()).when(attach(first)).thenEvents(attached(first));
      given(ordered(), attached(first)).when(attach(first)).thenNothing();
      expect(shown(ordered(), placed, allocated, attached(first))['attached']).to.equal(true);
    });

    it('and nobody else meanwhile', () => {
      given(ordered(), placed, allocated, attached(first))
        .when(attach(second))
        .thenRejected('ALREADY_ATTACHED', {
          kind: 'failed-precondition',
          message: "external IP 'ip1' is already attached",
        });
      given(ordered(), attached(first), detached(first)).when(attach(second)).thenEvents(attached(second, 2));
      expect(shown(ordered(), attached(first), detached(first))).to.not.have.property('attached');
    });

    it('whom they are given back by alone', () => {
      given(ordered(), attached(first)).when(detach(second)).thenNothing();
      given(ordered(), attached(first)).when(detach(first)).thenEvents(detached(first));
      given(ordered()).when(detach(first)).thenNothing();
      // What a creation claimed anew is not freed by whoever gives its former claim back.
      const claimed = (generation: number): ExternalIpEvent => ({
        type: 'ExternalIPAttached',
        data: { at, holder: first, generation, by: 'c1' },
      });
      given(ordered(), claimed(1))
        .when({ type: 'AttachTo', at, holder: first, by: 'c1' })
        .thenEvents(claimed(2));
      given(ordered(), claimed(1))
        .when({ type: 'AttachTo', at, holder: first, by: 'c2' })
        .thenRejected('CREATION_UNDER_WAY');
      given(ordered(), attached(first), attached(first, 2)).when(detach(first)).thenNothing();
    });

    it('unless they are about to go, or were given up', () => {
      const aborted: ExternalIpEvent = {
        type: 'ExternalIPFailed',
        data: { at, reason: 'Aborted', message: 'aborted: no' },
      };
      for (const history of [[], [ordered(), placed, allocated, deleting], [ordered(), aborted]])
        given(...history)
          .when(attach(first))
          .thenRejected('ADDRESS_GONE', { kind: 'failed-precondition' });
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
      given(ordered(), placed, allocated, attached(attachment('a1')))
        .when(remove)
        .thenRejected('NOT_RELEASABLE', {
          kind: 'failed-precondition',
          message: "cannot delete external IP 'web': external IP attachment 'a1' uses it: remove that first",
        });
    });

    it('once: a second deletion changes nothing', () => {
      given(ordered(), placed, allocated, deleting).when(remove).thenNothing();
      given(ordered(), gone).when(remove).thenRejected('NOT_FOUND');
    });
  });
});
