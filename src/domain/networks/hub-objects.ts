import { z } from 'zod';
import { base32, fnv1a64 } from '../hash.ts';
import { OSAC_GROUP, OWNED_VERBS, type OwnedObject, type OwnedShown } from '../hubs/hub-object.ts';
import { shownConditions, shownList, shownMeta, shownPart, shownText } from '../hubs/hub-codecs.ts';

/** What external IPs and their pools are on a hub (OSAC's operator). */
export const shownStatus = { phase: shownText, conditions: shownConditions };

/** What both have in common; `word` is the kind's in labels and names. */
export const networkObject = (kind: string, word: string, called: string) => ({
  kind,
  group: OSAC_GROUP,
  version: 'v1alpha1',
  plural: `${word}s`,
  idLabel: `${OSAC_GROUP}/${word}-uuid`,
  ownLane: true as const,
  owner: called.slice(0, -1),
  called,
  nameOf: (id: string): string => `${word}-${base32(fnv1a64(id))}`,
  secretFields: [],
  // A hub that carries clusters alone needs none of them.
  rights: [
    { verbs: OWNED_VERBS, within: 'orders', setup: 'hub-access', optional: true },
    { verbs: OWNED_VERBS, within: 'anywhere', setup: 'tenant-namespaces', optional: true },
  ] as const,
});

export type Shown<Spec extends object> = OwnedShown<Spec> & {
  readonly phase: string;
  readonly message: string;
};

export const explained = (conditions: z.infer<typeof shownConditions>): string =>
  conditions.find(({ type, status }) => type === 'Ready' && status === 'False')?.message ?? '';

const poolSpec = z.object({
  cidrs: z.array(z.string()).readonly(),
  ipFamily: z.enum(['IPv4', 'IPv6']),
  implementationStrategy: z.exactOptional(z.string()),
});
const shownPool = shownPart({
  spec: shownPart({
    cidrs: shownList(shownText),
    ipFamily: z.enum(['IPv4', 'IPv6']).catch('IPv4'),
    implementationStrategy: z.exactOptional(z.string()).catch(undefined as never),
  }),
  status: shownPart(shownStatus),
});

export const EXTERNAL_IP_POOL: OwnedObject<z.infer<typeof poolSpec>, Shown<z.infer<typeof poolSpec>>> = {
  ...networkObject('ExternalIPPool', 'externalippool', 'external IP pools'),
  spec: poolSpec,
  sample: {
    spec: { cidrs: ['192.0.2.0/24'], ipFamily: 'IPv4', implementationStrategy: 'metallb-l2' },
    status: { phase: 'Ready' },
  },
  shown: (object) => {
    const { spec, status } = shownPool.parse(object);
    const meta = shownMeta(object, EXTERNAL_IP_POOL.idLabel);
    return { ...meta, spec, phase: status.phase, message: explained(status.conditions) };
  },
};

const ipSpec = z.object({ pool: z.string() });
const shownIp = shownPart({
  spec: shownPart({ pool: shownText }),
  status: shownPart({ ...shownStatus, state: shownText, address: shownText }),
});
const PHASE_OF_STATE: { readonly [state: string]: string } = { Allocated: 'Ready', Failed: 'Failed' };

/** The pool's own id is in its spec. */
export const EXTERNAL_IP: OwnedObject<
  z.infer<typeof ipSpec>,
  Shown<z.infer<typeof ipSpec>> & { readonly address: string }
> = {
  ...networkObject('ExternalIP', 'externalip', 'external IPs'),
  spec: ipSpec,
  sample: { spec: { pool: 'check' }, status: { phase: 'Ready', state: 'Allocated', address: '192.0.2.1' } },
  shown: (object) => {
    const { spec, status } = shownIp.parse(object);
    const { state, address, conditions } = status;
    const meta = shownMeta(object, EXTERNAL_IP.idLabel);
    return { ...meta, spec, phase: PHASE_OF_STATE[state] ?? '', message: explained(conditions), address };
  },
};
