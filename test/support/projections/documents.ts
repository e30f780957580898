import type { DomainEvent } from '../../../src/domain/decider.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { Decode, DocumentKind } from '../../../src/projections/resources/fold.ts';

/** A kind for specs of lists: its documents are whatever its events say. */
export type DocumentEvent =
  | DomainEvent<'DocumentPut', { document: JsonObject }>
  | DomainEvent<'DocumentGone', Record<string, never>>;

type State = { readonly document: JsonObject; readonly gone: boolean } | null;

const evolve = (state: State, event: DocumentEvent): State => {
  if (event.type === 'DocumentPut') return { document: event.data.document, gone: false };
  return state === null ? state : { ...state, gone: true };
};

/** Stands for clusters, with their references; `listed` are those that have a template. */
export const documentKind: DocumentKind = {
  kind: 'cluster',
  privateOnly: ['status.state_transition_time'],
  pointsAt: () => [],
  references: [{ path: 'spec.template' }],
  listed: (document) => objectAt(document, 'spec')['template'] !== undefined,
  decider: { initialState: (): State => null, evolve },
  stateVersion: 1,
  view: (state: State) => {
    if (state === null) return { exists: false };
    const metadata = objectAt(state.document, 'metadata');
    return {
      exists: true,
      archived: state.gone,
      id: stringAt(state.document, 'id'),
      tenant: stringAt(metadata, 'tenant'),
      project: stringAt(metadata, 'project'),
      name: stringAt(metadata, 'name'),
      creationTimestamp: stringAt(metadata, 'creation_timestamp'),
      document: state.document,
    };
  },
};

export const documentCodec: Decode = {
  decode: ({ type, data }) => ({ type, data }),
  typeOf: () => ({}),
};

export const put = (document: JsonObject): DocumentEvent => ({ type: 'DocumentPut', data: { document } });
export const gone: DocumentEvent = { type: 'DocumentGone', data: {} };
