import type { CheckContext } from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';

/**
 * Storage systems that tiers are made of (OSAC): the provider's alone. Its credentials are write-only (the original
 * shows the password and filters by it).
 */
const CREDENTIALS = ['spec.credentials.username', 'spec.credentials.password'];
const MAX_TEXT = 2048;

export const storageBackend = documentKind({
  kind: 'storageBackend',
  context: 'storage',
  events: {
    created: 'StorageBackendConnected',
    revised: 'StorageBackendRevised',
    deletionRequested: 'StorageBackendDisconnectionRequested',
    retired: 'StorageBackendDisconnected',
  },
  untold: true,
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  inCatalogue: true,
  nameScope: 'global',
  countsUsers: true,
  state: 'status.state',
  secrets: CREDENTIALS.map((path) => ({ path, kind: 'storage-credentials', reads: '***', encoding: 'text' })),
  immutable: ['spec.provider'],
  normalize: (document) => ({
    ...document,
    status: { state: 'STORAGE_BACKEND_STATE_READY', ...objectAt(document, 'status') },
  }),
  check: (document, { secrets }) =>
    systemRejection(objectAt(document, 'spec')) ?? credentialsRejection(secrets),
  example: {
    spec: {
      provider: 'ceph',
      endpoint: 'https://ceph.example:8443',
      credentials: { username: 'osac', password: 'kept-in-the-secret-store' },
    },
  },
});

const systemRejection = (spec: JsonObject): Rejection | undefined => {
  for (const field of ['provider', 'endpoint']) {
    const { length } = stringAt(spec, field);
    if (length === 0 || length > MAX_TEXT)
      return invalid(
        'FIELD_REQUIRED',
        `spec.${field}`,
        `field 'spec.${field}' must have 1 to ${MAX_TEXT} characters (got ${length})`,
      );
  }
  // Everybody who reads the document or its events sees the endpoint. It has many forms: none needs these signs.
  return /[@?#]/.test(stringAt(spec, 'endpoint'))
    ? invalid(
        'INVALID_ENDPOINT',
        'spec.endpoint',
        "field 'spec.endpoint' must hold no '@', '?' or '#': give user and password as 'spec.credentials'",
      )
    : undefined;
};

const credentialsRejection = (secrets: CheckContext['secrets']): Rejection | undefined => {
  const missing = CREDENTIALS.find((path) => secrets[path] === undefined);
  return missing === undefined
    ? undefined
    : invalid('FIELD_REQUIRED', missing, `field '${missing}' is required`);
};
