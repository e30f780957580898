import { expect } from 'chai';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import { volume, volumeDecider, type VolumeEvent } from '../../../../src/domain/storage/volume.resource.ts';
import { actingVolume } from '../../../../src/domain/storage/volume.workflow.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { createStepRun, done, refused } from '../../../support/domain/step-run.ts';

const at = '2026-11-23T12:00:00.000Z';
const later = '2026-11-23T13:00:00.000Z';
const SPEC = { storage_tier: 'gold', size_gib: '10', access_mode: 'VOLUME_ACCESS_MODE_READ_WRITE_ONCE' };
const BACKING = { backend: 'b1', protocol: 'STORAGE_PROTOCOL_BLOCK' };
const facts = { id: 'v1', at, tenant: 'acme', project: '', name: 'v1', creator: 'u1' };
const { given } = specify(volumeDecider);

const order = (spec: object = SPEC, status: object = {}) =>
  ({
    type: 'CreateDocument',
    ...facts,
    document: { spec: spec as JsonObject, status: { ...BACKING, ...status } },
  }) as const;
const ordered: VolumeEvent = {
  type: 'VolumeOrdered',
  data: { ...facts, document: { spec: SPEC, status: BACKING } },
};
const statusOf = (...events: VolumeEvent[]): JsonObject => {
  const view = volume.view(given(ordered, ...events).state());
  return view.exists ? objectAt(view.document, 'status') : {};
};

describe('volumes', () => {
  it('are ordered with the backend and the protocol of their tier, which stay', () => {
    given().when(order()).thenEvents(ordered);
    const told = { vendor_volume_id: 'mine', state: 'VOLUME_STATE_AVAILABLE' };
    given()
      .when(order(SPEC, told))
      .thenEvents(ordered, { type: 'VolumeStatusReported', data: { at, status: { ...BACKING, ...told } } });
    expect(statusOf()).to.deep.equal({ ...BACKING, state: 'VOLUME_STATE_CREATING' });
    const status = { backend: 'b2', protocol: 'STORAGE_PROTOCOL_NFS' };
    const labelled = { metadata: { labels: { a: 'b' } }, spec: SPEC };
    given(ordered)
      .when({ type: 'ReviseDocument', at: later, document: { ...labelled, status } })
      .thenEvents(
        { type: 'VolumeStatusReported', data: { at: later, status } },
        { type: 'VolumeRevised', data: { at: later, document: { ...labelled, status: BACKING } } },
      );
    expect(volume.pointsAt({ spec: SPEC, status: { hub: 'h1' } })).to.deep.equal([
      { kind: 'storageTier', id: 'gold' },
      { kind: 'hub', id: 'h1' },
    ]);
  });

  it('have a tier, a size and a known access mode', () => {
    for (const [spec, code, field] of [
      [{ ...SPEC, storage_tier: '' }, 'FIELD_REQUIRED', 'spec.storage_tier'],
      [{ ...SPEC, size_gib: '0' }, 'INVALID_SIZE', 'spec.size_gib'],
      [{ ...SPEC, size_gib: '-1' }, 'INVALID_SIZE', 'spec.size_gib'],
      [{ storage_tier: 'gold', access_mode: SPEC.access_mode }, 'INVALID_SIZE', 'spec.size_gib'],
      [{ ...SPEC, access_mode: 9 }, 'INVALID_ACCESS_MODE', 'spec.access_mode'],
      [{ ...SPEC, access_mode: 'VOLUME_ACCESS_MODE_UNSPECIFIED' }, 'INVALID_ACCESS_MODE', 'spec.access_mode'],
    ] as const)
      given().when(order(spec)).thenRejected(code, { kind: 'invalid', field });
  });

  it('keep tier, size and access mode', () => {
    for (const change of [
      { storage_tier: 'silver' },
      { size_gib: '20' },
      { access_mode: 'VOLUME_ACCESS_MODE_READ_WRITE_MANY' },
    ])
      given(ordered)
        .when({ type: 'ReviseDocument', at: later, document: { spec: { ...SPEC, ...change } } })
        .thenRejected('IMMUTABLE_FIELD', { kind: 'invalid' });
  });

  it('are available under the name of their storage system, and tell it once', () => {
    const available: VolumeEvent = { type: 'VolumeBecameAvailable', data: { at, vendorVolumeId: 'x1' } };
    const record = (vendorVolumeId?: string) =>
      ({
        type: 'RecordAvailable',
        at: later,
        ...(vendorVolumeId === undefined ? {} : { vendorVolumeId }),
      }) as const;
    given(ordered)
      .when(record('x1'))
      .thenEvents({ type: 'VolumeBecameAvailable', data: { at: later, vendorVolumeId: 'x1' } });
    given(ordered, available).when(record('x1')).thenNothing();
    given(ordered, available)
      .when(record())
      .thenEvents({ type: 'VolumeBecameAvailable', data: { at: later } });
    given().when(record('x1')).thenNothing();
    expect(statusOf(available)).to.include({ state: 'VOLUME_STATE_AVAILABLE', vendor_volume_id: 'x1' });
    const failed: VolumeEvent = {
      type: 'VolumeFailed',
      data: { at, reason: 'ObjectLost', message: 'it is gone' },
    };
    expect(statusOf(available, failed)).to.include({ state: 'VOLUME_STATE_FAILED', message: 'it is gone' });
    const leaving: VolumeEvent = { type: 'VolumeDeletionRequested', data: { at } };
    expect(statusOf(available, leaving)).to.include({ state: 'VOLUME_STATE_DELETING' });
    expect(statusOf(available, { type: 'VolumeWithdrawn', data: { at } })).to.not.have.property(
      'vendor_volume_id',
    );
  });
});

describe('the way of a volume', () => {
  const HUB = { hub: 'munich', namespace: 'osac', simulated: false, controller: 'operator' } as const;
  const PLACED = { placed: true, ...HUB, mode: 'operator', steps: {}, decision: { candidates: [] } };
  const seen = (object: object | null): object => ({ object, hub: HUB.hub });
  const orderOne = (backing: object = BACKING) => {
    const run = createStepRun(
      actingVolume.workflow as Workflow<{ readonly since: object }, RunEvent>,
      volumeDecider,
    );
    run.command({
      ...order(),
      at: run.now(),
      id: run.id,
      document: {
        metadata: { annotations: { 'fulfillment-ledger/zone': 'west', 'fulfillment-ledger/hub': 'munich' } },
        spec: SPEC,
        status: backing as JsonObject,
      },
    });
    const shown = () => {
      const view = volume.view(run.subject());
      return view.exists ? objectAt(view.document, 'status') : {};
    };
    return { ...run, shown };
  };

  it('is placed, sent with its backend in the status, and available once the hub shows it so', () => {
    const run = orderOne();
    expect(run.effect('place').args).to.deep.include({ objects: ['Volume'], zone: 'west', hub: 'munich' });
    run.perform('place', done(PLACED));
    const { args, lane } = run.effect('apply');
    expect(lane).to.equal('hub:munich:Volume');
    expect(args['name']).to.match(/^vol-[a-z2-7]{10,16}$/);
    expect(args).to.deep.include({
      spec: { storageTier: 'gold', sizeGiB: 10, accessMode: 'ReadWriteOnce' },
      status: { backend: 'b1', protocol: 'Block' },
    });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Progressing' }));
    expect(run.shown()).to.include({ state: 'VOLUME_STATE_CREATING', hub: 'munich' });
    run.observe(seen({ phase: 'Ready', vendorVolumeID: 'x1' }));
    expect(run.shown()).to.deep.equal({
      ...BACKING,
      state: 'VOLUME_STATE_AVAILABLE',
      vendor_volume_id: 'x1',
      hub: 'munich',
    });
    expect(run.effects(), 'nothing is looked at any more').to.deep.equal([]);
    run.command({ type: 'DeleteDocument', at: run.now() });
    run.perform('undo-apply', done({ existed: true }));
    expect(run.shown()).to.include({ state: 'VOLUME_STATE_DELETING' });
    run.observe(seen(null));
    run.perform('undo-place', done({}));
    run.commands();
    expect(volume.view(run.subject())).to.include({ archived: true });
    expect(run.isFolded()).to.equal(true);
  });

  it('names no protocol where its tier named none', () => {
    const run = orderOne({ backend: 'b1' });
    run.perform('place', done(PLACED));
    expect(run.effect('apply').args['status']).to.deep.equal({ backend: 'b1' });
  });

  it('fails as its hub says or refuses it, and recovers', () => {
    const run = orderOne();
    run.perform('place', done(PLACED));
    run.perform('apply', refused);
    run.commands();
    expect(run.shown()).to.include({ state: 'VOLUME_STATE_FAILED' });
    run.command({ type: 'RetryOrder', at: run.now() });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Failed', message: 'the pool is full' }));
    expect(run.shown()).to.include({
      state: 'VOLUME_STATE_FAILED',
      message: 'the hub could not make the volume ready',
    });
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.include({ state: 'VOLUME_STATE_AVAILABLE' });
    run.observe(seen(null));
    expect(run.shown()).to.include({ message: 'the hub holds no object of this volume any more' });
  });
});
