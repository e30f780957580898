import type { NormalizeContext } from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { codePoints, objectAt, valueAt, withValueAt } from '../json-tools.ts';
import { validationFailed } from '../metadata-rules.ts';
import { BUILT_IN_TENANTS } from './tenant.resource.ts';

/**
 * Users (OSAC): people and service accounts of a tenant. Only the name is unique, and only inside the
 * tenant; the username may repeat and may change (OSAC). Credentials are write-only on both surfaces.
 */
/** Everything about a user that says who it is, or is a text that may. Labels are for filters, and not for such texts. */
export const USER_PERSONAL: readonly string[] = [
  'metadata.name',
  'metadata.display_name',
  'metadata.description',
  'metadata.annotations.*',
  'spec.username',
  'spec.email',
  'status.keycloak_user_id',
  'status.conditions.*.message',
];

export const MAX_USERNAME = 255;
export const MAX_EMAIL = 320;

/** A removed user whose token still lives is admitted again: its id is derived from the token (OSAC). */
export const user = documentKind({
  kind: 'user',
  context: 'tenancy',
  // A removed user whose token still lives is admitted again: its id is derived from the token (OSAC).
  events: {
    created: 'UserAdmitted',
    revised: 'UserRevised',
    deletionRequested: 'UserRemovalRequested',
    retired: 'UserRemoved',
  },
  untold: true,
  ids: 'generated',
  nameScope: 'tenant',
  outsideProjectsForAll: true,
  privateOnly: ['status.keycloak_user_id'],
  secrets: [{ path: 'spec.credentials.password', kind: 'user-password', reads: 'absent', encoding: 'text' }],
  unshown: ['spec.credentials'],
  personal: USER_PERSONAL,
  normalize: withName,
  check: (document, { tenant }) => tenantRejection(tenant) ?? specRejection(objectAt(document, 'spec')),
  stateVersion: 2,
  // What stands in `name` is the keyed hash; the name itself lies in the document, as ciphertext.
  view: (shown, state) => {
    const name = 'document' in state ? valueAt(state.document, 'metadata.name') : undefined;
    return name === undefined
      ? shown
      : { ...shown, claimedName: shown.name, document: withValueAt(shown.document, 'metadata.name', name) };
  },
});

/** A change does not say the name again: it stays what was stored. */
function withName(document: JsonObject, { previous }: NormalizeContext): JsonObject {
  const name = valueAt(previous, 'metadata.name');
  return name === undefined ? document : withValueAt(document, 'metadata.name', name);
}

/** Everybody sees what is in `shared`: people must not be there. */
const tenantRejection = (tenant: string): Rejection | undefined =>
  (BUILT_IN_TENANTS as readonly string[]).includes(tenant)
    ? reject(
        'invalid',
        'TENANT_REQUIRED',
        `a user must belong to a tenant of its own, not to '${tenant}': name one in 'metadata.tenant'`,
        { field: 'metadata.tenant' },
      )
    : undefined;

/** Checked where they are still texts: in the handlers, and again here for dry runs. */
const specRejection = (spec: JsonObject): Rejection | undefined =>
  lengthRejection(spec['username'], 'object.spec.username', MAX_USERNAME) ??
  lengthRejection(spec['email'], 'object.spec.email', MAX_EMAIL);

const lengthRejection = (text: JsonValue | undefined, field: string, max: number): Rejection | undefined =>
  typeof text === 'string' && codePoints(text).length > max
    ? validationFailed([{ field, problem: `must be at most ${max} characters` }])
    : undefined;

/** What is wrong with a user's texts while they can still be read; the decider sees ciphertext. */
export const userRejection = (document: JsonObject): Rejection | undefined =>
  specRejection(objectAt(document, 'spec'));

/**
 * Name of a user that was made from a token (OSAC): the username in lower case with `-` for every other
 * character; `fallback` where nothing is left of it.
 */
export const userNameOf = (username: string, fallback: string): string => {
  const name = username
    .toLowerCase()
    .replace(/[^a-z0-9-]/g, '-')
    .slice(0, 63)
    .replace(/^-+|-+$/g, '');
  return name === '' ? fallback : name;
};
