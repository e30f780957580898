import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { DomainEvent } from '../../../src/domain/decider.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ResourceView } from '../../../src/domain/resource.ts';
import type { Decode, DocumentKind } from '../../../src/projections/resources/fold.ts';

/** A small kind for specs of the read models: a note has a text, marks, links, a deletion and an end. */
export type NoteEvent =
  | DomainEvent<'NoteWritten', { id: string; tenant: string; name: string; text: string; at: string }>
  | DomainEvent<'NoteChanged', { text: string }>
  | DomainEvent<'NoteMarked', { marks: string[] }>
  | DomainEvent<'NoteLinked', { to: string[] }>
  | DomainEvent<'NoteTouched', Record<string, never>>
  | DomainEvent<'NoteLent', { to: string[] }>
  | DomainEvent<'NoteDeletionRequested', { at: string }>
  | DomainEvent<'NoteRemoved', Record<string, never>>
  /** Cannot be applied while the codec is told so. */
  | DomainEvent<'NotePoisoned', { text: string }>;

type Note =
  | { status: 'absent' }
  | {
      status: 'present' | 'removed';
      id: string;
      tenant: string;
      name: string;
      text: string;
      at: string;
      deletedAt?: string;
      marks: string[];
      links: string[];
      /** Who holds a part of it; its document does not show that. */
      lent?: string[];
    };

const evolve = (state: Note, event: NoteEvent): Note => {
  if (event.type === 'NoteWritten') return { status: 'present', marks: [], links: [], ...event.data };
  if (state.status === 'absent') return state;
  switch (event.type) {
    case 'NoteChanged':
    case 'NotePoisoned':
      return { ...state, text: event.data.text };
    case 'NoteMarked':
      return { ...state, marks: event.data.marks };
    case 'NoteLinked':
      return { ...state, links: event.data.to };
    case 'NoteLent':
      return { ...state, lent: event.data.to };
    case 'NoteDeletionRequested':
      return { ...state, deletedAt: event.data.at };
    case 'NoteRemoved':
      return { ...state, status: 'removed' };
    default:
      return state;
  }
};

const view = (state: Note): ResourceView =>
  state.status === 'absent'
    ? { exists: false }
    : {
        exists: true,
        archived: state.status === 'removed',
        id: state.id,
        tenant: state.tenant,
        project: 'p1',
        name: state.name,
        creationTimestamp: state.at,
        ...(state.deletedAt !== undefined && { deletionTimestamp: state.deletedAt }),
        document: {
          id: state.id,
          metadata: { name: state.name, tenant: state.tenant, finalizers: ['f'] },
          spec: { text: state.text, marks: state.marks, links: state.links },
          status: { hub: 'secret-hub' },
        },
      };

export const noteKind = (kind = 'note'): DocumentKind => ({
  kind,
  privateOnly: ['metadata.finalizers', 'status.hub'],
  pointsAt: (document) =>
    ((document['spec'] as JsonObject)['links'] as string[]).map((id) => ({ kind: 'note', id })),
  marks: (document) => (document['spec'] as JsonObject)['marks'] as string[],
  lends: { held: (state: Note) => (state.status === 'absent' ? [] : (state.lent ?? [])) },
  decider: { initialState: (): Note => ({ status: 'absent' }), evolve },
  stateVersion: 1,
  view,
});

const UNCHANGING = ['NoteTouched', 'NoteLent', 'ReferencesAnnounced'];

/** Passes events as they are; `poison()` says whether NotePoisoned can be decoded. */
export const noteCodec = (poison: () => boolean = () => false): Decode => ({
  decode: ({ type, data }: Pick<RecordedEvent, 'type' | 'data'>) => {
    if (type === 'NotePoisoned' && poison()) throw new Error('this event cannot be read');
    return { type, data };
  },
  typeOf: (type) => (UNCHANGING.includes(type) ? { changesDocument: false } : {}),
});
