import type { JsonObject } from '../../domain/json.ts';
import { meteredKinds } from '../../domain/acting-kinds.ts';
import { USAGE_DIMENSIONS } from '../../domain/metering/usage.ts';
import { columnsFor, DIMENSION_NAMES, USAGE_FORMATS, USAGE_PERIODS } from '../ledger/usage-query.ts';
import { listOf, query, record, TEXT, TIME, type Description } from './ledger-schemas.ts';
import { componentRef } from './message-schemas.ts';

const SECONDS: JsonObject = { type: 'number', minimum: 0 };
const GIVEN: JsonObject = { type: 'string', minLength: 1 };
const dimensions = Object.values(DIMENSION_NAMES);
const columns = USAGE_DIMENSIONS.flatMap(columnsFor);

/** What the route of usage on `/api/ledger/v1` is for. */
export const USAGE_DESCRIPTIONS: { readonly [route: string]: Description } = {
  'GET usage': {
    summary: 'Billed and provisioning time by tenant, project, kind, template and period',
    description:
      'Provider admins read the usage of all tenants; a token of a tenant reads that of its own tenant. A cluster is billed from ' +
      'its first READY on, while it shows PROGRESSING or READY: also while it is degraded or resized. FAILED and DELETING are ' +
      'not billed. Time before the first READY is provisioning time, which nobody is billed for. ' +
      'Exact to the millisecond, from the same intervals that the metering topics tell. What goes on is counted up to `as_of`. ' +
      'Rows are ordered by period and then by the values of `by`; what has no length has no row. The same rows come as CSV ' +
      '(RFC 4180, with a header) or as one JSON object per line. The answer is of everything that was stored before the question ' +
      '(503 while this instance has not applied that), all at once: there are no pages. Other parameters are refused.',
    ownParameters: [
      query('from', TIME, 'Begin of the time, default: of the present month in UTC.'),
      query('to', TIME, 'End of the time, default: now.'),
      query(
        'period',
        { type: 'string', enum: ['', ...USAGE_PERIODS], default: 'total' },
        'Parts that the time is cut into, in UTC; the first and the last may be shorter.',
      ),
      query(
        'by',
        { type: 'string', default: 'tenant,project,kind,template' },
        `What rows are told apart by: a comma list of ${dimensions.join(', ')}; empty: nothing.`,
      ),
      query(
        'tenant',
        GIVEN,
        'Only this tenant. A caller of a tenant may name an own one; default: the first of the token.',
      ),
      query('project', TEXT, 'Only this project; empty: what is in none.'),
      query('kind', { type: 'string', enum: meteredKinds.map(({ kind }) => kind) }, 'Only this kind.'),
      query('template', GIVEN, 'Only this template, by id.'),
      query('resource', GIVEN, 'Only this resource, by id.'),
      query(
        'format',
        { type: 'string', enum: ['', ...USAGE_FORMATS] },
        'Default: as `Accept` says, else `json`.',
      ),
      query(
        'incomplete',
        { type: 'string', enum: ['true', 'false', ''] },
        'Answer although the events of some clusters could not be applied; these are left out.',
      ),
    ],
    parameters: ['X_Ledger_Min_Position'],
    answer: 'Usage',
    alternatives: { 'application/x-ndjson': componentRef('UsageRow'), 'text/csv': TEXT },
    headers: ['X_Ledger_Position'],
    errors: ['UNIMPLEMENTED'],
  },
};

export const USAGE_COMPONENTS: { readonly [name: string]: JsonObject } = {
  Usage: record({
    from: TIME,
    to: TIME,
    as_of: TIME,
    'position?': TEXT,
    items: listOf(componentRef('UsageRow')),
  }),
  UsageRow: record({
    period_start: TIME,
    period_end: TIME,
    ...Object.fromEntries(columns.map((name) => [`${name}?`, TEXT])),
    resource_seconds: {
      ...SECONDS,
      description: 'Time for which resources are billed: of a cluster, its control plane.',
    },
    node_seconds: { ...SECONDS, description: 'The same of ordered nodes, each node for itself.' },
    provisioning_resource_seconds: {
      ...SECONDS,
      description: 'Time before the first READY, which is not billed: of a cluster, its control plane.',
    },
    provisioning_node_seconds: { ...SECONDS, description: 'The same of ordered nodes.' },
  }),
};
