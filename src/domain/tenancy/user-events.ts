import type {
  CreationAbandoned,
  DocumentCreated,
  DocumentDeletionRequested,
  DocumentRetired,
  DocumentRevised,
} from '../catalog/events.ts';

/**
 * Events of `user-<id>`. What names or describes the person is ciphertext under the user's own key; `name` of the first
 * event is a keyed hash of the user's name, which keeps names unique without telling them (design §4 Personal data).
 */
export type UserEvent =
  | DocumentCreated<'UserAdmitted'>
  | DocumentRevised<'UserRevised'>
  | DocumentDeletionRequested<'UserRemovalRequested'>
  | DocumentRetired<'UserRemoved'>
  | CreationAbandoned;
