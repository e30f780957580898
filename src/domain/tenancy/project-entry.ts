import type { DocumentCommand, DocumentState } from '../catalog/document.ts';
import { reject, type Decider, type DomainEvent } from '../decider.ts';

/**
 * Who is about to create something in a project. A creation enters the project's stream before it writes its own, so
 * that a deletion, which is decided at one revision of that stream, knows of every creation on its way (`app/
 * project-entries.ts` says how the two meet). An entry says nothing about the document and changes no version.
 */
export type EnterProject = {
  readonly type: 'EnterProject';
  readonly at: string;
  /** Where the object says that it lies. The project of this id may be another one by now. */
  readonly tenant: string;
  readonly path: string;
  /** Stream of the object to be created. */
  readonly stream: string;
  /** Streams that entered earlier and whose creation is over, one way or the other. */
  readonly left: readonly string[];
};

export type ProjectEntered = DomainEvent<
  'ProjectEntered',
  { readonly at: string; readonly stream: string; readonly left?: readonly string[] }
>;

export type ProjectCommand = DocumentCommand | EnterProject;
export type ProjectState = DocumentState & {
  /** Streams whose creation may still be under way, oldest first. */
  readonly entering?: readonly string[];
};

const isEntry = (event: DomainEvent): event is ProjectEntered => event.type === 'ProjectEntered';

/** Adds entries to the decider of the document. */
export const withEntries = <Event extends DomainEvent>(
  documents: Decider<DocumentState, DocumentCommand, Event>,
): Decider<ProjectState, ProjectCommand, Event | ProjectEntered> => ({
  initialState: documents.initialState,
  evolve: (state, event) => {
    if (!isEntry(event)) return documents.evolve(state, event);
    const { stream, left = [] } = event.data;
    const over = new Set([stream, ...left]);
    return { ...state, entering: [...(state.entering ?? []).filter((one) => !over.has(one)), stream] };
  },
  decide: (state, command) => {
    if (command.type !== 'EnterProject') return documents.decide(state, command);
    const { at, tenant, path, stream, left } = command;
    if (state.status !== 'present' || state.tenant !== tenant || state.name !== path)
      return reject('invalid', 'PROJECT_NOT_FOUND', 'the project does not exist, or is being deleted', {
        field: 'metadata.project',
      });
    return [{ type: 'ProjectEntered', data: { at, stream, ...(left.length === 0 ? {} : { left }) } }];
  },
});
