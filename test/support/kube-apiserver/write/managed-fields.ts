import type { Kind, KubeObject } from '../types.ts';
import type { WriteContext } from './objects.ts';

/** Notes who wrote which fields last (`metadata.managedFields`): what server-side apply decides conflicts by. */
export const trackUpdate = (
  _kind: Kind,
  _before: KubeObject | undefined,
  after: KubeObject,
  _context: WriteContext,
  _at: string,
): KubeObject => after;
