import { placesOf, valueAtPlace } from './document-places.ts';
import { objectAt, stringAt } from './json-tools.ts';
import { PLACED } from './placed-document.ts';
import { regularNames, type ResourceKind } from './resource.ts';

/** What every kind that is placed on a hub (`placedDocument`) declares in the same way. */
export const placedResource = (
  own: Pick<ResourceKind, 'kind' | 'words' | 'message' | 'privateOnly' | 'immutable' | 'references'>,
): Omit<ResourceKind, 'methods' | 'decider' | 'view'> => {
  const { collection } = regularNames(own.kind);
  return {
    ...PLACED,
    ...own,
    collection,
    service: `${own.message}s`,
    events: { created: `${own.message}Ordered`, retired: `${own.message}Deleted` },
    event: { field: collection.slice(0, -1), public: false },
    pointsAt: (document) =>
      [
        ...own.references.flatMap(({ path, kind }) =>
          placesOf(document, path).map((place) => ({
            kind,
            id: stringAt(valueAtPlace(document, place), 'id'),
          })),
        ),
        { kind: 'hub', id: stringAt(objectAt(document, 'status'), 'hub') },
      ].filter(({ id }) => id !== ''),
  };
};
