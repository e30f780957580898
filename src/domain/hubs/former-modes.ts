import type { DocumentCommand, DocumentState, Secrets } from '../catalog/document.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { mergePaths, objectAt, stringAt, withoutEmpty, withoutValueAt, withValueAt } from '../json-tools.ts';
import type { SecretRef } from '../secret-ref.ts';

/**
 * A hub may be switched while orders run on it: new ones follow the new mode, running ones end in theirs. What
 * stands in `spec.automation` is for the mode that the hub is in. A switch keeps what it was for the mode that is left,
 * in `spec.automation.eda` or `spec.automation.aap`, and takes back what was kept of the mode that is entered.
 */
export const AUTOMATED_MODES = ['eda', 'aap'] as const;
export type AutomatedMode = (typeof AUTOMATED_MODES)[number];

/** The values of each mode by their names in `spec.automation`. */
export const AUTOMATION_SECRETS: { readonly [Mode in AutomatedMode]: readonly ('token' | 'hmac_secret')[] } =
  {
    eda: ['token', 'hmac_secret'],
    aap: ['token'],
  };
const SETTINGS: { readonly [Mode in AutomatedMode]: readonly string[] } = {
  eda: ['ca'],
  aap: ['ca', 'template_prefix'],
};

const AUTOMATION = 'spec.automation';
export const TOKEN_PATH = `${AUTOMATION}.token`;
export const HMAC_SECRET_PATH = `${AUTOMATION}.hmac_secret`;
/** Where a secret of a mode that the hub is not in lies. */
export const formerSecretPath = (mode: AutomatedMode, name: 'token' | 'hmac_secret'): string =>
  `${AUTOMATION}.${mode}.${name}`;

type Revision = Extract<DocumentCommand, { type: 'ReviseDocument' }>;
type SecretChanges = { readonly [path: string]: SecretRef | null };
type Change = { readonly document: JsonObject; readonly secrets: SecretChanges };
type Before = { readonly document: JsonObject; readonly secrets: Secrets };

/** The same change; one that switches the mode also keeps what running orders of the other one need. */
export const withFormerMode = (state: DocumentState, command: Revision): Revision => {
  if (state.status !== 'present' && state.status !== 'deleting') return command;
  const document =
    command.paths === undefined
      ? command.document
      : mergePaths(state.document, command.document, command.paths);
  const [from, to] = [modeOf(state.document), modeOf(document)];
  if (from === to) return command;
  const asked: Change = { document, secrets: command.secrets ?? {} };
  const entered = isAutomated(to) ? enter(to, state, asked) : asked;
  const left = isAutomated(from) ? leave(from, state, entered) : entered;
  return { type: 'ReviseDocument', at: command.at, ...left };
};

const modeOf = (document: JsonObject): string => stringAt(objectAt(document, 'spec'), 'mode') || 'operator';
const isAutomated = (mode: string): mode is AutomatedMode => AUTOMATED_MODES.some((known) => known === mode);

/** True when the mode of a hub has a listener or a platform that this service calls. */
export const callsAutomation = (document: JsonObject): boolean => isAutomated(modeOf(document));

const automationOf = (document: JsonObject): JsonObject => objectAt(objectAt(document, 'spec'), 'automation');
const endpointOf = (document: JsonObject, mode: AutomatedMode): string =>
  stringAt(objectAt(objectAt(document, 'spec'), 'endpoints'), mode);

/** What was in force until now goes to the place of the mode that is left, but for what this change says of it. */
const leave = (mode: AutomatedMode, before: Before, asked: Change): Change => {
  const place = `${AUTOMATION}.${mode}`;
  const settings = SETTINGS[mode].map(
    (name) => [name, stringAt(automationOf(before.document), name)] as const,
  );
  const kept = withoutEmpty({
    ...Object.fromEntries(settings),
    endpoint: endpointOf(before.document, mode),
    ...objectAt(automationOf(asked.document), mode),
  });
  const secrets = AUTOMATION_SECRETS[mode].map((name): [string, SecretRef | null] => [
    `${place}.${name}`,
    before.secrets[`${AUTOMATION}.${name}`] ?? null,
  ]);
  return {
    document: withValueAt(asked.document, place, kept),
    secrets: { ...Object.fromEntries(secrets), ...asked.secrets },
  };
};

/** What was kept of the mode that is entered is in force again, but for what this change says itself. */
const enter = (mode: AutomatedMode, before: Before, asked: Change): Change => {
  const place = `${AUTOMATION}.${mode}`;
  const now: SecretChanges = { ...before.secrets, ...asked.secrets };
  const kept = objectAt(automationOf(asked.document), mode);
  const held = AUTOMATION_SECRETS[mode].map((name) => [name, now[`${place}.${name}`] ?? null] as const);
  if (Object.keys(kept).length === 0 && held.every(([, ref]) => ref === null)) return asked;
  const secrets = held.flatMap(([name, ref]): [string, SecretRef | null][] => [
    [`${AUTOMATION}.${name}`, ref],
    [`${place}.${name}`, null],
  ]);
  let document = withoutValueAt(asked.document, place);
  for (const name of SETTINGS[mode]) {
    const path = `${AUTOMATION}.${name}`;
    const untouched =
      stringAt(automationOf(document), name) === stringAt(automationOf(before.document), name);
    if (untouched) document = withText(document, path, stringAt(kept, name));
  }
  if (endpointOf(document, mode) === '')
    document = withText(document, `spec.endpoints.${mode}`, stringAt(kept, 'endpoint'));
  // What was said of the kept place was said of what is in force now.
  const said = Object.entries(asked.secrets).filter(([path]) => !path.startsWith(`${place}.`));
  return { document, secrets: Object.fromEntries([...secrets, ...said]) };
};

const withText = (document: JsonObject, path: string, text: string): JsonObject =>
  text === '' ? withoutValueAt(document, path) : withValueAt(document, path, text);

/** Two places for one value would leave open which of them counts. */
export const ownModeRejection = (document: JsonObject, secrets: Secrets): Rejection | undefined => {
  const mode = modeOf(document);
  if (!isAutomated(mode)) return undefined;
  const held = AUTOMATION_SECRETS[mode].some(
    (name) => secrets[`${AUTOMATION}.${mode}.${name}`] !== undefined,
  );
  if (!held && Object.keys(objectAt(automationOf(document), mode)).length === 0) return undefined;
  const field = `${AUTOMATION}.${mode}`;
  return reject(
    'invalid',
    'INVALID_HUB',
    `field '${field}' is for orders of a mode that the hub is not in, but it is in mode '${mode}': give the values in 'spec.automation' itself, and the address in 'spec.endpoints.${mode}'`,
    { field },
  );
};
