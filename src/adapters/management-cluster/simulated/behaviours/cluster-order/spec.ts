import type { ClusterOrderManifest, ClusterOrderSpec } from '../../../../../domain/clusters/hub-objects.ts';
import { invalidObject, type Cause } from '../behaviour.ts';

/**
 * What the API server and the operator do with a ClusterOrder's spec, rebuilt on the hub's side: CRD validation
 * (management-cluster.md §1.1 with the recorded answers of operator-run.md §2 h), merge patch and the hash that the
 * operator shows as `desiredConfigVersion`. Deliberately independent of the same rules on our own side.
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

const metadataCauses = (manifest: ClusterOrderManifest): Cause[] => {
  const causes: Cause[] = [];
  if (manifest.name.length > 253 || !SUBDOMAIN.test(manifest.name)) {
    causes.push(
      cause('metadata.name', `Invalid value: "${manifest.name}": not a lowercase RFC 1123 subdomain`),
    );
  }
  for (const value of Object.values(manifest.labels)) {
    if (Buffer.byteLength(value) > MAX_LABEL_VALUE) {
      causes.push(
        cause('metadata.labels', `Invalid value: "${value}": must be no more than ${MAX_LABEL_VALUE} bytes`),
      );
    }
  }
  return causes;
};

/** The port's types are no proof here: the values come from another process in the real case. */
const specCauses = (spec: Readonly<Record<string, unknown>> | ClusterOrderSpec): Cause[] => {
  const fields: Readonly<Record<string, unknown>> = { ...spec };
  return [
    ...templateCauses(fields['templateID']),
    ...textCauses(fields, 'templateParameters'),
    ...textCauses(fields, 'pullSecret', MAX_BYTES.pullSecret),
    ...textCauses(fields, 'sshPublicKey', MAX_BYTES.sshPublicKey),
    ...textCauses(fields, 'releaseImage', MAX_BYTES.releaseImage),
    ...patternCauses(fields['releaseImage'], 'spec.releaseImage', RELEASE_IMAGE),
    ...nodeRequestCauses(fields['nodeRequests']),
    ...networkCauses(fields['network']),
  ];
};

const templateCauses = (value: unknown): Cause[] => {
  if (value === undefined || value === null) {
    return [cause('spec.templateID', 'Required value', 'FieldValueRequired')];
  }
  if (typeof value !== 'string') return [wrongType('spec.templateID', 'string', value)];
  return patternCauses(value, 'spec.templateID', TEMPLATE_ID);
};

const textCauses = (fields: Readonly<Record<string, unknown>>, name: string, max?: number): Cause[] => {
  const value = fields[name];
  if (value === undefined) return [];
  if (typeof value !== 'string') return [wrongType(`spec.${name}`, 'string', value)];
  if (max === undefined || Buffer.byteLength(value) <= max) return [];
  return [cause(`spec.${name}`, `Too long: may not be more than ${max} bytes`, 'FieldValueTooLong')];
};

const patternCauses = (value: unknown, field: string, pattern: RegExp): Cause[] =>
  typeof value !== 'string' || pattern.test(value)
    ? []
    : [cause(field, `Invalid value: "${value}": ${field} in body should match '${pattern.source}'`)];

const nodeRequestCauses = (value: unknown): Cause[] => {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [wrongType('spec.nodeRequests', 'array', value)];
  return value.flatMap((request: Readonly<Record<string, unknown>>, index) => {
    const field = `spec.nodeRequests[${index}]`;
    return [
      ...requiredCauses(request['resourceClass'], `${field}.resourceClass`, 'string'),
      ...requiredCauses(request['numberOfNodes'], `${field}.numberOfNodes`, 'integer'),
    ];
  });
};

const requiredCauses = (value: unknown, field: string, type: 'string' | 'integer'): Cause[] => {
  if (value === undefined || value === null) return [cause(field, 'Required value', 'FieldValueRequired')];
  const fits = type === 'string' ? typeof value === 'string' : Number.isSafeInteger(value);
  return fits ? [] : [wrongType(field, type, value)];
};

const networkCauses = (value: unknown): Cause[] => {
  if (value === undefined) return [];
  if (typeof value !== 'object' || value === null) return [wrongType('spec.network', 'object', value)];
  const network = value as Readonly<Record<string, unknown>>;
  return ['podCIDR', 'serviceCIDR'].flatMap((name) =>
    patternCauses(network[name], `spec.network.${name}`, CIDR),
  );
};

const cause = (field: string, message: string, reason = 'FieldValueInvalid'): Cause => ({
  field,
  reason,
  message,
});
const wrongType = (field: string, type: string, value: unknown): Cause =>
  cause(
    field,
    `Invalid value: "${typeof value}": ${field} in body must be of type ${type}`,
    'FieldValueTypeInvalid',
  );

const invalid = (name: string, causes: readonly Cause[]) => invalidObject('ClusterOrder', name, causes);

/**
 * FNV-1a 64 of the spec as the operator's Go types encode it: fixed key order, empty fields left out, `<`, `>`, `&`
 * and the two line separators escaped (operator-run.md §3, row desiredConfigVersion).
 */
export const configVersion = (spec: ClusterOrderSpec): string => {
  const ordered = {
    templateID: spec.templateID,
    ...(spec.templateParameters === '' ? {} : { templateParameters: spec.templateParameters }),
    ...(spec.nodeRequests.length === 0
      ? {}
      : {
          nodeRequests: spec.nodeRequests.map(({ resourceClass, numberOfNodes }) => ({
            resourceClass,
            numberOfNodes,
          })),
        }),
    ...nonEmpty('pullSecret', spec.pullSecret),
    ...nonEmpty('sshPublicKey', spec.sshPublicKey),
    ...nonEmpty('releaseImage', spec.releaseImage),
    ...(spec.network === undefined
      ? {}
      : {
          network: {
            ...nonEmpty('podCIDR', spec.network.podCIDR),
            ...nonEmpty('serviceCIDR', spec.network.serviceCIDR),
          },
        }),
  };
  const text = JSON.stringify(ordered).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return fnv1a64(Buffer.from(text, 'utf8')).toString(16).padStart(16, '0');
};

const nonEmpty = (name: string, value: string | undefined): { [key: string]: string } =>
  value === undefined || value === '' ? {} : { [name]: value };

const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

const fnv1a64 = (bytes: Uint8Array): bigint => {
  let hash = FNV_OFFSET;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * FNV_PRIME);
  return hash;
};
