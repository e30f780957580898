import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import type { Method } from '../../domain/resource.ts';
import { MAX_BODY_BYTES } from '../body.ts';
import type { ExtraMethod } from '../osac/authorization.ts';
import type { Surface } from '../osac/messages.ts';
import type { ActionService, KindService, SurfaceTable } from '../osac/service-table.ts';
import { listOf, record, TEXT } from './ledger-schemas.ts';
import { componentRef, type MessageSchemas } from './message-schemas.ts';
import type { Operation } from './operation.ts';
import { headerRefs, jsonContent, type ParameterName } from './parameters.ts';
import { ANY_BODY, ANY_CALL, ANY_WRITE, EVERYBODY, OF_ONE_OBJECT } from './refusals.ts';

type Served = {
  readonly surface: Surface;
  readonly prefix: string;
  readonly service: KindService;
  readonly kind: AnyKind;
  readonly schemas: MessageSchemas;
};

/**
 * Operations of OSAC's surfaces, from the very tables that serve them: what is not served is not described. `lists`
 * collects the components of list answers.
 */
export function* osacOperations(
  tables: readonly SurfaceTable[],
  kindOf: (kind: string) => AnyKind | undefined,
  schemas: MessageSchemas,
  lists: Map<string, JsonObject>,
): Generator<readonly Operation[]> {
  for (const { surface, prefix, kinds, singles, actions = new Map<string, ActionService>() } of tables) {
    for (const service of kinds.values()) {
      const kind = kindOf(service.kind);
      if (kind === undefined) continue;
      const served = { surface, prefix, service, kind, schemas };
      lists.set(listName(served), listSchema(served));
      yield kindOperations(served);
    }
    yield [...singles].map(([path, { anonymous }]) => capabilities(surface, `${prefix}/${path}`, anonymous));
    yield Array.from(actions.values(), (service) => action({ surface, prefix, service, schemas }));
  }
}

const kindOperations = (served: Served): Operation[] => [
  ...METHODS.map((method) =>
    served.service.methods.includes(method) ? STANDARD[method](served) : unimplemented(served, method),
  ),
  ...[...served.service.extras].map(([path, { method }]) => extraOperation(served, path, method)),
];

const BODY = `At most ${MAX_BODY_BYTES} bytes; more is 413.`;

const METHODS: readonly Method[] = ['List', 'Get', 'Create', 'Update', 'Delete'];

/** OSAC's clients ask for all five methods of a service: what one surface only declares is told, too. */
const unimplemented = (served: Served, method: Method): Operation => {
  const { verb, path, parameters = [], body } = STANDARD[method](served);
  return {
    ...frame(served, method),
    verb,
    path,
    summary: 'Declared, but answered with 501 on this surface',
    parameters: parameters.filter((name) => name === 'id'),
    ...(body === undefined ? {} : { body: { ...body, required: false, description: BODY } }),
    answers: {},
    errors: [...ANY_CALL, 'UNIMPLEMENTED'],
  };
};

const frame = ({ surface, service }: Served, method: string) =>
  ({
    operationId: `${surface}_${service.governed.service}_${method}`,
    tag: tagOf(surface, service.governed.service),
    style: 'osac',
  }) as const;

export const tagOf = (surface: string, service: string): string => `${surface}.${service}`;

const collection = ({ prefix, service }: Served): string => `${prefix}/${service.collection}`;
const single = (served: Served): string => `${collection(served)}/{id}`;

const WRITE: readonly ParameterName[] = [
  'Idempotency_Key',
  'X_Ledger_Command_Id',
  'X_Dry_Run',
  'X_Ledger_Ticket',
  'X_Ledger_Min_Position',
];

const STANDARD: { readonly [M in Method]: (served: Served) => Operation } = {
  List: (served) => ({
    ...frame(served, 'List'),
    verb: 'get',
    path: collection(served),
    summary: `List ${plural(served.kind.words)}`,
    ...described(publicListText(served)),
    parameters: ['offset', 'limit', 'filter', 'order', 'as_of', 'X_Ledger_Min_Position'],
    answers: {
      200: {
        description: 'Those that you may see, a page of them.',
        headers: headerRefs(),
        content: jsonContent(listName(served)),
      },
    },
    errors: ANY_CALL,
  }),
  Get: (served) => ({
    ...frame(served, 'Get'),
    verb: 'get',
    path: single(served),
    summary: `Get one ${served.kind.words}`,
    parameters: ['id', 'as_of', 'If_None_Match', 'X_Ledger_Min_Position'],
    answers: {
      200: objectAnswer(served, 'The object.'),
      304: { description: 'You have it as it is.', headers: headerRefs('ETag') },
    },
    errors: [...ANY_CALL, ...OF_ONE_OBJECT],
  }),
  Create: (served) => ({
    ...frame(served, 'Create'),
    verb: 'post',
    path: collection(served),
    summary: `Create ${one(served.kind.words)}`,
    parameters: WRITE,
    body: { schema: served.schemas.ref(served.service.schema, 'request'), required: true, description: BODY },
    answers: { 200: writeAnswer(served, 'The object as it was stored.') },
    errors: [...ANY_CALL, ...ANY_WRITE, ...ANY_BODY, 'ALREADY_EXISTS', 'NOT_FOUND'],
  }),
  Update: (served) => ({
    ...frame(served, 'Update'),
    verb: 'patch',
    path: single(served),
    summary: `Change ${one(served.kind.words)}`,
    description:
      'The fields that the body names change; the others stay. A change of nothing writes nothing.',
    parameters: ['id', 'update_mask', 'lock', 'If_Match', ...WRITE],
    body: { schema: served.schemas.ref(served.service.schema, 'request'), required: true, description: BODY },
    answers: { 200: writeAnswer(served, 'The object as it is now.') },
    errors: [...ANY_CALL, ...ANY_WRITE, ...ANY_BODY, ...OF_ONE_OBJECT, 'STALE_ETAG', 'ALREADY_EXISTS'],
  }),
  Delete: (served) => ({
    ...frame(served, 'Delete'),
    verb: 'delete',
    path: single(served),
    summary: `Delete ${one(served.kind.words)}`,
    description: served.kind.protectedWhileReferenced
      ? 'Refused with 400 (code 9) while something refers to it. It stays readable while finalizers hold it.'
      : 'It stays readable, with `metadata.deletion_timestamp`, until what it stands for is gone.',
    parameters: ['id', 'If_Match', ...WRITE],
    answers: {
      200: {
        description: 'The deletion has begun, or is done.',
        headers: headerRefs('X_Ledger_Position'),
        content: jsonContent(record({})),
      },
    },
    errors: [...ANY_CALL, ...ANY_WRITE, ...OF_ONE_OBJECT, 'STALE_ETAG'],
  }),
};

const described = (description: string): { description?: string } =>
  description === '' ? {} : { description };

const publicListText = ({ surface, kind }: Served): string =>
  surface === 'private'
    ? ''
    : (kind.publicList ?? [])
        .map(({ filter, when }) =>
          when === 'always'
            ? `Shows only \`${filter}\`.`
            : `Shows only \`${filter}\`, unless your filter speaks of \`${when.unlessMentioned}\`.`,
        )
        .join(' ');

/** No kind begins with a `u` that is spoken as a vowel. */
const one = (words: string): string => `${/^[aeio]/.test(words) ? 'an' : 'a'} ${words}`;

const plural = (words: string): string =>
  /(?<![aeiou])y$/.test(words) ? `${words.slice(0, -1)}ies` : `${words}s`;

const listName = ({ service }: Served): string =>
  `${service.schema.typeName.split('.').slice(0, -1).join('.')}.${service.governed.service}ListResponse`;

const listSchema = ({ service, schemas }: Served): JsonObject => ({
  ...record({
    'size?': { type: 'integer', minimum: 1, maximum: 1000, description: 'How many are here.' },
    'total?': { type: 'integer', minimum: 1, description: 'How many match, on all pages.' },
    'items?': listOf(schemas.ref(service.schema, 'answer')),
  }),
  description: 'Defaults are left out: an empty list is {}.',
});

const objectAnswer = (served: Served, description: string): JsonObject => ({
  description,
  headers: headerRefs('ETag'),
  content: jsonContent(served.schemas.ref(served.service.schema, 'answer')),
});

/** Some kinds answer `{"object": …}` (OSAC). */
const writeAnswer = (served: Served, description: string): JsonObject => {
  const object = served.schemas.ref(served.service.schema, 'answer');
  return {
    description,
    headers: headerRefs('ETag', 'X_Ledger_Position', 'X_Ledger_Deleted_At'),
    content: jsonContent(served.kind.wrapsReplies === true ? record({ 'object?': object }) : object),
  };
};

/** What a sub-path of one object is called, takes and answers. */
type Extra = {
  readonly summary: string;
  readonly parameters: readonly ParameterName[];
  readonly content: JsonObject;
  readonly errors: Operation['errors'];
};

/** A schema is about what was parsed, in YAML too. The cluster's own document is passed on as it is. */
const KUBECONFIG: JsonObject = {
  schema: { type: 'object', description: 'A kubeconfig of Kubernetes (`apiVersion: v1`, `kind: Config`).' },
};

const TIMELINE: Extra = {
  summary: 'Timeline of an object, oldest first; also when it is gone',
  parameters: ['page_limit', 'after', 'as_of'],
  content: jsonContent('Timeline'),
  errors: [],
};

/** Of a route that its kind declares: what it shows is read from a hub, and that it was read is recorded. */
const ownRoute = (kind: string, path: string): Extra => {
  const route = actingKindOf(kind)?.routes?.find((each) => each.path === path);
  if (route === undefined) throw new Error(`kind ${kind} declares no route ${path}`);
  const { summary, contentType } = route;
  return {
    summary,
    parameters: ['X_Ledger_Ticket'],
    content: { [contentType]: contentType === 'text/plain' ? { schema: TEXT } : KUBECONFIG },
    errors: ['OUTCOME_UNKNOWN', 'FAILED_PRECONDITION'],
  };
};

const extraOperation = (served: Served, path: string, method: ExtraMethod): Operation => {
  const extra = method === 'GetTimeline' ? TIMELINE : ownRoute(served.kind.kind, path);
  const { summary, parameters, content, errors } = extra;
  return {
    ...frame(served, method),
    verb: 'get',
    path: `${single(served)}/${path}`,
    summary,
    parameters: ['id', ...parameters, 'X_Ledger_Min_Position'],
    answers: { 200: { description: 'The requested data.', headers: headerRefs(), content } },
    errors: [...ANY_CALL, ...OF_ONE_OBJECT, ...errors],
  };
};

const action = ({
  surface,
  prefix,
  service,
  schemas,
}: Omit<Served, 'service' | 'kind'> & { readonly service: ActionService }): Operation => ({
  verb: 'post',
  path: `${prefix}/${service.collection}`,
  operationId: `${surface}_${service.governed.service}_Create`,
  tag: tagOf(surface, service.governed.service),
  summary: service.summary,
  parameters: ['X_Dry_Run', 'X_Ledger_Min_Position'],
  body: { schema: schemas.ref(service.schema, 'request'), required: true, description: BODY },
  answers: {
    200: {
      description: 'The object, completed. Nothing of it is kept.',
      headers: headerRefs(),
      content: jsonContent(schemas.ref(service.schema, 'answer')),
    },
  },
  errors: [...ANY_CALL, ...ANY_BODY, 'NOT_FOUND', 'FAILED_PRECONDITION', 'UNIMPLEMENTED'],
  style: 'osac',
});

const capabilities = (surface: Surface, path: string, anonymous: boolean): Operation => ({
  verb: 'get',
  path,
  operationId: `${surface}_Capabilities_Get`,
  tag: tagOf(surface, 'Capabilities'),
  summary: 'Issuers whose tokens are accepted',
  ...(anonymous ? { anonymous } : {}),
  answers: {
    200: {
      description: 'Settings with which clients sign in.',
      headers: headerRefs(),
      content: jsonContent('Capabilities'),
    },
  },
  errors: anonymous ? EVERYBODY : ANY_CALL,
  style: 'osac',
});

export const OSAC_COMPONENTS: { readonly [name: string]: JsonObject } = {
  Capabilities: record({ 'authn?': record({ 'trusted_token_issuers?': listOf(TEXT) }) }),
  Timeline: record({
    'size?': { type: 'integer', minimum: 1, maximum: 1000 },
    'items?': listOf(componentRef('TimelineEntry')),
  }),
};
