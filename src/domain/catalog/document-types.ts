import type { EventType } from '../event-type.ts';
import { jsonObject, secrets, text, typesOf } from '../schemas.ts';
import type { DocumentKind } from './document-kind.ts';

type Described = Pick<DocumentKind, 'kind' | 'context' | 'events' | 'methods' | 'hidden' | 'personal'>;

/** Registry entries of a document kind. */
export const documentTypes = ({
  kind,
  context,
  events,
  methods,
  hidden,
  personal,
}: Described): readonly EventType[] => {
  const inDocument = (paths: readonly string[]): readonly string[] => paths.map((path) => `document.${path}`);
  const more = {
    providerOnly: ['secrets', ...inDocument(hidden)],
    ...(personal === undefined ? {} : { personal: inDocument(personal) }),
  };
  const audience = methods.public.length === 0 ? 'provider' : 'tenant';
  const whole = { document: jsonObject, secrets: secrets.exactOptional() };
  const about = { id: text, tenant: text, project: text, name: text, creator: text };
  return typesOf({ context, audience, resource: kind }, [
    [events.created, { ...about, ...whole }, { ...more, begins: true }],
    [events.revised, whole, more],
    [events.deletionRequested, {}],
    [events.retired, {}],
  ]);
};
