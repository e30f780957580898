import { methodNotAllowed } from '../errors.ts';
import type { ResourceCall } from '../server/resources.ts';
import type { Store } from '../store.ts';
import type { JsonObject, KubeObject } from '../types.ts';
import type { Objects, WriteContext } from './objects.ts';

export const applyPatch = (
  _store: Store,
  _objects: Objects,
  _call: ResourceCall,
  _body: JsonObject,
  _context: WriteContext,
): { created: boolean; object: KubeObject } => {
  throw methodNotAllowed();
};
