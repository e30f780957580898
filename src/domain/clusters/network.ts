import { invalid, isRefused, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { defined, stringAt } from '../json-tools.ts';
import { parseCidr, type Cidr } from '../cidr.ts';

/**
 * Pod and service ranges in their canonical form (OSAC). Both are of one family. Hubs in
 * OSAC's shape take IPv4 only; what they refuse, they refuse themselves.
 */
export type ClusterNetwork = { readonly podCidr?: string; readonly serviceCidr?: string };

export const canonicalNetwork = (network: JsonObject): ClusterNetwork | Rejection => {
  const pod = rangeOf(network, 'pod_cidr');
  if (pod !== undefined && isRefused(pod)) return pod;
  const service = rangeOf(network, 'service_cidr');
  if (service !== undefined && isRefused(service)) return service;
  if (pod !== undefined && service !== undefined && pod.family !== service.family)
    return refuse(
      'service_cidr',
      `must be of the same family as 'spec.network.pod_cidr' ('${pod.text}'), but it is '${service.text}'`,
    );
  return defined({ podCidr: pod?.text, serviceCidr: service?.text });
};

type Field = 'pod_cidr' | 'service_cidr';

const rangeOf = (network: JsonObject, name: Field): Cidr | Rejection | undefined => {
  const text = stringAt(network, name);
  if (text === '') return undefined;
  return (
    parseCidr(text) ??
    refuse(
      name,
      `must be an IPv4 or IPv6 range such as 10.128.0.0/14 or fd01::/48, but it is '${text.slice(0, 64)}'`,
    )
  );
};

const refuse = (name: Field, problem: string): Rejection =>
  invalid('INVALID_CIDR', `spec.network.${name}`, `field 'spec.network.${name}' ${problem}`);
