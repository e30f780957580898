import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { stringAt } from '../json-tools.ts';

/** Pod and service ranges, host bits cut (osac-api.md §11 ClusterNetwork); hubs take IPv4 only (management-cluster.md §1.1). */
export type ClusterNetwork = { readonly podCidr?: string; readonly serviceCidr?: string };

export const canonicalNetwork = (network: JsonObject): ClusterNetwork | Rejection => {
  const pod = canonicalCidr(stringAt(network, 'pod_cidr'));
  const service = canonicalCidr(stringAt(network, 'service_cidr'));
  if (pod === undefined) return refuse('pod_cidr', stringAt(network, 'pod_cidr'));
  if (service === undefined) return refuse('service_cidr', stringAt(network, 'service_cidr'));
  return {
    ...(pod === '' ? {} : { podCidr: pod }),
    ...(service === '' ? {} : { serviceCidr: service }),
  };
};

const CIDR = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/;

/** Empty stays empty; undefined when it is no IPv4 range. */
export const canonicalCidr = (text: string): string | undefined => {
  if (text === '') return '';
  const [, ...parts] = (CIDR.exec(text) ?? []).map(Number);
  const [a = 256, b = 256, c = 256, d = 256, bits = 33] = parts;
  if ([a, b, c, d].some((octet) => octet > 255) || bits > 32) return undefined;
  const address = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  const masked = bits === 0 ? 0 : (address & (0xffffffff << (32 - bits))) >>> 0;
  return `${[24, 16, 8, 0].map((shift) => (masked >>> shift) & 0xff).join('.')}/${bits}`;
};

const refuse = (name: string, value: string): Rejection =>
  reject(
    'invalid',
    'INVALID_CIDR',
    `field 'spec.network.${name}' must be an IPv4 range such as 10.128.0.0/14, but it is '${value}'`,
    {
      field: `spec.network.${name}`,
    },
  );
