import { actingKinds } from '../../domain/acting-kinds.ts';
import type { JsonObject } from '../../domain/json.ts';
import { listAt, objectAt, own } from '../../domain/json-tools.ts';
import { AUDIT_DESCRIPTIONS } from '../audit/operations.ts';
import type { ErrorName } from '../errors.ts';
import { AGENT_POOL_DESCRIPTIONS } from '../ledger/agent-pool-operations.ts';
import { AUDIT_TREE_DESCRIPTIONS } from '../ledger/audit-tree-operations.ts';
import { HUB_DESCRIPTIONS } from '../ledger/hub-operations.ts';
import { KAFKA_DESCRIPTIONS } from '../ledger/kafka-operations.ts';
import { ORDER_DESCRIPTIONS } from '../ledger/order-operations.ts';
import type { LedgerRoute } from '../ledger/serve.ts';
import { POOL_DESCRIPTIONS } from '../ledger/pool-operations.ts';
import { UPKEEP_DESCRIPTIONS } from '../ledger/upkeep-operations.ts';
import { USAGE_DESCRIPTIONS } from '../ledger/usage-operations.ts';
import type { Description, Descriptions } from './description.ts';
import type { Operation, Verb } from './operation.ts';
import type { OwnSchemas } from './own-schemas.ts';
import { headerRefs, jsonContent } from './parameters.ts';
import { ANY_BODY, ANY_CALL, ANY_WRITE, OF_ONE_OBJECT } from './refusals.ts';

const ORDER = { id: 'Id of the order, which is the id of its object.' };
const PARKED = { stream: 'Name of the parked stream.' };
/** What the names in a path are, by its first part. */
const PATH_NAMES: { readonly [part: string]: { readonly [name: string]: string } | undefined } = {
  orders: ORDER,
  ...Object.fromEntries(actingKinds.map(({ collection }) => [collection, ORDER])),
  hubs: { id: 'Id of the hub.' },
  lanes: {
    lane: '`scheduler`, `hub:<id>`, `site:<zone>:<part>`, `automation:eda:<id>` or `automation:aap:<id>`.',
  },
  pools: { id: 'Id of the pool.', hub: 'Id of the hub.', agent: 'Id of the agent.' },
  projections: { name: 'Name of the read model, for example `resources`.', ...PARKED },
  kafka: { topic: 'Name of the topic, for example `osac.events.clusters.v1`.', ...PARKED },
  events: { id: 'Id of the event, or `<stream>@<revision>`.' },
  resources: {
    kind: 'Kind of the object: `cluster`, `clusters`, `host_type`, `host_types`.',
    id: 'Id of the object.',
  },
  exports: { id: 'Id of the export.' },
  holds: { id: 'Id of the hold.' },
  erasures: { id: 'Id of the erasure.' },
  grants: { id: 'Id of the grant.' },
  tile: { path: 'Level and number as tlog-tiles writes them; its slashes stay.' },
};
/** What operators do here cannot be tried. */
const NO_DRY_RUN: ErrorName = 'UNIMPLEMENTED';

const DESCRIPTIONS: Descriptions = {
  ...ORDER_DESCRIPTIONS,
  ...HUB_DESCRIPTIONS,
  ...AGENT_POOL_DESCRIPTIONS,
  ...KAFKA_DESCRIPTIONS,
  ...POOL_DESCRIPTIONS,
  ...UPKEEP_DESCRIPTIONS,
  ...USAGE_DESCRIPTIONS,
  ...AUDIT_TREE_DESCRIPTIONS,
};

/** What all routes of a surface have; where the role `auditor` is off every route of audit says so. */
type Common = Required<Pick<Description, 'parameters' | 'headers' | 'errors'>>;
const NOTHING: Common = { parameters: [], headers: [], errors: [] };
const AUDIT_LOOK: Common = {
  parameters: ['X_Ledger_Min_Position'],
  headers: [],
  errors: ['FAILED_PRECONDITION'],
};
const AUDIT_WRITE: Common = {
  parameters: ['Idempotency_Key', 'X_Ledger_Command_Id', 'X_Ledger_Ticket'],
  headers: ['X_Ledger_Position'],
  errors: ANY_WRITE,
};

type LedgerSurface = {
  readonly descriptions: Descriptions;
  readonly look: Common;
  readonly write: Common;
};

const SURFACES: { readonly [Name in 'ledger' | 'audit']: LedgerSurface } = {
  ledger: { descriptions: DESCRIPTIONS, look: NOTHING, write: NOTHING },
  audit: { descriptions: AUDIT_DESCRIPTIONS, look: AUDIT_LOOK, write: AUDIT_WRITE },
};

/** True when a route has a description: what a test asks of every route. */
export const isDescribed = (
  { verb, path }: Pick<LedgerRoute, 'verb' | 'path'>,
  surface: 'ledger' | 'audit' = 'ledger',
): boolean => own(SURFACES[surface].descriptions, `${verb} ${path}`) !== undefined;

/** One by one: making the schemas of all would hold the thread too long. */
export function* ledgerOperations(
  prefix: string,
  routes: readonly LedgerRoute[],
  schemas: OwnSchemas,
  surface: 'ledger' | 'audit' = 'ledger',
): Generator<Operation> {
  for (const { verb, path } of routes)
    yield {
      verb: verb.toLowerCase() as Verb,
      path: `${prefix}/${path.replace('*}', '}')}`,
      operationId: `${surface}_${nameOf(verb, path)}`,
      tag: `${surface}.${path.split('/')[0] ?? ''}`,
      style: 'problem',
      ...shapeOf(verb, path, SURFACES[surface], schemas),
    };
}

/** `GET orders/{id}` → `GetOrdersId`. */
const nameOf = (verb: string, path: string): string =>
  [verb.toLowerCase(), ...path.split('/')]
    .map((part) => part.replaceAll(/\W/g, ''))
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');

const shapeOf = (
  verb: string,
  path: string,
  { descriptions, look, write }: LedgerSurface,
  schemas: OwnSchemas,
): Omit<Operation, 'verb' | 'path' | 'operationId' | 'tag' | 'style'> => {
  const found: Description = own(descriptions, `${verb} ${path}`) ?? { summary: path };
  const common = verb === 'GET' ? look : write;
  const { summary, description, query, body, lines, answer, status = 200 } = found;
  const { parameters = common.parameters, headers: shown = common.headers, errors = [] } = found;
  const headers = headerRefs(...shown);
  const typed = (types: NonNullable<Description['content']>): JsonObject =>
    Object.fromEntries(Object.entries(types).map(([type, schema]) => [type, { schema: schemas.of(schema) }]));
  const content =
    found.content !== undefined
      ? typed(found.content)
      : lines === undefined
        ? jsonContent(answer === undefined ? {} : schemas.of(answer))
        : typed({ 'application/x-ndjson': lines });
  const done = status === 202 ? 'Accepted.' : lines === undefined ? 'Done.' : 'One JSON value per line.';
  const asked = body === undefined ? undefined : schemas.of(body);
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    parameters,
    ...(query === undefined ? {} : { ownParameters: parametersIn(schemas.of(query)) }),
    pathNames: namesIn(path),
    ...(asked === undefined ? {} : { body: { schema: asked, required: Array.isArray(asked['required']) } }),
    answers: {
      [status]: { description: done, headers, content: { ...content, ...typed(found.alternatives ?? {}) } },
      ...(found.partial === true
        ? {
            206: { description: 'The part that was asked for.', headers, content },
            304: { description: 'You have it already.', headers },
          }
        : {}),
    },
    errors: [
      ...ANY_CALL,
      ...common.errors,
      ...errors,
      ...(path.includes('{') ? OF_ONE_OBJECT : []),
      ...(verb === 'POST' ? ANY_BODY : []),
      ...(verb === 'GET' ? [] : [NO_DRY_RUN]),
    ],
  };
};

const parametersIn = (query: JsonObject): readonly JsonObject[] =>
  Object.entries(objectAt(query, 'properties')).map(([name, schema]) => {
    const { description = '', ...form } = schema as JsonObject;
    const required = listAt(query, 'required').includes(name) ? { required: true } : {};
    return { name, in: 'query', schema: form, description, ...required };
  });

const namesIn = (path: string): { readonly [name: string]: string } => {
  const known = PATH_NAMES[path.split('/')[0] ?? ''];
  return Object.fromEntries(
    [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name = '']) => [name, known?.[name] ?? `The ${name}.`]),
  );
};
