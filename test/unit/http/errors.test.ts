import { expect } from 'chai';
import { IdempotencyMismatch } from '../../../src/app/commands/command.ts';
import {
  EventTooLarge,
  LogDamaged,
  OutcomeUnknown,
  StoreUnavailable,
  StreamDeleted,
} from '../../../src/app/log/event-store.ts';
import { reject, type RejectionKind } from '../../../src/domain/decider.ts';
import {
  ApiError,
  ERRORS,
  errorHeaders,
  osacErrorBody,
  problemBody,
  rejected,
  unauthenticated,
} from '../../../src/http/errors.ts';
import { asApiError, outcomeUnknown } from '../../../src/http/exchange.ts';

const GRPC_TO_HTTP: Readonly<Record<number, readonly number[]>> = {
  1: [499],
  3: [400, 413, 415, 417, 422, 431],
  4: [408, 504],
  5: [404],
  6: [409],
  7: [403],
  8: [429],
  9: [400, 412],
  10: [409],
  11: [410, 416],
  12: [501, 405],
  13: [500],
  14: [503],
  15: [500],
  16: [401],
};

describe('error catalogue', () => {
  it('maps gRPC codes to HTTP statuses as OSAC does, and what HTTP adds to the nearest code', () => {
    for (const [name, { code, http }] of Object.entries(ERRORS))
      expect(GRPC_TO_HTTP[code], name).to.include(http);
  });

  for (const [kind, http, code] of [
    ['invalid', 400, 3],
    ['not-found', 404, 5],
    ['already-exists', 409, 6],
    ['failed-precondition', 400, 9],
    ['conflict', 409, 10],
    ['denied', 403, 7],
  ] as const satisfies readonly (readonly [RejectionKind, number, number])[])
    it(`a rejection "${kind}" is ${http} with code ${code}`, () => {
      const error = rejected(reject(kind, 'SOME_CODE', 'some text', { field: 'spec.x' }));
      expect(error.status).to.equal(http);
      expect(osacErrorBody(error)).to.deep.include({ code, message: 'some text' });
      expect(errorHeaders(error)).to.include({ 'x-ledger-reason': 'SOME_CODE' });
      expect(problemBody(error, 'urn:x')).to.deep.include({
        type: 'urn:fulfillment-ledger:problem:some-code',
        status: http,
        detail: 'some text',
        instance: 'urn:x',
        code: 'SOME_CODE',
        errors: [{ field: 'spec.x', description: 'some text' }],
      });
    });

  it('leaves out details when there is nothing to add', () => {
    expect(osacErrorBody(new ApiError('NOT_FOUND', 'gone'))).to.deep.equal({ code: 5, message: 'gone' });
  });

  it('says of a store that is down that nothing was stored, and when to try again', () => {
    const down = asApiError(new StoreUnavailable('x', 'down', { retryAfterMs: 1500 }));
    expect(down.status).to.equal(503);
    expect(errorHeaders(down)).to.include({ 'x-ledger-reason': 'STORE_UNAVAILABLE', 'retry-after': '2' });
    const full = asApiError(new StoreUnavailable('x', 'full'));
    expect([full.status, full.reason]).to.deep.equal([503, 'STORE_FULL']);
  });

  it('does not say "try again" of what somebody must correct first', () => {
    for (const [failure, status, reason, says] of [
      [new StoreUnavailable('x', 'denied'), 503, 'STORE_ACCESS_DENIED', 'denies this service a right'],
      [new StoreUnavailable('x', 'credentials'), 503, 'STORE_CREDENTIALS_REFUSED', 'user or password'],
      [new StoreUnavailable('x', 'untrusted'), 503, 'STORE_UNTRUSTED', 'certificate'],
      [new StreamDeleted('cluster-SENTINEL'), 500, 'STREAM_DELETED', 'deleted from the event store for good'],
    ] as const) {
      const error = asApiError(failure);
      expect([error.status, error.reason]).to.deep.equal([status, reason]);
      expect(error.message).to.include(says).and.to.include('nothing was stored').and.not.include('again');
      expect(error.message).to.not.include('SENTINEL');
      expect(errorHeaders(error))
        .to.include({ 'x-ledger-reason': reason })
        .and.not.have.property('retry-after');
    }
  });

  it('tells who lost an answer how to settle it', () => {
    const keyless = outcomeUnknown({ id: 'c-1', keyed: false }, new OutcomeUnknown('s'));
    expect(keyless.status).to.equal(504);
    expect(errorHeaders(keyless)).to.include({ 'x-ledger-command-id': 'c-1' });
    expect(keyless.message).to.contain('X-Ledger-Command-Id');
    const keyed = outcomeUnknown({ id: 'c-1', keyed: true }, new OutcomeUnknown('s'));
    expect(errorHeaders(keyed)).not.to.have.property('x-ledger-command-id');
    expect(keyed.message).to.contain('Idempotency-Key');
    expect(JSON.stringify(osacErrorBody(keyed))).to.contain('OUTCOME_UNKNOWN');
  });

  it('translates the other failures of ports, and hides what a bug says', () => {
    expect(asApiError(new IdempotencyMismatch('c')).status).to.equal(422);
    expect(asApiError(new EventTooLarge('T', 2_000_000)).status).to.equal(400);
    expect(asApiError(new URIError('x')).status).to.equal(400);
    const at = { event: 'cluster-SENTINEL@4', position: '0000000000000007' };
    for (const [where, reason, says] of [
      [at, 'EVENT_CHANGED', 'position 0000000000000007 is not the one that was recorded'],
      [undefined, 'LOG_DAMAGED', 'the event log of this service is damaged'],
    ] as const) {
      const damaged = asApiError(new LogDamaged('SENTINEL/events.db is damaged', where));
      expect([damaged.status, damaged.options.reason]).to.deep.equal([500, reason]);
      expect(damaged.message).to.include(says);
      expect(JSON.stringify([osacErrorBody(damaged), problemBody(damaged, 'urn:x')])).to.not.include(
        'SENTINEL',
      );
    }
    const bug = asApiError(new TypeError('SENTINEL is not a function'));
    expect(bug.status).to.equal(500);
    expect(bug.message).not.to.contain('SENTINEL');
  });

  it('keeps header values free of what would break them', () => {
    const error = unauthenticated('token "x"\\ is bad', true);
    expect(errorHeaders(error)['www-authenticate']).to.equal(
      'Bearer error="invalid_token", error_description="token x is bad"',
    );
  });
});
