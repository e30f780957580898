import { documentKind } from '../catalog/document-kind.ts';
import { sharedRejection } from '../catalog/shared-only.ts';
import { invalid, type Rejection } from '../decider.ts';
import { isLabelValue } from '../hubs/hub-object.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, numberAt, objectAt, stringAt, textsAt } from '../json-tools.ts';

/** What bare-metal servers consist of, and which hosts are of this type (OSAC): the provider's, the same for every tenant. */
const SELECTOR = 'spec.host_label_selector';

export const bareMetalInstanceType = documentKind({
  kind: 'bareMetalInstanceType',
  context: 'catalog',
  events: {
    created: 'BareMetalInstanceTypeDefined',
    revised: 'BareMetalInstanceTypeRevised',
    deletionRequested: 'BareMetalInstanceTypeRetirementRequested',
    retired: 'BareMetalInstanceTypeRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  methods: { public: ['List', 'Get'], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  untold: true,
  ids: 'equals-name',
  nameScope: 'global',
  privateOnly: [SELECTOR],
  immutable: ['spec.hardware'],
  example: {
    spec: {
      hardware: {
        cpu: { cores: 32, architecture: 'x86_64', threads_per_core: 2 },
        memory: { total_gb: '256' },
      },
      host_label_selector: { match_labels: { class: 'standard' } },
    },
  },
  check: (document, { tenant }) =>
    sharedRejection(tenant, 'bare metal instance types') ??
    hardwareRejection(objectAt(objectAt(document, 'spec'), 'hardware')) ??
    selectorRejection(hostLabels(document)),
});

/** Labels that a host must have to be of this type. */
export const hostLabels = (document: JsonObject): { [key: string]: string } =>
  textsAt(objectAt(objectAt(document, 'spec'), 'host_label_selector'), 'match_labels');

const HARDWARE = 'spec.hardware';
type Part = {
  readonly texts: readonly string[];
  readonly counts: readonly string[];
  /** Only if they are given. */
  readonly perhaps?: readonly string[];
};
const CPU: Part = { texts: ['architecture'], counts: ['cores', 'threads_per_core'] };
const MEMORY: Part = { texts: [], counts: ['total_gb'] };
const LISTS: { readonly [field: string]: Part } = {
  disks: { texts: ['type', 'interface'], counts: ['capacity_gb'] },
  accelerators: { texts: ['type', 'model'], counts: [], perhaps: ['memory_gb'] },
  network_ports: { texts: ['name', 'role', 'type', 'speed'], counts: [] },
};
const MAX_PARTS = 256;

const required = (field: string): Rejection =>
  invalid('FIELD_REQUIRED', field, `field '${field}' is required`);

const partRejection = (part: JsonValue, field: string, rules: Part): Rejection | undefined => {
  const unnamed = rules.texts.find((name) => stringAt(part, name) === '');
  if (unnamed !== undefined) return required(`${field}.${unnamed}`);
  const given = (rules.perhaps ?? []).filter((name) => isObject(part) && part[name] !== undefined);
  // 64-bit numbers are texts in JSON.
  const sizeOf = (name: string): number => numberAt(part, name) || Number(stringAt(part, name));
  const wrong = [...rules.counts, ...given].find((name) => !(sizeOf(name) > 0));
  return wrong === undefined
    ? undefined
    : invalid(
        'INVALID_SIZE',
        `${field}.${wrong}`,
        `field '${field}.${wrong}' must be greater than zero, but it is ${sizeOf(wrong)}`,
      );
};

const hardwareRejection = (hardware: JsonObject): Rejection | undefined => {
  for (const [name, rules] of [
    ['cpu', CPU],
    ['memory', MEMORY],
  ] as const) {
    const wrong = isObject(hardware[name])
      ? partRejection(hardware[name], `${HARDWARE}.${name}`, rules)
      : required(`${HARDWARE}.${name}`);
    if (wrong !== undefined) return wrong;
  }
  for (const [list, rules] of Object.entries(LISTS)) {
    const field = `${HARDWARE}.${list}`;
    const parts = listAt(hardware, list);
    if (parts.length > MAX_PARTS)
      return invalid('TOO_MANY_PARTS', field, `field '${field}' may hold at most ${MAX_PARTS} entries`);
    for (const [index, part] of parts.entries()) {
      const wrong = partRejection(part, `${field}.${index}`, rules);
      if (wrong !== undefined) return wrong;
    }
  }
  const names = listAt(hardware, 'network_ports').map((port) => stringAt(port, 'name'));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined
    ? undefined
    : invalid(
        'PORT_TWICE',
        `${HARDWARE}.network_ports`,
        `field '${HARDWARE}.network_ports' names port '${twice}' twice`,
      );
};

const LABEL_KEY = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const MAX_LABELS = 32;

/** Labels of Kubernetes, for its hosts are found by them there. */
const selectorRejection = (labels: { readonly [key: string]: string }): Rejection | undefined => {
  const field = `${SELECTOR}.match_labels`;
  const pairs = Object.entries(labels);
  if (pairs.length === 0 || pairs.length > MAX_LABELS)
    return invalid(
      'INVALID_SELECTOR',
      field,
      `field '${field}' must hold from 1 to ${MAX_LABELS} labels (got ${pairs.length})`,
    );
  const wrong = pairs.find(([key, value]) => !LABEL_KEY.test(key) || !isLabelValue(value));
  return wrong === undefined
    ? undefined
    : invalid(
        'INVALID_SELECTOR',
        field,
        `field '${field}' holds '${wrong[0]}': keys and values must be Kubernetes labels`,
      );
};
