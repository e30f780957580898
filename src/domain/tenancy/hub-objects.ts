import { z } from 'zod';
import { OSAC_GROUP, OWNED_VERBS, type OwnedObject } from '../hubs/hub-object.ts';
import { shownConditions, shownMeta, shownPart, shownText } from '../hubs/hub-codecs.ts';
import { NAMESPACE } from '../hubs/hub-objects.ts';
import { tenantSpaceId } from './tenant-space.ts';

const shownTenant = shownPart({ status: shownPart({ phase: shownText, conditions: shownConditions }) });

/** By which an operator knows a tenant (OSAC's operator): in the hub's own namespace, under the tenant's name. */
export const TENANT: OwnedObject = {
  kind: 'Tenant',
  group: OSAC_GROUP,
  version: 'v1alpha1',
  plural: 'tenants',
  idLabel: `${OSAC_GROUP}/tenant-uuid`,
  runOf: tenantSpaceId,
  ownLane: true,
  owner: 'tenant',
  called: 'tenants',
  nameOf: (tenant) => tenant,
  spec: z.object({}),
  secretFields: [],
  sample: { spec: {}, status: { phase: 'Ready' } },
  // A hub that carries clusters alone needs none of them.
  rights: [{ verbs: OWNED_VERBS, within: 'hub', setup: 'hub-access', optional: true }],
  needs: [NAMESPACE],
  withoutPlaybook: true,
  shown: (object) => {
    const { phase, conditions } = shownTenant.parse(object).status;
    const missing = conditions.find(({ status }) => status === 'False');
    return { ...shownMeta(object, TENANT.idLabel), spec: {}, phase, message: missing?.message ?? '' };
  },
};
