import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, listAt, numberAt, objectAt, stringAt, textOf } from '../json-tools.ts';
import { emptyReference, referenceOf } from '../references.ts';
import { nameFromId } from './derived-names.ts';
import type { Secrets } from './document.ts';
import { documentKind } from './document-kind.ts';
import { MAX_INT32 } from './limits.ts';
import { nodeSetNameRejection } from './node-set-names.ts';
import { definedParametersRejection, templateIdFrom, templateIdRejection } from './templates.ts';

/** Blueprints of clusters (OSAC). */
const PULL_SECRET = 'spec_defaults.pull_secret';

export const clusterTemplate = documentKind({
  kind: 'clusterTemplate',
  context: 'catalog',
  events: {
    created: 'ClusterTemplatePublished',
    revised: 'ClusterTemplateRevised',
    deletionRequested: 'ClusterTemplateRetirementRequested',
    retired: 'ClusterTemplateRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  idFrom: templateIdFrom,
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  privateOnly: [PULL_SECRET, 'spec'],
  secrets: [{ path: PULL_SECRET, kind: 'pull-secret', reads: '***', encoding: 'text' }],
  references: [
    { path: 'node_sets.*.host_type', kind: 'hostType', scope: 'full' },
    { path: 'spec_defaults.version', kind: 'clusterVersion', scope: 'full' },
    { path: 'spec_defaults.pull_secret_secret', kind: 'secret', scope: 'local' },
  ],
  check: (document, { id, previous, secrets }) =>
    (previous === undefined ? templateIdRejection(id) : undefined) ??
    pullSecretRejection(document, secrets) ??
    nodeSetsRejection(document) ??
    classesRejection(document) ??
    definedParametersRejection(document),
});

/** True: tenants order it through catalogue items only. */
export const isItemsOnly = (document: JsonObject): boolean =>
  objectAt(document, 'spec')['items_only'] === true;

/** A value and an object at once would leave open which one counts (OSAC). */
const pullSecretRejection = (document: JsonObject, secrets: Secrets): Rejection | undefined =>
  secrets[PULL_SECRET] !== undefined &&
  objectAt(document, 'spec_defaults')['pull_secret_secret'] !== undefined
    ? reject(
        'invalid',
        'PULL_SECRET_TWICE',
        "give either 'pull_secret' or 'pull_secret_secret', not both; null removes the one that is stored",
        { field: 'spec_defaults.pull_secret_secret' },
      )
    : undefined;

const nodeSetsRejection = (document: JsonObject): Rejection | undefined => {
  for (const [name, set] of Object.entries(objectAt(document, 'node_sets'))) {
    const field = `node_sets.${name}`;
    const badName = nodeSetNameRejection(name, field);
    if (badName !== undefined) return badName;
    const reference = referenceOf(isObject(set) ? set['host_type'] : undefined);
    if (reference === undefined || Object.keys(reference).length === 0) {
      return emptyReference('HostType', `object.${field}.host_type`);
    }
    const size = numberAt(set, 'size');
    if (!Number.isInteger(size) || size <= 0 || size > MAX_INT32) {
      return reject(
        'invalid',
        'INVALID_SIZE',
        `size for node set '${name}' should be greater than zero, but it is ${size}`,
        { field: `${field}.size` },
      );
    }
  }
  return undefined;
};

/** Resource classes become values of Kubernetes labels on the hub (OSAC's operator). */
const RESOURCE_CLASS = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const MAX_CLASSES = 200;

/** Host types that clusters of a template may use, by id or name; empty: any (OSAC's operator). */
export const allowedClasses = (document: JsonObject): readonly string[] =>
  listAt(document, 'allowed_resource_classes').map(textOf);

const classesRejection = (document: JsonObject): Rejection | undefined => {
  const field = 'allowed_resource_classes';
  const say = (message: string): Rejection => reject('invalid', 'INVALID_RESOURCE_CLASS', message, { field });
  const classes = allowedClasses(document);
  if (classes.length > MAX_CLASSES) return say(`field '${field}' may hold at most ${MAX_CLASSES} entries`);
  const wrong = classes.find((name) => !RESOURCE_CLASS.test(name));
  if (wrong !== undefined)
    return say(
      `field '${field}' must hold resource classes of 1 to 63 letters, digits, dots, dashes and underscores, but one is '${wrong}'`,
    );
  const twice = classes.find((name, index) => classes.indexOf(name) !== index);
  return twice === undefined ? undefined : say(`field '${field}' names resource class '${twice}' twice`);
};
