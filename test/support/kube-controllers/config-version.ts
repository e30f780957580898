import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt } from '../../../src/domain/json-tools.ts';

/**
 * The operator's hash of a spec: FNV-1a 64 of its JSON as Go writes it, fields in the order of the type, empty ones
 * left out (OSAC's operator). Not the code of the service, so that one checks the other.
 */
export const playedConfigVersion = (spec: JsonObject): string => {
  const { nodeRequests, networkAttachment } = spec;
  const requests = Array.isArray(nodeRequests) ? (nodeRequests as JsonValue[]).filter(isObject) : [];
  const network = objectAt(spec, 'network');
  const attachment = isObject(networkAttachment) ? networkAttachment : undefined;
  const text = goJson(
    filled({
      templateID: spec['templateID'],
      templateParameters: spec['templateParameters'],
      nodeRequests: requests.map((one) => ({
        resourceClass: one['resourceClass'] ?? '',
        numberOfNodes: one['numberOfNodes'] ?? 0,
      })),
      pullSecret: spec['pullSecret'],
      sshPublicKey: spec['sshPublicKey'],
      releaseImage: spec['releaseImage'],
      network: filled({ podCIDR: network['podCIDR'], serviceCIDR: network['serviceCIDR'] }),
      networkAttachment:
        attachment === undefined
          ? undefined
          : {
              subnetRef: attachment['subnetRef'] ?? '',
              ...filled({ securityGroupRefs: attachment['securityGroupRefs'] }),
            },
    }),
  );
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text, 'utf8')) {
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return hash.toString(16).padStart(16, '0');
};

const filled = (fields: { readonly [name: string]: JsonValue | undefined }): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, JsonValue] => !isEmpty(entry[1])),
  );

const isEmpty = (value: JsonValue | undefined): boolean =>
  value === undefined || value === '' || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);

/** Go escapes what might end a script element. */
const goJson = (value: JsonValue): string =>
  JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
