import type { CheckContext } from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { BUILT_IN_TENANTS } from './tenant.resource.ts';

/**
 * Identity providers: where a tenant's users sign in. The client secret is write-only (the original returns it,
 * OSAC), and users are only ever sent to https addresses.
 */
const ADDRESSES = ['issuer', 'authorization_url', 'token_url', 'user_info_url', 'jwks_url', 'logout_url'];
const MAX_URL = 2048;

export const identityProvider = documentKind({
  kind: 'identityProvider',
  context: 'tenancy',
  events: {
    created: 'IdentityProviderConnected',
    revised: 'IdentityProviderRevised',
    deletionRequested: 'IdentityProviderDisconnectionRequested',
    retired: 'IdentityProviderDisconnected',
  },
  wrapsReplies: true,
  untold: true,
  state: 'status.phase',
  privateOnly: ['status.conditions'],
  secrets: [{ path: 'spec.oidc.client_secret', kind: 'client-secret', reads: 'absent', encoding: 'text' }],
  check: (document, context) => tenantRejection(context) ?? addressRejection(document),
});

const tenantRejection = ({ tenant }: CheckContext): Rejection | undefined =>
  BUILT_IN_TENANTS.some((builtIn) => builtIn === tenant)
    ? reject(
        'invalid',
        'TENANT_REQUIRED',
        `an identity provider must belong to a tenant, not to '${tenant}': set 'metadata.tenant'`,
        { field: 'metadata.tenant' },
      )
    : undefined;

const addressRejection = (document: JsonObject): Rejection | undefined => {
  const oidc = objectAt(objectAt(document, 'spec'), 'oidc');
  const wrong = ADDRESSES.find((field) => stringAt(oidc, field) !== '' && !isHttps(stringAt(oidc, field)));
  return wrong === undefined
    ? undefined
    : reject(
        'invalid',
        'INVALID_URL',
        `field 'spec.oidc.${wrong}' must be an https URL of at most ${MAX_URL} characters, without a password in it`,
        { field: `spec.oidc.${wrong}` },
      );
};

const isHttps = (text: string): boolean => {
  if (text.length > MAX_URL || !URL.canParse(text) || /[\s\\]/.test(text)) return false;
  const { protocol, username, password } = new URL(text);
  return protocol === 'https:' && username === '' && password === '';
};
