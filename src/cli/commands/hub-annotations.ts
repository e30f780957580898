import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ApiClient } from '../api-client.ts';
import { DOCUMENTS, pathOf, repeatable } from './hub-paths.ts';

/**
 * Gives a hub an annotation, with `more` of its document in the same write. Annotations are replaced as a whole, so the
 * others are sent again; somebody else's change meanwhile is a conflict.
 */
export const annotateHub = async (
  api: ApiClient,
  id: string,
  [name, value]: readonly [name: string, value: string],
  more: JsonObject = {},
): Promise<void> => {
  const { value: document, etag } = await api.tagged<JsonObject>(pathOf(DOCUMENTS, id));
  const annotations = objectAt(objectAt(document, 'metadata'), 'annotations');
  if (stringAt(annotations, name) === value && Object.keys(more).length === 0) return;
  const body = { ...more, metadata: { annotations: { ...annotations, [name]: value } } };
  await api.send('PATCH', pathOf(DOCUMENTS, id), body, {
    ...repeatable(),
    ...(etag === undefined ? {} : { 'if-match': etag }),
  });
};
