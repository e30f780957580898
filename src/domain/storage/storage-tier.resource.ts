import { documentKind } from '../catalog/document-kind.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, listAt, objectAt, stringAt } from '../json-tools.ts';

/** Classes of storage (OSAC): the provider's, and their backends are not for tenants to know. */
export const ACTIVE_TIER = 'STORAGE_TIER_STATE_ACTIVE';
const BACKENDS = 'spec.backends';
const PROTOCOLS: readonly unknown[] = [undefined, 'STORAGE_PROTOCOL_NFS', 'STORAGE_PROTOCOL_BLOCK'];

const backendsOf = (document: JsonObject): readonly JsonObject[] =>
  listAt(objectAt(document, 'spec'), 'backends').filter(isObject);

/** Ids of the backends that a tier names. */
export const backendIdsOf = (document: JsonObject): readonly string[] =>
  backendsOf(document).map((one) => stringAt(one, 'backend_id'));

/** What a volume takes from its tier when it is made; undefined: the tier is not active or has no backend. */
export const backingOf = (document: JsonObject): { backend: string; protocol: string } | undefined => {
  const [first] = backendsOf(document);
  if (first === undefined || stringAt(objectAt(document, 'status'), 'state') !== ACTIVE_TIER)
    return undefined;
  return { backend: stringAt(first, 'backend_id'), protocol: stringAt(first, 'protocol') };
};

export const storageTier = documentKind({
  kind: 'storageTier',
  context: 'storage',
  events: {
    created: 'StorageTierDefined',
    revised: 'StorageTierRevised',
    deletionRequested: 'StorageTierRetirementRequested',
    retired: 'StorageTierRetired',
  },
  untold: true,
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  ids: 'equals-name',
  inCatalogue: true,
  nameScope: 'global',
  state: 'status.state',
  alsoPointsAt: (document) => backendIdsOf(document).map((id) => ({ kind: 'storageBackend', id })),
  normalize: (document) => ({
    ...document,
    status: { state: ACTIVE_TIER, ...objectAt(document, 'status') },
  }),
  check: (document) => backendsRejection(backendsOf(document)),
});

const backendsRejection = (backends: readonly JsonObject[]): Rejection | undefined => {
  const [first] = backends;
  if (first === undefined)
    return invalid('FIELD_REQUIRED', BACKENDS, `field '${BACKENDS}' must name a storage backend`);
  if (backends.length > 1)
    return invalid(
      'TOO_MANY_BACKENDS',
      BACKENDS,
      `only one backend association is supported in v0.1, but ${backends.length} were provided`,
    );
  const at = `${BACKENDS}[0]`;
  if (stringAt(first, 'backend_id') === '')
    return invalid('FIELD_REQUIRED', `${at}.backend_id`, `field '${at}.backend_id' is required`);
  if (!PROTOCOLS.includes(first['protocol']))
    return invalid(
      'INVALID_PROTOCOL',
      `${at}.protocol`,
      `field '${at}.protocol' must be one of ${PROTOCOLS.slice(1).join(', ')}`,
    );
  const negative = ['max_read_bandwidth_mbs', 'max_write_bandwidth_mbs', 'quota_gib'].find(
    (field) => Number(first[field] ?? 0) < 0,
  );
  return negative === undefined
    ? undefined
    : invalid('INVALID_SIZE', `${at}.${negative}`, `field '${at}.${negative}' must not be negative`);
};
