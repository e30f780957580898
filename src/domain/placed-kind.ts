import { objectAt, stringAt, valueAt } from './json-tools.ts';
import { placedMarks } from './placed-document.ts';
import { regularNames, type ResourceKind } from './resource.ts';

/** What every kind that is placed on a hub (`placedDocument`) says of itself in the same way. */
export const placedKind = (
  own: Pick<ResourceKind, 'kind' | 'words' | 'privateOnly' | 'immutable' | 'references'> & {
    /** What its events begin with, and its message: `ExternalIP`. */
    readonly prefix: string;
  },
): Omit<ResourceKind, 'methods' | 'decider' | 'view'> => {
  const { prefix, ...declared } = own;
  const { collection } = regularNames(own.kind);
  return {
    ...declared,
    collection,
    message: prefix,
    service: `${prefix}s`,
    events: { created: `${prefix}Ordered`, retired: `${prefix}Deleted` },
    ids: 'client-may-choose',
    // Its workflow run has ended for good, and so has its object on a hub, which bore a name made of its id.
    idOnce: true,
    nameScope: 'project',
    event: { field: collection.slice(0, -1), public: false },
    defaultTenant: 'shared',
    secrets: [],
    pointsAt: (document) =>
      [
        ...own.references.map(({ path, kind }) => ({ kind, id: stringAt(valueAt(document, path), 'id') })),
        { kind: 'hub', id: stringAt(objectAt(document, 'status'), 'hub') },
      ].filter(({ id }) => id !== ''),
    protectedWhileReferenced: true,
    marks: placedMarks,
    stateVersion: 1,
  };
};
