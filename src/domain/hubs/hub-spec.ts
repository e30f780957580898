import { MAX_INT32 } from '../catalog/limits.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt, textOf } from '../json-tools.ts';
import { AUTOMATED_MODES } from './former-modes.ts';
import { isLoopback } from './loopback.ts';
import { DELEGATED_STEPS, MAX_NAMESPACE } from './hub-facts.ts';

/** What is wrong with a hub's spec, field by field; every text names the field and what it takes. */
const MODES: readonly string[] = ['operator', 'eda', 'aap'];
const CONTROLLERS: readonly string[] = ['operator', 'ledger'];
const SCHEDULING: readonly string[] = ['open', 'cordoned', 'draining'];
const RULES: readonly string[] = ['ledger', 'hub', 'none'];
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const TEMPLATE_PREFIX = /^[A-Za-z0-9]([A-Za-z0-9._ -]{0,61}[A-Za-z0-9])?$/;
const CERTIFICATES = /^\s*(-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+$/;

const MAX_URL = 2048;
const MAX_CA = 64 * 1024;
const MAX_RATE = 10_000;
const MIN_RATE = 0.1;

type Check = (spec: JsonObject) => Rejection | undefined;

export const hubSpecRejection = (
  spec: JsonObject,
  { simulated }: { readonly simulated: boolean },
): Rejection | undefined =>
  first([clearTextRejection, ...RULES_OF_SPEC, ...(simulated ? [simulatedRejection] : [])], (check) =>
    check(spec),
  );

/** `wrong`: behind the name of the field. */
const say = (field: string, wrong: string, named = field): Rejection =>
  reject('invalid', 'INVALID_HUB', `field '${named}' ${wrong}`, { field });

const oneOf = (field: string, value: string, values: readonly string[]): Rejection | undefined =>
  value === '' || values.includes(value)
    ? undefined
    : say(field, `must be one of ${values.join(', ')}, but it is '${value}'`);

const first = <Item>(
  items: readonly Item[],
  wrong: (item: Item) => Rejection | undefined,
): Rejection | undefined => {
  for (const item of items) {
    const found = wrong(item);
    if (found !== undefined) return found;
  }
  return undefined;
};

const namespacesOf = (spec: JsonObject): readonly (readonly [field: string, namespace: string])[] => [
  ['spec.namespace', stringAt(spec, 'namespace')],
  ...Object.entries(objectAt(spec, 'namespaces')).map(
    ([tenant, namespace]) => [`spec.namespaces.${tenant}`, textOf(namespace)] as const,
  ),
];

const namesRejection: Check = (spec) =>
  first(namespacesOf(spec), ([field, namespace]) =>
    namespace === '' || NAMESPACE.test(namespace)
      ? undefined
      : say(field, `must be a Kubernetes namespace, but it is '${namespace}'`),
  );

const wordsRejection: Check = (spec) =>
  oneOf('spec.mode', stringAt(spec, 'mode'), MODES) ??
  oneOf('spec.controller', stringAt(spec, 'controller'), CONTROLLERS) ??
  oneOf('spec.scheduling', stringAt(spec, 'scheduling'), SCHEDULING);

const stepsRejection: Check = (spec) =>
  first(Object.entries(objectAt(spec, 'steps')), ([step, rule]) =>
    DELEGATED_STEPS.some((known) => known === step)
      ? oneOf(`spec.steps.${step}`, textOf(rule), RULES)
      : say(
          `spec.steps.${step}`,
          `has no step '${step}'; steps are ${DELEGATED_STEPS.join(', ')}`,
          'spec.steps',
        ),
  );

const capacityRejection: Check = (spec) => {
  const capacity = objectAt(spec, 'capacity');
  const numbers: [string, unknown][] = [
    ['spec.capacity.control_planes', capacity['control_planes'] ?? 0],
    ...Object.entries(objectAt(capacity, 'nodes')).map(([type, count]): [string, unknown] => [
      `spec.capacity.nodes.${type}`,
      count,
    ]),
  ];
  return first(numbers, ([field, count]) =>
    Number.isInteger(count) && Number(count) >= 0 && Number(count) <= MAX_INT32
      ? undefined
      : say(field, `must be a whole number from 0 on, but it is ${String(count)}`),
  );
};

/** A tenant's own namespace is an exception from this one; without it most orders would have nowhere to go. */
const namespaceRequired: Check = (spec) =>
  stringAt(spec, 'namespace') === ''
    ? say('spec.namespace', 'is required: orders are created in this namespace of the hub')
    : undefined;

const lengthsRejection: Check = (spec) =>
  first(namespacesOf(spec), ([field, namespace]) =>
    namespace.length <= MAX_NAMESPACE
      ? undefined
      : say(
          field,
          `may have at most ${MAX_NAMESPACE} characters, but it has ${namespace.length}: the namespaces of a cluster's control plane are named after it`,
        ),
  );

const modeRejection: Check = (spec) => {
  const mode = stringAt(spec, 'mode') || 'operator';
  if (mode !== 'operator' && stringAt(objectAt(spec, 'endpoints'), mode) === '') {
    return say(
      `spec.endpoints.${mode}`,
      `is required in mode '${mode}': the address of the hub's automation`,
    );
  }
  return mode === 'operator' && stringAt(spec, 'controller') === 'ledger'
    ? say(
        'spec.controller',
        "may be 'ledger' only in mode 'eda' or 'aap': without an operator somebody has to run the automation",
      )
    : undefined;
};

const addressRejection = (field: string, address: string): Rejection | undefined =>
  isAddress(address)
    ? undefined
    : say(
        field,
        `must be an https URL of at most ${MAX_URL} characters, without user, password, query or fragment`,
      );

/** Looked at before anything else, and before anything is stored or called for the request. */
export const clearTextRejection: Check = (spec) => {
  const automation = objectAt(spec, 'automation');
  return first(
    [
      ...Object.entries(objectAt(spec, 'endpoints')).map(
        ([purpose, address]) => [`spec.endpoints.${purpose}`, textOf(address)] as const,
      ),
      ...AUTOMATED_MODES.map(
        (mode) =>
          [`spec.automation.${mode}.endpoint`, stringAt(objectAt(automation, mode), 'endpoint')] as const,
      ),
    ],
    ([field, address]) => {
      const url = URL.parse(address);
      return url?.protocol === 'http:' && !isLoopback(url.hostname)
        ? say(
            field,
            `refused: the address is not https; plain http is taken on loopback only, because every order carries a pull secret`,
          )
        : undefined;
    },
  );
};

const endpointsRejection: Check = (spec) =>
  first(Object.entries(objectAt(spec, 'endpoints')), ([purpose, address]) =>
    addressRejection(`spec.endpoints.${purpose}`, textOf(address)),
  );

const isAddress = (text: string): boolean => {
  if (text.length > MAX_URL || !URL.canParse(text) || !/^\w+:\/\/[!-~]+$/.test(text)) return false;
  if (/[\\?#]/.test(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === 'https:' || protocol === 'http:') && username === '' && password === '';
};

const automationRejection: Check = (spec) => {
  const automation = objectAt(spec, 'automation');
  return (
    authorityRejection('spec.automation', automation) ??
    first(AUTOMATED_MODES, (mode) => {
      const former = objectAt(automation, mode);
      const endpoint = stringAt(former, 'endpoint');
      const field = `spec.automation.${mode}`;
      const wrong = endpoint === '' ? undefined : addressRejection(`${field}.endpoint`, endpoint);
      return wrong ?? authorityRejection(field, former);
    })
  );
};

const authorityRejection = (field: string, automation: JsonObject): Rejection | undefined => {
  const ca = stringAt(automation, 'ca');
  const prefix = stringAt(automation, 'template_prefix');
  if (ca !== '' && (ca.length > MAX_CA || !CERTIFICATES.test(ca))) {
    return say(
      `${field}.ca`,
      `must hold certificates in PEM form and nothing else, at most ${MAX_CA} characters`,
    );
  }
  return prefix === '' || TEMPLATE_PREFIX.test(prefix)
    ? undefined
    : say(
        `${field}.template_prefix`,
        `must be 1 to 63 letters, digits, dots, dashes, underscores and spaces, and begin and end with a letter or digit`,
      );
};

const pacingRejection: Check = (spec) => {
  const pacing = objectAt(spec, 'pacing');
  const { calls_per_second: rate = 0, burst = 0 } = pacing;
  if (rate !== 0 && !(typeof rate === 'number' && rate >= MIN_RATE && rate <= MAX_RATE)) {
    return say(
      'spec.pacing.calls_per_second',
      `must be a number from ${MIN_RATE} to ${MAX_RATE}, or absent, but it is ${textOf(rate)}`,
    );
  }
  if (burst !== 0 && !(typeof burst === 'number' && burst >= 1 && burst <= MAX_RATE)) {
    return say(
      'spec.pacing.burst',
      `must be a whole number from 1 to ${MAX_RATE}, or absent, but it is ${textOf(burst)}`,
    );
  }
  return burst !== 0 && rate === 0
    ? say('spec.pacing.burst', "needs 'spec.pacing.calls_per_second' beside it")
    : undefined;
};

const RULES_OF_SPEC: readonly Check[] = [
  namesRejection,
  wordsRejection,
  stepsRejection,
  capacityRejection,
  namespaceRequired,
  lengthsRejection,
  endpointsRejection,
  modeRejection,
  automationRejection,
  pacingRejection,
];

/** A simulated hub plays the operator; nobody could be called there. */
const simulatedRejection: Check = (spec) =>
  ['', 'operator'].includes(stringAt(spec, 'mode')) && ['', 'operator'].includes(stringAt(spec, 'controller'))
    ? undefined
    : say(
        'spec.mode',
        "and field 'spec.controller' of a simulated hub (an id that begins with 'sim-') can only be 'operator'",
      );
