import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { instanceType } from '../../../../src/domain/compute/instance-type.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type InstanceTypeEvent = EventOf<typeof instanceType>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const facts = { at, id: 'm4', tenant: 'shared', project: '', name: 'm4', creator: 'system' };
const sent: JsonObject = { cores: 4, memory_gib: 16 };
const stored: JsonObject = { ...sent, state: 'INSTANCE_TYPE_STATE_ACTIVE' };
const create = (spec: JsonObject, more: object = {}): DocumentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document: { spec },
  ...more,
});
const revise = (spec: JsonObject): DocumentCommand => ({
  type: 'ReviseDocument',
  at: later,
  document: { spec },
});
const defined = (change: JsonObject = {}): InstanceTypeEvent => ({
  type: 'InstanceTypeDefined',
  data: { ...facts, document: { spec: { ...stored, ...change } } },
});
const revised = (change: JsonObject): InstanceTypeEvent => ({
  type: 'InstanceTypeRevised',
  data: { at: later, document: { spec: { ...stored, ...change } } },
});
const DEPRECATED = { state: 'INSTANCE_TYPE_STATE_DEPRECATED' };
const OBSOLETE = { state: 'INSTANCE_TYPE_STATE_OBSOLETE' };
const gpu = { pci_device_selector: '10DE:2331', resource_name: 'nvidia.com/H100', count: 1 };

describe('instance types', () => {
  const { given } = specify(instanceType.decider);

  it('are active from the start', () => {
    given().when(create(sent)).thenEvents(defined());
    given()
      .when(create({ ...sent, ...DEPRECATED }))
      .thenRejected('INVALID_STATE', { field: 'spec.state' });
    given()
      .when(create({ ...sent, state: 9 }))
      .thenRejected('INVALID_STATE');
    given(defined())
      .when(revise({ ...stored, state: 9 }))
      .thenRejected('INVALID_STATE');
  });
  it('belong to everybody', () =>
    given()
      .when(create(sent, { tenant: 't1' }))
      .thenRejected('NOT_SHARED', { field: 'metadata.tenant' }));
  it('have cores, memory and whole GPUs', () => {
    given()
      .when(create({ memory_gib: 1 }))
      .thenRejected('INVALID_SIZE', { field: 'spec.cores' });
    given()
      .when(create({ cores: 1, memory_gib: -1 }))
      .thenRejected('INVALID_SIZE', { field: 'spec.memory_gib' });
    const refused: [JsonObject, string][] = [
      [{ ...gpu, count: 0 }, 'spec.gpu.count'],
      [{ ...gpu, count: 17 }, 'spec.gpu.count'],
      [{ ...gpu, pci_device_selector: '' }, 'spec.gpu.pci_device_selector'],
      [{ count: 1, pci_device_selector: 'x' }, 'spec.gpu.resource_name'],
      [{}, 'spec.gpu.pci_device_selector'],
    ];
    for (const [wrong, field] of refused) {
      const { decision } = given().when(create({ ...sent, gpu: wrong }));
      expect(decision).to.include({ field });
    }
    given()
      .when(create({ ...sent, gpu: { ...gpu, count: 16 } }))
      .thenEvents(defined({ gpu: { ...gpu, count: 16 } }));
  });
  it('keep their size', () => {
    given(defined())
      .when(revise({ ...stored, cores: 8, memory_gib: 32 }))
      .thenRejected('IMMUTABLE_FIELD', {
        message: "fields 'spec.cores' and 'spec.memory_gib' are immutable",
      });
    given(defined({ gpu }))
      .when(revise({ ...stored, gpu: { ...gpu, count: 2 } }))
      .thenRejected('IMMUTABLE_FIELD', { field: 'spec.gpu' });
    given(defined())
      .when(revise({ ...stored, description: 'x' }))
      .thenEvents(revised({ description: 'x' }));
  });
  it('are stamped by the service and keep the stamps when they are active again', () => {
    const replacement = { id: 'm5', name: 'm5' };
    given(defined())
      .when(
        revise({
          ...stored,
          ...DEPRECATED,
          deprecation: { deprecation_timestamp: '2020-01-01T00:00:00Z', state: OBSOLETE.state, replacement },
        }),
      )
      .thenEvents(revised({ ...DEPRECATED, deprecation: { deprecation_timestamp: later, replacement } }));
    const stamped = { deprecation: { deprecation_timestamp: at, obsolescence_timestamp: at } };
    given(defined({ ...OBSOLETE, ...stamped }))
      .when(revise(stored))
      .thenEvents(revised(stamped));
    given(defined({ ...DEPRECATED, deprecation: { deprecation_timestamp: at } }))
      .when(revise({ ...stored, ...OBSOLETE }))
      .thenEvents(
        revised({
          ...OBSOLETE,
          deprecation: { deprecation_timestamp: at, obsolescence_timestamp: later },
        }),
      );
  });
  it('are replaced by another one', () => {
    const deprecation = { replacement: { id: 'm4', name: 'm4' } };
    given(defined())
      .when(revise({ ...stored, ...DEPRECATED, deprecation }))
      .thenRejected('INVALID_REPLACEMENT');
    expect(instanceType.pointsAt({ spec: { deprecation: { replacement: { id: 'm5' } } } })).to.deep.equal([
      { kind: 'instanceType', id: 'm5' },
    ]);
    expect(instanceType.pointsAt({ spec: {} })).to.deep.equal([]);
  });
  it('show their state, and their name once when it is taken', () => {
    expect(instanceType.view(given(defined()).state())).to.include({ state: stored['state'] });
    expect(instanceType.view(given().state())).to.deep.equal({ exists: false });
    given(defined())
      .when(create(sent))
      .thenRejected('ALREADY_EXISTS', { message: "instance type 'm4' already exists" });
  });
});
