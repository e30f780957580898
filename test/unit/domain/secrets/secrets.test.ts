import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import type { SecretRef } from '../../../../src/domain/secret-ref.ts';
import { secret } from '../../../../src/domain/secrets/secret.resource.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type SecretEvent = EventOf<typeof secret>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const { given } = specify(secret.decider);
const facts = { id: 's1', at, tenant: 'acme', project: '', name: 'tls', creator: 'u1' };
const ref = (version: string): SecretRef => ({ id: 's', version, kind: 'secret-data', fingerprint: 'f' });
const secrets = { 'data.tls.crt': ref('1'), 'data.tls.key': ref('1') };
const document = { backend: 'SECRET_BACKEND_VAULT' };
const HUB = { backend: 'SECRET_BACKEND_HUB' };
const deposit = (more: object = {}): DocumentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document: {},
  secrets,
  ...more,
});
const deposited: SecretEvent = { type: 'SecretDeposited', data: { ...facts, document, secrets } };

describe('secrets', () => {
  it('hold references of their values; no read shows which', () => {
    given().when(deposit()).thenEvents(deposited);
    const view = secret.view(given(deposited).state());
    if (!view.exists) throw new Error('nothing is shown');
    expect(view.document).to.have.all.keys('id', 'metadata', 'backend');
    expect(secret.pointsAt({})).to.deep.equal([]);
  });
  it('change key by key', () => {
    given(deposited)
      .when({
        type: 'ReviseDocument',
        at: later,
        document,
        secrets: { 'data.tls.crt': ref('2'), 'data.tls.key': null },
      })
      .thenEvents({
        type: 'SecretRevised',
        data: { at: later, document, secrets: { 'data.tls.crt': ref('2') } },
      });
    given(deposited)
      .when({ type: 'ReviseDocument', at: later, document, secrets: { 'data.tls.crt': ref('1') } })
      .thenNothing();
    given(deposited)
      .when({ type: 'DeleteDocument', at: later })
      .thenEvents({ type: 'SecretRemoved', data: { at: later } });
  });
  it('have keys as Kubernetes takes them', () => {
    for (const key of ['', 'a b', 'a/b', 'x'.repeat(254)])
      given()
        .when(deposit({ secrets: { [`data.${key}`]: ref('1') } }))
        .thenRejected('INVALID_KEY', { field: 'data' });
    const many = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`data.k${i}`, ref('1')]));
    given()
      .when(deposit({ secrets: many }))
      .thenRejected('TOO_MANY_KEYS');
    const odd = { 'data.__proto__': ref('1'), 'data..': ref('1'), [`data.${'x'.repeat(253)}`]: ref('1') };
    expect(given().when(deposit({ secrets: odd })).decision).to.have.length(1);
  });
  it('hold something, and are removed rather than emptied', () => {
    given()
      .when(deposit({ secrets: {} }))
      .thenRejected('FIELD_REQUIRED', { field: 'data' });
    given(deposited)
      .when({
        type: 'ReviseDocument',
        at: later,
        document,
        secrets: { 'data.tls.crt': null, 'data.tls.key': null },
      })
      .thenRejected('FIELD_REQUIRED', { field: 'data' });
  });
  it('on a hub name their coordinates and hold nothing here; the backend stays', () => {
    for (const backend of [77, 'SECRET_BACKEND_OTHER'])
      given()
        .when(deposit({ document: { backend } }))
        .thenRejected('INVALID_BACKEND', { field: 'backend' });
    given()
      .when(deposit({ document: HUB, secrets: {} }))
      .thenRejected('FIELD_REQUIRED', { field: 'coordinates' });
    const placed = { ...HUB, coordinates: { namespace: 'n', name: 's' } };
    given()
      .when(deposit({ document: placed }))
      .thenRejected('DATA_ON_HUB', { field: 'data' });
    given()
      .when(deposit({ document: placed, secrets: {} }))
      .thenEvents({ type: 'SecretDeposited', data: { ...facts, document: placed } });
    given(deposited)
      .when({ type: 'ReviseDocument', at: later, document: placed, secrets: {} })
      .thenRejected('IMMUTABLE_FIELD', { message: "field 'backend' is immutable" });
  });
});
