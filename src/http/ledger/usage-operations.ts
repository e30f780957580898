import { z } from 'zod';
import { meteredKinds } from '../../domain/acting-kinds.ts';
import { isNamed, USAGE_DIMENSIONS, type UsageDimension } from '../../domain/metering/usage.ts';
import type { Descriptions } from '../openapi/description.ts';
import { filled, FLAG, listOf, maybe, oneOf, SECONDS, snakeCase, TEXT, TIME, timeIn } from './forms.ts';

export const DIMENSION_NAMES = Object.fromEntries(
  USAGE_DIMENSIONS.map((dimension) => [dimension, snakeCase(dimension)]),
) as { readonly [Dimension in UsageDimension]: string };
/** Its column, and beside an id that of the name. */
export const columnsFor = (dimension: UsageDimension): readonly string[] => {
  const column = DIMENSION_NAMES[dimension];
  return isNamed(dimension) ? [column, `${column}_name`] : [column];
};

const columns = USAGE_DIMENSIONS.flatMap(columnsFor);
const dimensions = Object.values(DIMENSION_NAMES).join(', ');
const metered = meteredKinds.map(({ kind }) => kind);

const USAGE_ROW = z
  .strictObject({
    period_start: TIME,
    period_end: TIME,
    ...Object.fromEntries(columns.map((name) => [name, TEXT.optional()])),
    resource_seconds: SECONDS.describe(
      'Time for which resources are billed; for a cluster, its control plane.',
    ),
    node_seconds: SECONDS.describe('The same of ordered nodes, each node for itself.'),
    provisioning_resource_seconds: SECONDS.describe(
      'Time before the first READY, which is not billed; for a cluster, its control plane.',
    ),
    provisioning_node_seconds: SECONDS.describe('The same of ordered nodes.'),
  })
  .meta({ id: 'UsageRow' });

const USAGE = z
  .strictObject({
    from: TIME,
    to: TIME,
    as_of: TIME,
    position: TEXT.optional(),
    items: listOf(USAGE_ROW),
  })
  .meta({ id: 'Usage' });
export type Usage = z.infer<typeof USAGE>;

/** A filter that is misspelt, or an empty one, would be everybody's bill; only projects may have none. */
export const USAGE_FILTERS = maybe({
  tenant: filled('every tenant').describe(
    'Only this tenant. A caller of a tenant may name an own one; default: the first of the token.',
  ),
  project: TEXT.describe('Only this project; empty: objects in no project.'),
  kind: oneOf(metered, 'every kind', `must be ${metered.join(' or ')}: nothing else is metered`).describe(
    'Only this kind.',
  ),
  template: filled('every template').describe('Only this template, by id.'),
  resource: filled('every resource').describe('Only this resource, by id.'),
});

export const USAGE_QUERY = z.strictObject({
  from: timeIn().describe('Begin of the time; default: first day of the present month in UTC.').optional(),
  to: timeIn().describe('End of the time, default: now.').optional(),
  period: oneOf(['', 'total', 'hour', 'day', 'month'])
    .default('total')
    .describe('Parts that the time is cut into, in UTC; the first and the last may be shorter.'),
  by: TEXT.transform((text, context): readonly UsageDimension[] => {
    const named = text === '' ? [] : text.split(',');
    const found = USAGE_DIMENSIONS.filter((dimension) => named.includes(DIMENSION_NAMES[dimension]));
    if (found.length !== named.length) context.addIssue(`must be a list of different ones of ${dimensions}`);
    return found;
  })
    .prefault('tenant,project,kind,template')
    .describe(`Dimensions of the rows: a comma list of ${dimensions}; empty: nothing.`),
  ...USAGE_FILTERS,
  format: oneOf(['', 'json', 'ndjson', 'csv']).describe('Default: as `Accept` says, else `json`.').optional(),
  incomplete: FLAG.default(false).describe(
    'Answer although the events of some clusters could not be applied; these are left out.',
  ),
});
export type UsageAsked = z.infer<typeof USAGE_QUERY>;
export const USAGE_DESCRIPTIONS: Descriptions = {
  'GET usage': {
    summary: 'Billed and provisioning time by tenant, project, kind, template and period',
    description:
      'Provider admins read the usage of all tenants; a token of a tenant reads that of its own tenant. A cluster is billed from ' +
      'its first READY on, while it shows PROGRESSING or READY: also while it is degraded or resized. FAILED and DELETING are ' +
      'not billed. Time before the first READY is provisioning time, which nobody is billed for. ' +
      'Exact to the millisecond, from the same intervals that the metering topics tell. An open interval counts up to `as_of`. ' +
      'Rows are ordered by period and then by the values of `by`; a time of no length has no row. The same rows come as CSV ' +
      '(RFC 4180, with a header) or as one JSON object per line. The answer is of everything that was stored before the question ' +
      '(503 while this instance has not applied that), all at once: without pages. Other parameters are refused.',
    query: USAGE_QUERY,
    parameters: ['X_Ledger_Min_Position'],
    answer: USAGE,
    alternatives: { 'application/x-ndjson': USAGE_ROW, 'text/csv': TEXT },
    headers: ['X_Ledger_Position'],
    errors: ['UNIMPLEMENTED'],
  },
};
