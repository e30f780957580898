import { invalid, type Decider, type DomainEvent, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { defined, objectAt, stringAt, without } from '../json-tools.ts';
import {
  isSettled,
  isUnderWay,
  messageOf,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';

/** Storage of tenants on a hub (OSAC): the provider's to order. Backend and protocol are those of its tier at that time. */
export const MAX_VOLUME_GIB = 65_536;
const IMMUTABLE = ['spec.storage_tier', 'spec.size_gib', 'spec.access_mode'];
const RESOLVED = ['backend', 'protocol'];
const ACCESS_MODES = ['READ_WRITE_ONCE', 'READ_ONLY_MANY', 'READ_WRITE_MANY', 'READ_WRITE_ONCE_POD'].map(
  (mode) => `VOLUME_ACCESS_MODE_${mode}`,
);

export type VolumeState = PlacedState & { readonly vendorVolumeId?: string };
export type VolumeCommand =
  | PlacedCommand
  | { readonly type: 'RecordAvailable'; readonly at: string; readonly vendorVolumeId?: string };
export type VolumeEvent = PlacedEvent<
  'Volume',
  DomainEvent<'VolumeBecameAvailable', { readonly at: string; readonly vendorVolumeId?: string }>
>;

const stateOf = ({ status, failure, done }: Placed): string => {
  if (status === 'deleting') return 'DELETING';
  return failure !== undefined ? 'FAILED' : done === true ? 'AVAILABLE' : 'CREATING';
};

/** GiB that were ordered; NaN where that is no number. */
export const sizeOf = (document: JsonObject): number => Number(objectAt(document, 'spec')['size_gib'] ?? 0);

const documents = placedDocument({
  words: 'volume',
  prefix: 'Volume',
  done: 'BecameAvailable',
  immutable: IMMUTABLE,
  resolved: RESOLVED,
  reportable: ['state', 'message', 'vendor_volume_id', 'backend', 'protocol', 'hub'],
  status: (state) => ({
    ...objectAt(state.document, 'status'),
    state: `VOLUME_STATE_${stateOf(state)}`,
    message: messageOf(state),
    vendor_volume_id: (state as Placed & VolumeState).vendorVolumeId ?? '',
    hub: state.place?.hub ?? '',
  }),
  check: (document) => {
    const spec = objectAt(document, 'spec');
    if (stringAt(spec, 'storage_tier') === '')
      return invalid('FIELD_REQUIRED', 'spec.storage_tier', "field 'spec.storage_tier' is required");
    if (!(sizeOf(document) > 0))
      return invalid(
        'INVALID_SIZE',
        'spec.size_gib',
        `field 'spec.size_gib' must be greater than zero, but it is ${sizeOf(document)}`,
      );
    return ACCESS_MODES.includes(stringAt(spec, 'access_mode'))
      ? undefined
      : invalid(
          'INVALID_ACCESS_MODE',
          'spec.access_mode',
          `field 'spec.access_mode' must be one of ${ACCESS_MODES.join(', ')}`,
        );
  },
});

export const volumeDecider: Decider<VolumeState, VolumeCommand, VolumeEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    const next = documents.evolve(state, event);
    if (event.type === 'VolumeWithdrawn') return without(next, 'vendorVolumeId');
    if (event.type !== 'VolumeBecameAvailable') return next;
    const { vendorVolumeId } = event.data;
    return { ...without(next, 'vendorVolumeId'), ...defined({ vendorVolumeId }) };
  },
  decide: (state, command) => {
    if (command.type !== 'RecordAvailable')
      return documents.decide(state, command) as readonly VolumeEvent[] | Rejection;
    const { at, vendorVolumeId } = command;
    const isNews = !isSettled(state) || state.vendorVolumeId !== vendorVolumeId;
    return isUnderWay(state) && isNews
      ? [{ type: 'VolumeBecameAvailable', data: { at, ...defined({ vendorVolumeId }) } }]
      : [];
  },
};

const declared = placedResource({
  kind: 'volume',
  message: 'Volume',
  words: 'volume',
  privateOnly: [],
  immutable: IMMUTABLE,
  references: [],
});

export const volume: ResourceKind<VolumeState, VolumeCommand, VolumeEvent> = {
  ...declared,
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  // A tier is named, and its name is its id.
  pointsAt: (document) => [
    { kind: 'storageTier', id: stringAt(objectAt(document, 'spec'), 'storage_tier') },
    ...declared.pointsAt(document),
  ],
  decider: volumeDecider,
  view: documents.view,
};
