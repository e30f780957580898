import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { codePoints, objectAt, stringAt } from '../json-tools.ts';
import { nameFromVersion } from './derived-names.ts';
import type { NormalizeContext } from './document.ts';
import { documentKind } from './document-kind.ts';
import { SEMVER } from './limits.ts';

/** OpenShift versions that clusters run (OSAC). */
const ACTIVE = 'CLUSTER_VERSION_STATE_ACTIVE';
const DEPRECATED = 'CLUSTER_VERSION_STATE_DEPRECATED';
const OBSOLETE = 'CLUSTER_VERSION_STATE_OBSOLETE';
const MAX_IMAGE = 512;
const MAX_VERSION = 256;
const IS_DEFAULT = 'spec.is_default';

/** The one slot that says which version is the default: a stream of its own. */
export const DEFAULT_VERSION_SLOT = { scope: 'clusterVersion.default', value: 'default' } as const;
export const DEFAULT_MARK = 'default';

export const clusterVersion = documentKind({
  kind: 'clusterVersion',
  context: 'catalog',
  events: {
    created: 'ClusterVersionAdded',
    revised: 'ClusterVersionRevised',
    deletionRequested: 'ClusterVersionRetirementRequested',
    retired: 'ClusterVersionRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  ids: 'generated',
  deriveName: (document) => {
    const version = stringAt(objectAt(document, 'spec'), 'version');
    return version === '' ? undefined : nameFromVersion(version);
  },
  uniqueValues: (document) => [
    {
      scope: 'clusterVersion.version',
      value: stringAt(objectAt(document, 'spec'), 'version'),
      field: 'spec.version',
    },
    // The default owns the one slot there is; another one that becomes the default takes it over.
    ...(objectAt(document, 'spec')['is_default'] === true
      ? [{ ...DEFAULT_VERSION_SLOT, field: IS_DEFAULT, slot: true as const }]
      : []),
  ],
  yieldSlot: (at) => ({
    type: 'ReviseDocument' as const,
    at,
    document: { spec: { is_default: false } },
    paths: [IS_DEFAULT],
  }),
  marks: (document) => (objectAt(document, 'spec')['is_default'] === true ? [DEFAULT_MARK] : []),
  state: 'spec.state',
  publicList: [
    { path: 'spec.state', is: [ACTIVE, DEPRECATED] },
    { path: 'spec.enabled', is: [true] },
  ],
  privateOnly: ['spec.image'],
  immutable: ['spec.version', 'spec.image'],
  normalize: (document, context) => normalizeVersion(document, context),
  check: (document) => versionRejection(objectAt(document, 'spec')),
});

/** Why a version cannot be ordered; undefined when it can. `spec` as stored. */
export const unusableReason = (spec: JsonObject): string | undefined => {
  if (spec['enabled'] === false) return 'it is disabled';
  return spec['state'] === OBSOLETE ? 'it is obsolete' : undefined;
};

/** Defaults, stamps of state changes (sent ones are ignored), and the loss of the default mark. */
const normalizeVersion = (document: JsonObject, { at, previous }: NormalizeContext): JsonObject => {
  const { deprecation: _sent, ...spec } = objectAt(document, 'spec');
  const before = objectAt(previous, 'spec');
  const state = stringAt(spec, 'state') || ACTIVE;
  const stamped: JsonObject = { ...objectAt(before, 'deprecation') };
  if (state !== stringAt(before, 'state')) {
    if (state === DEPRECATED) stamped['deprecation_timestamp'] = at;
    if (state === OBSOLETE) stamped['obsolescence_timestamp'] = at;
  }
  const normalized: JsonObject = { ...spec, enabled: spec['enabled'] ?? true, state };
  if (Object.keys(stamped).length > 0) normalized['deprecation'] = stamped;
  const hadDefault = before['is_default'] === true;
  if (hadDefault && normalized['is_default'] === true && becameUnusable(before, normalized)) {
    normalized['is_default'] = false;
  }
  return { ...document, spec: normalized };
};

const becameUnusable = (before: JsonObject, spec: JsonObject): boolean =>
  unusableReason(before) === undefined && unusableReason(spec) !== undefined;

const versionRejection = (spec: JsonObject): Rejection | undefined => {
  const version = stringAt(spec, 'version');
  const image = stringAt(spec, 'image');
  const say = (code: string, field: string, message: string): Rejection =>
    reject('invalid', code, message, { field });
  if (version === '') return say('FIELD_REQUIRED', 'spec.version', "field 'spec.version' is required");
  if (version.length > MAX_VERSION || !SEMVER.test(version)) {
    return say(
      'INVALID_VERSION',
      'spec.version',
      `field 'spec.version' must be a semantic version such as 4.20.3, but it is '${version.slice(0, MAX_VERSION)}'`,
    );
  }
  if (image === '') return say('FIELD_REQUIRED', 'spec.image', "field 'spec.image' is required");
  if (codePoints(image).length > MAX_IMAGE) {
    return say('INVALID_IMAGE', 'spec.image', `field 'spec.image' must be at most ${MAX_IMAGE} characters`);
  }
  const unusable = unusableReason(spec);
  return spec['is_default'] === true && unusable !== undefined
    ? say('UNUSABLE_DEFAULT', 'spec.is_default', `this version cannot be the default: ${unusable}`)
    : undefined;
};
