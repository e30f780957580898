import type { EventType } from '../event-type.ts';
import { typesOf } from '../schemas.ts';
import { DOCUMENT_SHAPES } from './events.ts';
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
  return typesOf(
    { context, audience, resource: kind },
    {
      [events.created]: DOCUMENT_SHAPES.created,
      [events.revised]: DOCUMENT_SHAPES.revised,
      [events.deletionRequested]: {},
      [events.retired]: {},
    },
    { [events.created]: { ...more, begins: true }, [events.revised]: more },
  );
};
