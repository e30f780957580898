import { reject, type Rejection } from '../decider.ts';
import { isObject, listAt, objectAt, stringAt } from '../json-tools.ts';
import type { JsonObject, JsonValue } from '../json.ts';

/** What project memberships and role bindings share: a list `spec.users`, shown again as `status.users`. */

export const boundUserIds = (document: JsonObject): readonly string[] =>
  listAt(objectAt(document, 'spec'), 'users').map((user) => stringAt(user, 'id'));

/**
 * The document as it is stored, in its first status unless a controller reported another one, for these users. They are
 * stored by id alone: a user's name is personal data, and events cannot forget it.
 */
export const withBoundUsers = (document: JsonObject, first: JsonObject): JsonObject => {
  const spec = objectAt(document, 'spec');
  const users = listAt(spec, 'users').map(idOnly);
  const { users: _derived, ...status } = objectAt(document, 'status');
  const shown = users.length === 0 ? {} : { users };
  return {
    ...document,
    spec: { ...spec, ...shown },
    status: { ...(stringAt(status, 'state') === '' ? { ...first, ...status } : status), ...shown },
  };
};

const idOnly = (user: JsonValue): JsonValue => (isObject(user) ? { id: stringAt(user, 'id') } : user);

/** A user in the list twice would be removed by half. */
export const repeatedUser = (document: JsonObject): Rejection | undefined => {
  const ids = boundUserIds(document);
  const index = ids.findIndex((id, i) => ids.indexOf(id) < i);
  return index < 0
    ? undefined
    : reject('invalid', 'USER_REPEATED', `field 'spec.users[${index}]' repeats user '${ids[index]}'`, {
        field: `spec.users[${index}]`,
      });
};
