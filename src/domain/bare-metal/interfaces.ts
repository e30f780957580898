import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { listAt, stringAt } from '../json-tools.ts';
import { fabricInterfaceOf } from '../catalog/host-type.resource.ts';
import { ATTACHMENTS } from '../machines/attachments.ts';

/** Which interface of its host each attachment of a bare-metal instance is made through (OSAC). */
const LIFECYCLE = 'lifecycle';

export const interfaceIn = (attachment: JsonObject): string => stringAt(attachment, 'interface');
export const isPrimary = (attachment: JsonObject): boolean => attachment['primary'] === true;

type HostType = { readonly name: string; readonly document: JsonObject };

const refuse = (code: string, index: number, part: string, message: string): Rejection =>
  invalid(code, `${ATTACHMENTS}.${index}.${part}`, message);

const interfaceRejection = (
  name: string,
  index: number,
  { name: host, document }: HostType,
): Rejection | undefined => {
  const found = listAt(document, 'interfaces').find((one) => stringAt(one, 'name') === name);
  if (found === undefined)
    return refuse('UNKNOWN_INTERFACE', index, 'interface', `host type '${host}' has no interface '${name}'`);
  return stringAt(found, 'role') === LIFECYCLE
    ? refuse(
        'LIFECYCLE_INTERFACE',
        index,
        'interface',
        `interface '${name}' of host type '${host}' has role '${LIFECYCLE}': choose another one`,
      )
    : undefined;
};

/** One attachment needs no interface and is primary; of several each names its own, and exactly one is primary. */
export const withInterfaces = (
  attachments: readonly JsonObject[],
  hostType: HostType | undefined,
): readonly JsonObject[] | Rejection => {
  const [first, second] = attachments;
  if (first === undefined) return [];
  if (second !== undefined) {
    const unnamed = attachments.findIndex((one) => interfaceIn(one) === '');
    if (unnamed >= 0)
      return refuse(
        'FIELD_REQUIRED',
        unnamed,
        'interface',
        'interface is required: with several network attachments each of them names its own',
      );
    const primaries = attachments.filter(isPrimary).length;
    if (primaries !== 1)
      return invalid(
        'PRIMARY_ATTACHMENT',
        ATTACHMENTS,
        `exactly one of several network attachments must have 'primary: true' (got ${primaries})`,
      );
  }
  const fabric = hostType && fabricInterfaceOf(hostType.document);
  if (second === undefined && interfaceIn(first) === '' && hostType !== undefined && fabric === undefined)
    return refuse(
      'NO_FABRIC_INTERFACE',
      0,
      'interface',
      `host type '${hostType.name}' has no interface with role 'fabric': name the interface`,
    );
  const completed =
    second === undefined
      ? [
          {
            ...first,
            ...(interfaceIn(first) === '' && fabric !== undefined ? { interface: fabric } : {}),
            primary: true,
          },
        ]
      : attachments;
  const names = completed.map(interfaceIn);
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (twice >= 0)
    return refuse(
      'INTERFACE_TWICE',
      twice,
      'interface',
      `field '${ATTACHMENTS}' names interface '${names[twice] ?? ''}' twice`,
    );
  if (hostType === undefined) return completed;
  for (const [index, name] of names.entries()) {
    const wrong = interfaceRejection(name, index, hostType);
    if (wrong !== undefined) return wrong;
  }
  return completed;
};

/** Interfaces and primaries that a change leaves out stay as they are. */
export const keptInterfaces = (
  attachments: readonly JsonObject[],
  before: readonly JsonObject[],
): readonly JsonObject[] =>
  attachments.map((attachment, index) => {
    const { interface: name, primary } = before[index] ?? {};
    return {
      ...(name === undefined ? {} : { interface: name }),
      ...(primary === undefined ? {} : { primary }),
      ...attachment,
    };
  });
