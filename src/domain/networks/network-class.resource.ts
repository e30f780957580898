import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, objectAt, stringAt } from '../json-tools.ts';
import { parseRange } from '../ranges.ts';
import { FAMILIES, FAMILY_WORDS, fieldOf, isInside, rangeRejection, type Family } from './ranges-of-spec.ts';

/** How virtual networks are made (OSAC): who carries them out and what they can do. */
const READY = 'NETWORK_CLASS_STATE_READY';
const MANAGERS = ['fabric_manager', 'k8s_manager'];
export const DEFAULT_CLASS_MARK = 'default';

export const networkClass = documentKind({
  kind: 'networkClass',
  collection: 'network_classes',
  service: 'NetworkClasses',
  context: 'networks',
  events: {
    created: 'NetworkClassDefined',
    revised: 'NetworkClassRevised',
    deletionRequested: 'NetworkClassRetirementRequested',
    retired: 'NetworkClassRetired',
  },
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  inCatalogue: true,
  untold: true,
  ids: 'generated',
  deriveName: (document) => {
    const strategy = stringAt(document, 'implementation_strategy');
    return strategy === '' ? undefined : strategy.replaceAll('_', '-');
  },
  // The default owns the one slot there is; another one that becomes the default takes it over.
  uniqueValues: (document) =>
    document['is_default'] === true
      ? [{ scope: 'networkClass.default', value: 'default', field: 'is_default', slot: true as const }]
      : [],
  yieldSlot: (at) => ({ type: 'ReviseDocument' as const, at, document: {}, paths: ['is_default'] }),
  marks: (document) => (document['is_default'] === true ? [DEFAULT_CLASS_MARK] : []),
  state: 'status.state',
  immutable: ['implementation_strategy'],
  // There is nothing to wait for: a class is ready from the start, whatever is sent (OSAC).
  normalize: (document, { previous }) =>
    previous === undefined ? { ...document, status: { state: READY } } : document,
  check: (document, { previous }) => classRejection(document, previous),
  example: {
    title: 'Physical network',
    implementation_strategy: 'phys_net',
    capabilities: { supports_ipv4: true },
    fabric_manager: 'netris',
  },
});

export const isReadyClass = (document: JsonObject): boolean =>
  stringAt(objectAt(document, 'status'), 'state') === READY;

/** Families that networks of the class may have; `dual`: both at once. */
export const familiesOf = (document: JsonObject): Readonly<Record<Family | 'dual', boolean>> => {
  const [can, cannot] = [
    objectAt(document, 'capabilities'),
    objectAt(objectAt(document, 'spec'), 'disable_capabilities'),
  ];
  const has = (name: string): boolean => can[name] === true && cannot[name] !== true;
  const [ipv4, ipv6] = [has('supports_ipv4'), has('supports_ipv6')];
  return { ipv4, ipv6, dual: ipv4 && ipv6 && has('supports_dual_stack') };
};

/** Why networks of a class cannot have these families. `words`: how the class is called. */
export const familyRejection = (
  document: JsonObject,
  families: readonly Family[],
  words: string,
): Rejection | undefined => {
  const can = familiesOf(document);
  const missing = families.find((family) => !can[family]);
  if (missing !== undefined)
    return invalid(`spec.${fieldOf(missing)}`, `${words} does not support ${FAMILY_WORDS[missing]}`);
  return families.length < 2 || can.dual
    ? undefined
    : invalid('spec', `${words} does not support dual stack`);
};

const invalid = (field: string, message: string): Rejection =>
  reject('invalid', 'INVALID_NETWORK_CLASS', message, { field });
const required = (field: string): Rejection => invalid(field, `field '${field}' is required`);

const MOST_PREFIX = 128;

const classRejection = (document: JsonObject, previous: JsonObject | undefined): Rejection | undefined => {
  const missing = ['title', 'implementation_strategy'].find((field) => stringAt(document, field) === '');
  if (missing !== undefined) return required(missing);
  if (MANAGERS.every((field) => stringAt(document, field) === ''))
    return invalid('fabric_manager', "one of 'fabric_manager' and 'k8s_manager' is required");
  // One that is missing may be named later; one that works on networks stays.
  const changed = MANAGERS.find((field) => {
    const before = stringAt(previous, field);
    return before !== '' && before !== stringAt(document, field);
  });
  if (changed !== undefined) return invalid(changed, `field '${changed}' is immutable`);
  const can = objectAt(document, 'capabilities');
  if (
    can['supports_dual_stack'] === true &&
    !(can['supports_ipv4'] === true && can['supports_ipv6'] === true)
  )
    return invalid(
      'capabilities.supports_dual_stack',
      "field 'capabilities.supports_dual_stack' needs 'supports_ipv4' and 'supports_ipv6'",
    );
  const spec = objectAt(document, 'spec');
  const length = spec['vip_prefix_length'];
  if (typeof length === 'number' && (length < 1 || length > MOST_PREFIX))
    return invalid(
      'spec.vip_prefix_length',
      `field 'spec.vip_prefix_length' must be 1 to ${MOST_PREFIX} (got ${length})`,
    );
  return isObject(spec['defaults']) ? defaultsRejection(document, spec['defaults']) : undefined;
};

const DEFAULTS = 'spec.defaults';

/** The range of a default network or subnet of one family. */
export const defaultRange = (
  defaults: JsonObject,
  of: 'virtual_network' | 'subnet',
  family: Family,
): string => stringAt(defaults, `${of}_${fieldOf(family)}`);

const defaultsRejection = (document: JsonObject, defaults: JsonObject): Rejection | undefined => {
  const given = FAMILIES.filter((family) => defaultRange(defaults, 'virtual_network', family) !== '');
  for (const family of FAMILIES) {
    const wrong = defaultRejection(defaults, family);
    if (wrong !== undefined) return wrong;
  }
  const can = familyRejection(document, given, 'the network class');
  return can && { ...can, field: DEFAULTS };
};

const defaultRejection = (defaults: JsonObject, family: Family): Rejection | undefined => {
  const texts = (['virtual_network', 'subnet'] as const).map((of) => ({
    field: `${DEFAULTS}.${of}_${fieldOf(family)}`,
    text: defaultRange(defaults, of, family),
  }));
  for (const { field, text } of texts) {
    if (text === '') continue;
    const wrong = rangeRejection(text, family, field);
    if (wrong !== undefined) return wrong;
    // Nobody sees what became of them, so they are not cut here (OSAC).
    const plain = parseRange(text)?.text ?? '';
    if (plain !== text) return invalid(field, `field '${field}' has host bits: write '${plain}'`);
  }
  const [network, subnet] = texts;
  if (network === undefined || subnet === undefined || subnet.text === '') return undefined;
  if (network.text === '') return invalid(subnet.field, `field '${subnet.field}' needs '${network.field}'`);
  const [outer, inner] = [parseRange(network.text), parseRange(subnet.text)];
  return outer !== undefined && inner !== undefined && isInside(inner, outer)
    ? undefined
    : invalid(
        subnet.field,
        `field '${subnet.field}' must lie inside '${network.text}' (got '${subnet.text}')`,
      );
};

/** What a tenant gets from the start; undefined: nothing. */
export const networkDefaults = (document: JsonObject): JsonObject | undefined => {
  const defaults: JsonValue | undefined = objectAt(document, 'spec')['defaults'];
  return isObject(defaults) &&
    FAMILIES.some((family) => defaultRange(defaults, 'virtual_network', family) !== '')
    ? defaults
    : undefined;
};
