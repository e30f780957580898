import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { storageBackend } from '../../../../src/domain/storage/storage-backend.resource.ts';
import { backingOf, storageTier } from '../../../../src/domain/storage/storage-tier.resource.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-23T12:00:00.000Z';
const facts = { at, tenant: 'shared', project: '', creator: 'u1' };
const ref = { id: 's', version: '1', kind: 'storage-credentials', fingerprint: 'f' } as const;
const secrets = { 'spec.credentials.username': ref, 'spec.credentials.password': ref };

describe('storage backends', () => {
  const { given } = specify(storageBackend.decider);
  const SPEC = { provider: 'ceph', endpoint: 'https://ceph.example' };
  const connect = (spec: object = SPEC, more: object = {}): DocumentCommand => ({
    type: 'CreateDocument',
    ...facts,
    id: 'b1',
    name: 'b1',
    document: { spec: spec as JsonObject },
    secrets,
    ...more,
  });
  const connected = {
    type: 'StorageBackendConnected',
    data: {
      ...facts,
      id: 'b1',
      name: 'b1',
      document: { spec: SPEC, status: { state: 'STORAGE_BACKEND_STATE_READY' } },
      secrets,
    },
  } as const;

  it('are ready from the start and show neither user nor password', () => {
    given().when(connect()).thenEvents(connected);
    const view = storageBackend.view(given(connected).state());
    expect(view.exists && [view.state, view.document['spec']]).to.deep.equal([
      'STORAGE_BACKEND_STATE_READY',
      { ...SPEC, credentials: { username: '***', password: '***' } },
    ]);
  });

  it('have a provider, an endpoint without a user in it, and both credentials', () => {
    for (const [spec, field] of [
      [{ endpoint: 'x' }, 'spec.provider'],
      [{ provider: 'x' }, 'spec.endpoint'],
      [{ provider: 'x'.repeat(2049), endpoint: 'x' }, 'spec.provider'],
    ] as const)
      given().when(connect(spec)).thenRejected('FIELD_REQUIRED', { kind: 'invalid', field });
    for (const endpoint of [
      'https://u:p@ceph.example',
      'https:/u:p@ceph.example',
      'https:\\\\u:p@ceph.example',
      'u:p@ceph.example:6789',
      'https://u:p/w@ceph.example',
      'ceph-1:6789,u:p@ceph-2:6789',
      'https://ceph.example/?password=p',
      'https://ceph.example/#password=p',
    ]) {
      given()
        .when(connect({ provider: 'x', endpoint }))
        .thenRejected('INVALID_ENDPOINT', { field: 'spec.endpoint' });
      given(connected)
        .when({ type: 'ReviseDocument', at, document: { spec: { ...SPEC, endpoint } } })
        .thenRejected('INVALID_ENDPOINT', { field: 'spec.endpoint' });
    }
    for (const endpoint of ['ceph-1:6789,[fd00::1]:6789', 'https://ceph.example:8443/api', '10.0.0.1:/export'])
      expect(given().when(connect({ provider: 'x', endpoint })).decision).to.have.length(1);
    for (const path of Object.keys(secrets))
      given()
        .when(connect(SPEC, { secrets: { ...secrets, [path]: undefined } }))
        .thenRejected('FIELD_REQUIRED', { field: path });
  });

  it('keep their provider, and a status that a private caller writes', () => {
    const revise = (document: object): DocumentCommand => ({
      type: 'ReviseDocument',
      at,
      document: document as JsonObject,
    });
    given(connected)
      .when(revise({ spec: { ...SPEC, provider: 'other' } }))
      .thenRejected('IMMUTABLE_FIELD', { kind: 'invalid' });
    const status = { state: 'STORAGE_BACKEND_STATE_READY', message: 'slow today' };
    given(connected)
      .when(revise({ spec: SPEC, status: { message: 'slow today' } }))
      .thenEvents({ type: 'StorageBackendRevised', data: { at, document: { spec: SPEC, status }, secrets } });
  });
});

describe('storage tiers', () => {
  const { given } = specify(storageTier.decider);
  const NFS = { backend_id: 'b1', protocol: 'STORAGE_PROTOCOL_NFS' };
  const define = (backends: readonly object[]): DocumentCommand => ({
    type: 'CreateDocument',
    ...facts,
    id: 'gold',
    name: 'gold',
    document: { spec: { backends: backends as JsonObject[] } },
  });

  it('are active from the start and point at their backend', () => {
    const document = { spec: { backends: [NFS] }, status: { state: 'STORAGE_TIER_STATE_ACTIVE' } };
    given()
      .when(define([NFS]))
      .thenEvents({ type: 'StorageTierDefined', data: { ...facts, id: 'gold', name: 'gold', document } });
    expect(storageTier.pointsAt(document)).to.deep.equal([{ kind: 'storageBackend', id: 'b1' }]);
    expect(backingOf(document)).to.deep.equal({ backend: 'b1', protocol: 'STORAGE_PROTOCOL_NFS' });
    expect(backingOf({ ...document, status: {} })).to.equal(undefined);
    expect(backingOf({ status: document.status })).to.equal(undefined);
  });

  it('have exactly one backend, of a protocol that is known, without negative bounds', () => {
    given().when(define([])).thenRejected('FIELD_REQUIRED', { field: 'spec.backends' });
    given()
      .when(define([NFS, NFS]))
      .thenRejected('TOO_MANY_BACKENDS', {
        field: 'spec.backends',
        message: 'only one backend association is supported in v0.1, but 2 were provided',
      });
    given()
      .when(define([{ protocol: 'STORAGE_PROTOCOL_NFS' }]))
      .thenRejected('FIELD_REQUIRED', { field: 'spec.backends[0].backend_id' });
    given()
      .when(define([{ ...NFS, protocol: 77 }]))
      .thenRejected('INVALID_PROTOCOL', { field: 'spec.backends[0].protocol' });
    for (const [field, value] of [
      ['max_read_bandwidth_mbs', -1],
      ['max_write_bandwidth_mbs', -1],
      ['quota_gib', '-1'],
    ] as const)
      given()
        .when(define([{ ...NFS, [field]: value }]))
        .thenRejected('INVALID_SIZE', { field: `spec.backends[0].${field}` });
    expect(given().when(define([{ backend_id: 'b1', quota_gib: '7' }])).decision).to.have.length(1);
  });
});
