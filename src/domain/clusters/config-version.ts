import { fnv1a64, hex64 } from '../hash.ts';
import { sameJson } from '../json-tools.ts';
import type { ClusterOrderSpecShape } from './observed.ts';

/**
 * Equal as far as we can know: the pull secret's value is not ours to compare. White space between template parameters
 * says nothing: a retry adds some (relaunch.ts).
 */
export const sameSpec = (stored: ClusterOrderSpecShape, wanted: ClusterOrderSpecShape): boolean =>
  sameJson(comparable(stored), comparable(wanted));

/** A JSON string, which is kept as it is, or white space outside of one. */
const STRING_OR_SPACE = /("(?:[^"\\]|\\.)*")|\s+/g;

const comparable = (spec: ClusterOrderSpecShape): object => ({
  templateID: spec.templateID,
  templateParameters: spec.templateParameters.replaceAll(STRING_OR_SPACE, '$1'),
  nodeRequests: requestsOf(spec),
  sshPublicKey: spec.sshPublicKey ?? '',
  releaseImage: spec.releaseImage ?? '',
  podCIDR: spec.network?.podCIDR ?? '',
  serviceCIDR: spec.network?.serviceCIDR ?? '',
});

type Requests = ClusterOrderSpecShape['nodeRequests'];
const requestsOf = ({ nodeRequests }: { readonly nodeRequests?: Requests }): Requests =>
  (nodeRequests ?? []).map(({ resourceClass, numberOfNodes }) => ({ resourceClass, numberOfNodes }));

/**
 * The operator's `desiredConfigVersion`: FNV-1a 64 of the spec as compact Go JSON, pull secret included
 * (OSAC's operator). Key order and escapes are part of it.
 */
export const configVersion = (spec: ClusterOrderSpecShape): string => {
  const network = filled({ podCIDR: spec.network?.podCIDR, serviceCIDR: spec.network?.serviceCIDR });
  const nodeRequests = requestsOf(spec);
  const text = JSON.stringify({
    ...filled({ templateID: spec.templateID, templateParameters: spec.templateParameters }),
    ...(nodeRequests.length === 0 ? {} : { nodeRequests }),
    ...filled({
      pullSecret: spec.pullSecret,
      sshPublicKey: spec.sshPublicKey,
      releaseImage: spec.releaseImage,
    }),
    ...(Object.keys(network).length === 0 ? {} : { network }),
  });
  return hex64(fnv1a64(text.replaceAll(/[<>&\u2028\u2029]/g, goEscape)));
};

const goEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

const filled = (values: { [key: string]: string | undefined }): { [key: string]: string } =>
  Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''),
  );
