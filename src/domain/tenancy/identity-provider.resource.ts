import {
  documentDecider,
  documentView,
  type CheckContext,
  type DocumentCommand,
  type DocumentState,
} from '../catalog/document.ts';
import { reject, type Rejection } from '../decider.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import type { ResourceKind } from '../resource.ts';
import type { IdentityProviderEvent } from './events.ts';
import { BUILT_IN_TENANTS } from './tenant.resource.ts';

/**
 * Identity providers (osac-api.md §11): where a tenant's users sign in. The client secret is write-only (the original
 * returns it, osac-api-run.md §2), and users are only ever sent to https addresses.
 */
const SECRETS = [
  { path: 'spec.oidc.client_secret', kind: 'client-secret', reads: 'absent', encoding: 'text' },
] as const;
const ADDRESSES = ['issuer', 'authorization_url', 'token_url', 'user_info_url', 'jwks_url', 'logout_url'];
const MAX_URL = 2048;

export const identityProviderDecider = documentDecider({
  words: 'identity provider',
  events: {
    created: 'IdentityProviderConnected',
    revised: 'IdentityProviderRevised',
    deletionRequested: 'IdentityProviderDisconnectionRequested',
    retired: 'IdentityProviderDisconnected',
  },
  immutable: [],
  check: (document, context) => tenantRejection(context) ?? addressRejection(document),
});

export const identityProvider: ResourceKind<DocumentState, DocumentCommand, IdentityProviderEvent> = {
  kind: 'identityProvider',
  collection: 'identity_providers',
  words: 'identity provider',
  message: 'IdentityProvider',
  service: 'IdentityProviders',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  wrapsReplies: true,
  event: { field: 'identity_provider', public: false },
  ids: 'client-may-choose',
  nameScope: 'project',
  defaultTenant: 'shared',
  privateOnly: ['metadata.finalizers', 'status.conditions'],
  secrets: SECRETS,
  immutable: [],
  references: [],
  pointsAt: () => [],
  protectedWhileReferenced: true,
  decider: identityProviderDecider,
  stateVersion: 1,
  view: (state) => {
    const view = documentView(state, SECRETS);
    const phase = view.exists ? stringAt(objectAt(view.document, 'status'), 'phase') : '';
    return view.exists && phase !== '' ? { ...view, state: phase } : view;
  },
};

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
