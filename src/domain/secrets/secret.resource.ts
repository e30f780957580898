import type { CheckContext } from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';

/**
 * Secrets (OSAC). Values go to the secret store; the document and its events know only which keys
 * there are. No surface ever shows a value again, neither the private one nor Get.
 */
const DATA = 'data.';
const VAULT = 'SECRET_BACKEND_VAULT';
const HUB = 'SECRET_BACKEND_HUB';
const BACKENDS = [VAULT, HUB];
/** As Kubernetes takes them, which is where most of these values end up. */
const KEY = /^[-._a-zA-Z0-9]{1,253}$/;
const MAX_KEYS = 200;

export const secret = documentKind({
  kind: 'secret',
  context: 'secrets',
  events: {
    created: 'SecretDeposited',
    revised: 'SecretRevised',
    deletionRequested: 'SecretRemovalRequested',
    retired: 'SecretRemoved',
  },
  ids: 'generated',
  privateOnly: ['backend', 'coordinates'],
  secrets: [{ path: 'data.*', kind: 'secret-data', reads: 'absent', encoding: 'base64' }],
  immutable: ['backend'],
  normalize: (document) => ({ ...document, backend: document['backend'] ?? VAULT }),
  check: (document, context) => keysRejection(context) ?? backendRejection(document, context),
});

const keysRejection = ({ secrets }: CheckContext): Rejection | undefined => {
  const keys = Object.keys(secrets).map((path) => path.slice(DATA.length));
  if (keys.length > MAX_KEYS)
    return reject('invalid', 'TOO_MANY_KEYS', `field 'data' may hold at most ${MAX_KEYS} keys`, {
      field: 'data',
    });
  return keys.every((key) => KEY.test(key))
    ? undefined
    : reject(
        'invalid',
        'INVALID_KEY',
        "every key of field 'data' must consist of 1 to 253 letters, digits, '-', '_' and '.'",
        { field: 'data' },
      );
};

const backendRejection = (document: JsonObject, { secrets }: CheckContext): Rejection | undefined => {
  const backend = stringAt(document, 'backend');
  if (!BACKENDS.includes(backend))
    return reject('invalid', 'INVALID_BACKEND', `field 'backend' must be one of ${BACKENDS.join(', ')}`, {
      field: 'backend',
    });
  if (backend !== HUB)
    return Object.keys(secrets).length > 0
      ? undefined
      : reject(
          'invalid',
          'FIELD_REQUIRED',
          "field 'data' is required: give at least one key, or delete the secret",
          { field: 'data' },
        );
  if (Object.keys(objectAt(document, 'coordinates')).length === 0)
    return reject(
      'invalid',
      'FIELD_REQUIRED',
      "field 'coordinates' is required: it says where on the hub the secret is",
      { field: 'coordinates' },
    );
  return Object.keys(secrets).length === 0
    ? undefined
    : reject('invalid', 'DATA_ON_HUB', "field 'data' must be empty: the values of this secret are on a hub", {
        field: 'data',
      });
};
