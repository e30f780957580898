import { aggregateOf } from '../../../domain/kinds.ts';
import { nameTakenText } from '../../../app/names/names.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { isObject, objectAt, valueAt, withoutValueAt, withValueAt } from '../../../domain/json-tools.ts';
import { reject, type Rejection } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { metadataRejection } from '../../../domain/metadata-rules.ts';
import { isProviderAccountName } from '../../../domain/tenancy/provider-clients.ts';
import { user, userRejection } from '../../../domain/tenancy/user.resource.ts';
import { refused, type CreateServices, type Creation } from '../creates.ts';
import { createDocument, documentRevision } from '../documents.ts';
import type { Change, Revision } from '../updates.ts';

/** Users are checked here, where their texts can be read: the aggregate sees ciphertext. */
export const userCreation = ({
  resources,
}: Pick<CreateServices, 'resources'>): Creation<DocumentCommand> => ({
  resolve: (object) => {
    checkTexts(object.document);
    const { id, tenant, name, surface, document } = object;
    if (surface === 'public')
      checkAccountNames({ 'metadata.name': name, [USERNAME]: valueAt(document, USERNAME) });
    // The reservation decides; this spares the key that would be made first, and stay behind for nobody.
    if (resources.findByName(user.kind, name, { tenants: [tenant] }).some((row) => row.id !== id))
      throw refused(nameTaken());
    return { command: (secrets, abandonedBefore) => createDocument(object, secrets, abandonedBefore) };
  },
});

const nameTaken = (): Rejection =>
  reject('already-exists', 'ALREADY_EXISTS', nameTakenText(user.words), { field: 'metadata.name' });

export const userRevision = ({ runner }: Pick<CreateServices, 'runner'>): Revision<DocumentCommand> => ({
  command: async (change) => {
    checkTexts(change.after);
    const username = valueAt(change.after, USERNAME);
    if (change.surface === 'public' && username !== valueAt(change.before, USERNAME))
      checkAccountNames({ [USERNAME]: username });
    const { state } = await runner.load(aggregateOf(user), change.id);
    const stored = 'document' in state ? state.document : {};
    return documentRevision.command({ ...change, after: withCredentials(change, stored) });
  },
});

const checkTexts = (document: JsonObject): void => {
  const wrong = metadataRejection(objectAt(document, 'metadata')) ?? userRejection(document);
  if (wrong !== undefined) throw refused(wrong);
};

const USERNAME = 'spec.username';

/** A tenant's directory may make users of these records: none may be called what makes a provider admin elsewhere. */
const checkAccountNames = (names: Readonly<Record<string, unknown>>): void => {
  for (const [field, name] of Object.entries(names))
    if (typeof name === 'string' && isProviderAccountName(name))
      throw refused(
        reject(
          'invalid',
          'RESERVED_NAME',
          `field '${field}' is a name that belongs to the provider: choose another`,
          {
            field,
          },
        ),
      );
};

const CREDENTIALS = 'spec.credentials';

/** Reads never show credentials, so what a caller did not send of them stays. */
const withCredentials = ({ after, message }: Change, stored: JsonObject): JsonObject => {
  const sent = valueAt(message.present, CREDENTIALS);
  const kept = valueAt(stored, CREDENTIALS);
  if (isObject(sent) || sent === null) return isObject(sent) ? after : withoutValueAt(after, CREDENTIALS);
  return kept === undefined ? after : withValueAt(after, CREDENTIALS, kept);
};
