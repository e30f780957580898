import type { EventType } from '../event-type.ts';
import { jsonObject, secrets, text, typesOf } from '../schemas.ts';

/** Names of the four events that a kind behind `documentDecider` has, in the kind's own words. */
export type DocumentEventNames = {
  readonly created: string;
  readonly revised: string;
  readonly deletionRequested: string;
  readonly retired: string;
};

/**
 * Registry entries of a kind behind `documentDecider`. `hidden`: paths of the document that only the provider may see,
 * the `privateOnly` of its declaration.
 */
export const documentTypes = (
  shared: Pick<EventType, 'context' | 'audience' | 'resource'>,
  names: DocumentEventNames,
  hidden: readonly string[] = [],
): readonly EventType[] => {
  const providerOnly = ['secrets', ...hidden.map((path) => `document.${path}`)];
  return typesOf(shared, [
    [
      names.created,
      {
        id: text,
        tenant: text,
        project: text,
        name: text,
        creator: text,
        document: jsonObject,
        secrets: secrets.exactOptional(),
      },
      { providerOnly, begins: true },
    ],
    [names.revised, { document: jsonObject, secrets: secrets.exactOptional() }, { providerOnly }],
    [names.deletionRequested, {}],
    [names.retired, {}],
  ]);
};
