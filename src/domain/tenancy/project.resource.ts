import { documentKind } from '../catalog/document-kind.ts';
import type { DocumentCommand, DocumentState, CheckContext } from '../catalog/document.ts';
import { reject, type Decider, type DomainEvent, type Rejection } from '../decider.ts';
import { objectAt } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import { validationFailed } from '../metadata-rules.ts';
import type { EventOf } from '../schemas.ts';
import type { PROJECT_ENTRY } from './event-types.ts';
import { BUILT_IN_TENANTS } from './tenant.resource.ts';

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

export type ProjectEntered = EventOf<typeof PROJECT_ENTRY>;

type ProjectCommand = DocumentCommand | EnterProject;
type ProjectState = DocumentState & {
  /** Streams whose creation may still be under way, oldest first. */
  readonly entering?: readonly string[];
};

const isEntry = (event: DomainEvent): event is ProjectEntered => event.type === 'ProjectEntered';

/** Adds entries to the decider of the document. */
const withEntries = <Event extends DomainEvent>(
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

/**
 * Projects (OSAC): a tree inside a tenant. The name is the whole dotted path, and
 * `metadata.project` is the parent, so that the path alone says where a project is.
 *
 * Every tenant, and `shared`, has one without a name: what lies in no named project lies in it (OSAC).
 */
const SEGMENT = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_SEGMENTS = 4;
const ACTIVE = 'PROJECT_STATE_ACTIVE';
/** Ids that nobody else may choose. */
const DEFAULT_ID = 'default-project.';

export const defaultProjectId = (tenant: string): string => `${DEFAULT_ID}${tenant}`;
export const isDefaultProject = (id: string): boolean => id.startsWith(DEFAULT_ID);

/** `a.b.c` → `a.b`; of a project at the top the default one, which has no name. */
export const parentOf = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf('.')));

/** Undefined when the name is a dotted path of at most four DNS labels. */
export const projectNameRejection = (name: string): Rejection | undefined => {
  const field = 'object.metadata.name';
  if (name === '') return validationFailed([{ field, problem: 'must be at least 1 characters' }]);
  const segments = name.split('.');
  if (segments.length > MAX_SEGMENTS)
    return validationFailed([{ field, problem: `must have at most ${MAX_SEGMENTS} dot-separated segments` }]);
  return segments.every((segment) => SEGMENT.test(segment))
    ? undefined
    : validationFailed([{ field, problem: `every dot-separated segment must match \`${SEGMENT.source}\`` }]);
};

export const project = documentKind({
  kind: 'project',
  context: 'tenancy',
  events: {
    created: 'ProjectOpened',
    revised: 'ProjectRevised',
    deletionRequested: 'ProjectClosureRequested',
    retired: 'ProjectClosed',
  },
  // The id says the tenant: who could try it would learn which tenants there are.
  idRule: (id) => reservedIdRejection(id),
  nameScope: 'tenant',
  nameRule: projectNameRejection,
  storedName: (name) => (name === '' ? undefined : projectNameRejection(name)),
  projectOf: parentOf,
  state: 'status.state',
  privateOnly: ['status.conditions'],
  // Nothing has to be prepared for a project here, so it is usable at once; a controller may report otherwise.
  normalize: (document) => withState(document),
  check: (_document, context) => placeRejection(context),
  behaviour: (documents) => withEntries(documents),
});

/** What an object in a project points at: projects are referred to by their path inside the tenant, not by id. */
export const projectPointer = (tenant: string, path: string): { kind: string; id: string } => ({
  kind: project.kind,
  id: `${tenant}/${path}`,
});

const withState = (document: JsonObject): JsonObject => ({
  ...document,
  status: { state: ACTIVE, ...objectAt(document, 'status') },
});

const reservedIdRejection = (id: string): Rejection | undefined =>
  isDefaultProject(id)
    ? reject('invalid', 'RESERVED_ID', `ids that begin with '${DEFAULT_ID}' belong to default projects`, {
        field: 'id',
      })
    : undefined;

const placeRejection = ({ id, name, tenant, project: parent }: CheckContext): Rejection | undefined => {
  const isDefault = id === defaultProjectId(tenant);
  const reserved = isDefault && name === '' ? undefined : reservedIdRejection(id);
  if (reserved !== undefined) return reserved;
  if (name === '' && !isDefault) return projectNameRejection(name);
  if (!isDefault && BUILT_IN_TENANTS.some((builtIn) => builtIn === tenant))
    return reject('invalid', 'TENANT_REQUIRED', `a project must belong to a tenant, not to '${tenant}'`, {
      field: 'metadata.tenant',
    });
  return parent === parentOf(name)
    ? undefined
    : reject(
        'invalid',
        'PROJECT_PARENT',
        "field 'metadata.project' must be left out: the parent follows from the name",
        { field: 'metadata.project' },
      );
};
