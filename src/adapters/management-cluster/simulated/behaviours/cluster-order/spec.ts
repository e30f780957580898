import { z } from 'zod';
import type { ClusterOrderManifest, ClusterOrderSpec } from '../../../../../domain/clusters/hub-objects.ts';
import { fieldOf } from '../../../../../domain/hubs/hub-object.ts';
import { invalidObject, type Cause } from '../behaviour.ts';

/**
 * What the API server and the operator do with a ClusterOrder's spec, rebuilt on the hub's side: CRD validation
 * (OSAC's operator) and merge patch.
 * Deliberately independent of the same rules on our own side.
 */
const TEMPLATE_ID = /^[a-zA-Z_][a-zA-Z0-9._]*$/;
const RELEASE_IMAGE = /^.+\/.+:.+$/;
const CIDR = /^([0-9]{1,3}\.){3}[0-9]{1,3}\/[0-9]{1,2}$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_BYTES = { pullSecret: 262_144, sshPublicKey: 16_384, releaseImage: 512 } as const;
const MAX_LABEL_VALUE = 63;

/** Throws HubError `invalid` as the API server would answer 422 on a create. */
export const checkManifest = (manifest: ClusterOrderManifest): void => {
  const causes = [...metadataCauses(manifest), ...specCauses(manifest.spec)];
  if (causes.length > 0) throw invalid(manifest.name, causes);
};

/** Merge patch of a spec (arrays are replaced, objects merged). Throws HubError `invalid`. */
export const patchSpec = (
  name: string,
  current: ClusterOrderSpec,
  patch: Partial<ClusterOrderSpec>,
): ClusterOrderSpec => {
  const network =
    patch.network === undefined
      ? current.network
      : { ...current.network, ...withoutUndefined(patch.network) };
  const merged = {
    ...current,
    ...withoutUndefined(patch),
    ...(network === undefined ? {} : { network }),
  } as ClusterOrderSpec;
  const causes = specCauses(merged);
  if (causes.length === 0 && merged.templateID !== current.templateID) {
    causes.push(cause('spec.templateID', `Invalid value: "${merged.templateID}": templateID is immutable`));
  }
  if (causes.length > 0) throw invalid(name, causes);
  return merged;
};

const withoutUndefined = <T extends object>(value: T): Partial<T> =>
  Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as Partial<T>;

const metadataCauses = ({ name, labels }: ClusterOrderManifest): Cause[] => [
  ...(name.length > 253 || !SUBDOMAIN.test(name)
    ? [cause('metadata.name', `Invalid value: "${name}": not a lowercase RFC 1123 subdomain`)]
    : []),
  ...Object.values(labels)
    .filter((value) => Buffer.byteLength(value) > MAX_LABEL_VALUE)
    .map((value) =>
      cause('metadata.labels', `Invalid value: "${value}": must be no more than ${MAX_LABEL_VALUE} bytes`),
    ),
];

const matching = (pattern: RegExp) => z.string().regex(pattern, `should match '${pattern.source}'`);
const TOO_LONG = 'Too long: may not be more than';
const limited = (bytes: number) =>
  z.string().refine((text) => Buffer.byteLength(text) <= bytes, `${TOO_LONG} ${bytes} bytes`);
const range = matching(CIDR).optional();

/** The CRD's schema. The port's types are no proof here: the values come from another process in the real case. */
const CRD = z.object({
  templateID: matching(TEMPLATE_ID),
  templateParameters: z.string().optional(),
  pullSecret: limited(MAX_BYTES.pullSecret).optional(),
  sshPublicKey: limited(MAX_BYTES.sshPublicKey).optional(),
  releaseImage: limited(MAX_BYTES.releaseImage)
    .regex(RELEASE_IMAGE, `should match '${RELEASE_IMAGE.source}'`)
    .optional(),
  nodeRequests: z.array(z.object({ resourceClass: z.string(), numberOfNodes: z.int() })).optional(),
  network: z.object({ podCIDR: range, serviceCIDR: range }).optional(),
});

/** In an API server's words. */
const specCauses = (spec: object): Cause[] =>
  (CRD.safeParse(spec).error?.issues ?? []).map(({ code, path, message }) => {
    const field = fieldOf(path);
    const value = path.reduce<unknown>((inner, key) => (inner as { [key: PropertyKey]: unknown })[key], spec);
    if (message.startsWith(TOO_LONG)) return cause(field, message, 'FieldValueTooLong');
    if (code !== 'invalid_type')
      return cause(field, `Invalid value: "${String(value)}": ${field} in body ${message}`);
    return value === undefined || value === null
      ? cause(field, 'Required value', 'FieldValueRequired')
      : cause(field, `Invalid value: "${typeof value}": ${message}`, 'FieldValueTypeInvalid');
  });

const cause = (field: string, message: string, reason = 'FieldValueInvalid'): Cause => ({
  field,
  reason,
  message,
});

const invalid = (name: string, causes: readonly Cause[]) => invalidObject('ClusterOrder', name, causes);
