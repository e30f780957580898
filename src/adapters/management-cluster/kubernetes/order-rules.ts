import type { ClusterOrderManifest, ClusterOrderSpec } from '../../../app/management-cluster.ts';
import { HubError } from '../../../app/management-cluster.ts';

/**
 * What is checked before an order is sent. The CRD refuses some of it with 422; the rest it stores although the
 * operator then stops for ever, panics after the launch, or rewrites it (operator-run.md §2 h, §3, §4.7).
 */
type Fault = { readonly field: string; readonly message: string };

const TEMPLATE_ID = /^[a-zA-Z_][a-zA-Z0-9._]*$/;
const RELEASE_IMAGE = /^.+\/.+:.+$/;
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const CIDR = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/;
const MAX_DNS_LABEL = 63;
const MAX_NODES = 2 ** 31 - 1;
const MAX_BYTES = { pullSecret: 262_144, sshPublicKey: 16_384, releaseImage: 512 } as const;

export const isLabelValue = (value: string): boolean => LABEL_VALUE.test(value);
export const isDnsLabel = (name: string): boolean => name.length <= MAX_DNS_LABEL && DNS_LABEL.test(name);

/** Throws HubError `invalid` that names each field; nothing has been sent then. */
export const checkManifest = (manifest: ClusterOrderManifest): void => {
  const { name, namespace, spec } = manifest;
  // A patch may leave fields out, an order may not.
  const required = ['templateID', 'templateParameters', 'nodeRequests'] as const;
  refuse(name, [
    ...nameFaults(namespace, name),
    ...labelFaults(manifest.labels),
    ...required
      .filter((field) => (spec as Partial<ClusterOrderSpec>)[field] === undefined)
      .map((field) => ({ field: `spec.${field}`, message: 'is missing' })),
    ...specFaults(spec),
  ]);
};

/** As `checkManifest`, for the fields of a merge patch. */
export const checkPatch = (name: string, spec: Partial<ClusterOrderSpec>): void =>
  refuse(name, [
    ...(Object.keys(spec).length === 0 ? [{ field: 'spec', message: 'changes nothing' }] : []),
    ...specFaults(spec),
  ]);

const refuse = (name: string, faults: readonly Fault[]): void => {
  if (faults.length === 0) return;
  const text = faults.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new HubError('invalid', `order ${name} was not sent: ${text}`, {
    facts: { causes: faults.map((fault) => ({ ...fault })) },
  });
};

/** The operator makes namespaces `<namespace>-<name>` and `<namespace>-<name>-<name>` (§10.1). */
const nameFaults = (namespace: string, name: string): Fault[] => [
  ...(isDnsLabel(name)
    ? []
    : [{ field: 'metadata.name', message: 'is not a DNS label of at most 63 characters' }]),
  ...(isDnsLabel(namespace)
    ? []
    : [{ field: 'metadata.namespace', message: 'is not a DNS label of at most 63 characters' }]),
  ...(namespace.length + 2 * name.length + 2 > MAX_DNS_LABEL
    ? [{ field: 'metadata.name', message: 'is too long for the namespaces that are named after it' }]
    : []),
];

const labelFaults = (labels: { readonly [key: string]: string }): Fault[] =>
  Object.entries(labels)
    .filter(([, value]) => !isLabelValue(value))
    .map(([key]) => ({ field: `metadata.labels[${key}]`, message: 'is not a label value' }));

const specFaults = (spec: Partial<ClusterOrderSpec>): Fault[] => [
  ...nullFaults(spec),
  ...patternFaults('templateID', spec.templateID, TEMPLATE_ID, 'is not a template id'),
  ...parameterFaults(spec.templateParameters),
  ...nodeFaults(spec.nodeRequests),
  ...(['pullSecret', 'sshPublicKey', 'releaseImage'] as const).flatMap((field) =>
    Buffer.byteLength(spec[field] ?? '') <= MAX_BYTES[field]
      ? []
      : [{ field: `spec.${field}`, message: `has more than ${MAX_BYTES[field]} bytes` }],
  ),
  ...patternFaults('releaseImage', spec.releaseImage, RELEASE_IMAGE, 'is not an image with a tag or digest'),
  ...networkFaults(spec.network),
];

/** Null removes what is immutable and lets it come back changed (operator-run.md §2 h). */
const nullFaults = (spec: object): Fault[] =>
  Object.entries(spec).flatMap(([field, value]) =>
    value === null || value === undefined
      ? [{ field: `spec.${field}`, message: 'is null' }]
      : typeof value === 'object' && !Array.isArray(value) && Object.keys(value as object).length === 0
        ? [{ field: `spec.${field}`, message: 'is empty' }]
        : [],
  );

const patternFaults = (
  field: string,
  value: string | undefined,
  pattern: RegExp,
  message: string,
): Fault[] => (typeof value !== 'string' || pattern.test(value) ? [] : [{ field: `spec.${field}`, message }]);

const parameterFaults = (text: string | undefined): Fault[] => {
  if (typeof text !== 'string') return [];
  const fault = [{ field: 'spec.templateParameters', message: 'is not a JSON object as text' }];
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? [] : fault;
  } catch {
    return fault;
  }
};

const nodeFaults = (requests: ClusterOrderSpec['nodeRequests'] | undefined): Fault[] => {
  if (!Array.isArray(requests)) return [];
  const field = 'spec.nodeRequests';
  // The operator drops an empty list, and the generation moves without us.
  if (requests.length === 0) return [{ field, message: 'is empty' }];
  return (requests as ClusterOrderSpec['nodeRequests']).flatMap(({ resourceClass, numberOfNodes }, index) => [
    ...(LABEL_NAME.test(resourceClass)
      ? []
      : [{ field: `${field}[${index}].resourceClass`, message: 'is not a label value' }]),
    ...(Number.isInteger(numberOfNodes) && numberOfNodes >= 0 && numberOfNodes <= MAX_NODES
      ? []
      : [{ field: `${field}[${index}].numberOfNodes`, message: 'is not a number of nodes' }]),
    // Ansible takes only one entry of a class.
    ...(requests.findIndex((other) => other.resourceClass === resourceClass) === index
      ? []
      : [{ field: `${field}[${index}].resourceClass`, message: 'is there twice' }]),
  ]);
};

const networkFaults = (network: ClusterOrderSpec['network']): Fault[] =>
  Object.entries(network ?? {}).flatMap(([field, cidr]) =>
    isCidr(cidr) ? [] : [{ field: `spec.network.${field}`, message: 'is not an IPv4 range' }],
  );

const isCidr = (text: unknown): boolean => {
  const [, a, b, c, d, length] = (typeof text === 'string' ? CIDR.exec(text) : null) ?? [];
  const parts = [a, b, c, d].map(Number);
  return length !== undefined && parts.every((part) => part <= 255) && Number(length) <= 32;
};
