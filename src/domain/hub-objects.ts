import { works } from './acting-kinds.ts';
import type { HubObject, OwnedObject } from './hubs/hub-object.ts';
import { HUB_OWN_OBJECTS } from './hubs/hub-objects.ts';

/** Every kind of object that is written or read on hubs. Adapters, checks and the files of rights walk this list. */
export const HUB_OBJECTS: readonly HubObject[] = [
  ...HUB_OWN_OBJECTS,
  ...new Set(works.flatMap(({ hubObjects }) => hubObjects)),
];

export const isOwned = (object: HubObject): object is OwnedObject => 'idLabel' in object;

/** Those that we write, and follow. */
export const ownedObjects = (objects: readonly HubObject[] = HUB_OBJECTS): readonly OwnedObject[] =>
  objects.filter(isOwned);

/** Throws RangeError for a kind that nobody declared. */
export const hubObjectOf = (kind: string, objects: readonly HubObject[] = HUB_OBJECTS): HubObject => {
  const found = objects.find((object) => object.kind === kind);
  if (found === undefined) throw new RangeError(`no kind of hub objects is called ${kind}`);
  return found;
};
