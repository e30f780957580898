import { reject, type Rejection } from '../decider.ts';
import { objectAt, own, stringAt } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import type { SecretRef } from '../secret-ref.ts';
import { AUTOMATED_MODES, AUTOMATION_SECRETS, formerSecretPath } from './former-modes.ts';

/** A hub's document with the references of its secrets by path. */
type Hub = { readonly document: JsonObject; readonly secrets: { readonly [path: string]: SecretRef } };

/** A stored value, and the address that it is sent to. */
type Sent = { readonly path: string; readonly ref: SecretRef; readonly mode: string; readonly url: string };

/** `https://host:port` of an address; '' where it is none. */
export const originOf = (url: string): string => URL.parse(url)?.origin ?? '';

/**
 * Why a change of a hub is refused: it would send a stored token or key to another origin than it was given for, and who
 * may change a hub need not know its secrets. A value that the same change brings goes where it says.
 */
export const originRejection = (before: Hub, after: Hub): Rejection | undefined => {
  const known = new Set(sentBy(before).map(pairOf));
  const stray = sentBy(after).find((sent) => isStored(sent, before) && !known.has(pairOf(sent)));
  if (stray === undefined) return undefined;
  const { path, mode, url } = stray;
  return reject(
    'invalid',
    'SECRET_FOR_ANOTHER_ORIGIN',
    `field 'spec.endpoints.${mode}' leads to ${originOf(url)}, which the stored '${path}' was not given for: give '${path}' in the same request`,
    { field: path },
  );
};

const pairOf = ({ ref, url }: Sent): string => `${ref.id} ${ref.version} ${originOf(url)}`;

const isStored = ({ ref }: Sent, { secrets }: Hub): boolean =>
  Object.values(secrets).some(({ id, version }) => id === ref.id && version === ref.version);

/** Where the hub's values go: those of its mode, and of each other one what was kept for it, else the same values. */
const sentBy = ({ document, secrets }: Hub): readonly Sent[] => {
  const spec = objectAt(document, 'spec');
  const automation = objectAt(spec, 'automation');
  return AUTOMATED_MODES.flatMap((mode) => {
    const names = AUTOMATION_SECRETS[mode];
    const former = names.map((name) => formerSecretPath(mode, name));
    const isKept = automation[mode] !== undefined || former.some((path) => own(secrets, path) !== undefined);
    const isFormer = mode !== stringAt(spec, 'mode') && isKept;
    const endpoint = stringAt(objectAt(spec, 'endpoints'), mode);
    const url = endpoint === '' && isFormer ? stringAt(objectAt(automation, mode), 'endpoint') : endpoint;
    if (url === '') return [];
    return (isFormer ? former : names.map((name) => `spec.automation.${name}`)).flatMap((path) => {
      const ref = own(secrets, path);
      return ref === undefined ? [] : [{ path, ref, mode, url }];
    });
  });
};
