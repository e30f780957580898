import type { Holder } from '../holder.ts';
import type { JsonObject } from '../json.ts';
import type { MadeObject } from '../made-objects.ts';
import { attachmentSpec } from './external-ip-attachment.resource.ts';

/** External IPs and their attachments that the service makes for an object and removes with it (OSAC). */
export type AutoIds = { readonly ip: string; readonly attachment: string };
type Owner = {
  readonly field: Parameters<typeof attachmentSpec>[1];
  readonly id: string;
  readonly name: string;
};

const AUTO = 'osac.openshift.io/auto-created';
/** Of names that are made of another one: what is left for it. */
const LONGEST_NAME = 40;

/** `endpoint`: of the owner, or empty. The addresses come before the attachments. */
export const autoAddresses = (
  { field, id, name }: Owner,
  pool: JsonObject,
  wanted: readonly (readonly [endpoint: string, ids: AutoIds])[],
): readonly MadeObject[] => {
  const metadata: JsonObject = {
    labels: { [AUTO]: 'true', [`${AUTO}-for`]: id },
    annotations: { 'osac.openshift.io/owner-reference': id },
  };
  // OSAC's have no names, so that the second one is refused; a part of its id tells those of two owners apart.
  const named = (endpoint: string, { ip }: AutoIds): string =>
    [name.slice(0, LONGEST_NAME).replace(/-+$/, ''), endpoint.toLowerCase(), ip.slice(0, 8)]
      .filter((part) => part !== '')
      .join('-');
  return [
    ...wanted.map(([endpoint, ids]) => ({
      kind: 'externalIp',
      id: ids.ip,
      name: named(endpoint, ids),
      document: { metadata, spec: { pool: { ...pool } } },
    })),
    ...wanted.map(([endpoint, ids]) => ({
      kind: 'externalIpAttachment',
      id: ids.attachment,
      name: named(endpoint, ids),
      document: {
        metadata,
        spec: attachmentSpec({ id: ids.ip, name: named(endpoint, ids) }, field, { id, name }, endpoint),
      },
    })),
  ];
};

/** What goes before its owner, in this order: attachments, its own and those made by hand, then its own addresses. */
export const boundTo = (
  users: readonly { readonly holder: Holder }[],
  made: readonly Holder[],
): readonly (readonly Holder[])[] => {
  const own = made.map(({ kind, id }): Holder => ({ kind, id }));
  const ips = own.filter(({ kind }) => kind === 'externalIp');
  const attachments = [...users.map(({ holder }) => holder), ...own].filter(
    ({ kind }) => kind !== 'externalIp',
  );
  return [[...new Map(attachments.map((each) => [each.id, each])).values()], ips];
};
