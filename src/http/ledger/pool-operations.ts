import { z } from 'zod';
import type { Descriptions } from '../openapi/description.ts';
import { COUNT, FLAG, itemsOf, listOf, maybe, neededText, TEXT, TIME, wholeNumber } from './forms.ts';

/** Counts of IPv6 addresses are larger than JSON numbers can say. */
const DECIMAL = TEXT.regex(/^\d+$/);
const COUNTS = z.strictObject({
  family: z.enum(['v4', 'v6']).optional().describe('Family of the addresses; absent for VLANs.'),
  size: DECIMAL,
  free: DECIMAL.describe('Can be given out now.'),
  used: DECIMAL,
  quarantined: DECIMAL.describe('Released, and not given out again yet.'),
});
const SUMMARY = {
  kind: z.enum(['vlan', 'prefix', 'address']),
  id: TEXT,
  state: TEXT.describe(
    '`open` or `retired`; an address pool shows the state of its external IP pool, such as `READY`.',
  ),
  ...maybe({
    zone: TEXT,
    fabric: TEXT.describe('Switches that share the VLANs.'),
    vrf: TEXT.describe('VRF in which the prefixes are routed.'),
    hub: TEXT.describe('Hub of an address pool.'),
    name: TEXT.describe('Name of an address pool.'),
  }),
  ranges: listOf(TEXT),
  reserved: listOf(TEXT),
  quarantine_seconds: COUNT,
  counts: listOf(COUNTS),
  pressure: FLAG.describe('Less than 5 % can be given out now.'),
};
const POOL_SUMMARY = z.strictObject(SUMMARY).meta({ id: 'PoolSummary' });
export type PoolSummary = z.infer<typeof POOL_SUMMARY>;

const HOLDER = z.strictObject({
  kind: TEXT,
  id: TEXT,
  generation: COUNT.describe('Number of the allocation in its pool.'),
  ...maybe({
    purpose: TEXT,
    vlan_id: COUNT,
    prefixes: listOf(TEXT),
    gateways: listOf(TEXT),
    address: TEXT,
  }),
});
export type PoolHolder = z.infer<typeof HOLDER>;
const POOL_DETAILS = z
  .strictObject({
    ...SUMMARY,
    holders: listOf(HOLDER),
    next_release: TIME.optional().describe('When the next one leaves quarantine.'),
  })
  .meta({ id: 'PoolDetails' });
export type PoolDetails = z.infer<typeof POOL_DETAILS>;

const RANGE_TEXT = z.string({ error: 'must be a list of texts' }).max(64, {
  error: 'must hold texts of at most 64 characters',
});
const RANGES = z.array(RANGE_TEXT, { error: 'must be a list of texts' });
const ID = z
  .string({ error: 'is needed: the id of the pool' })
  .regex(/^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/, {
    error: 'must be 1 to 63 lower-case letters, digits, dots and hyphens',
  });
const SECONDS = wholeNumber(0, 31_536_000);
const REASON = neededText(200, 'why; it stands in the history').describe('Why; it stands in the history.');
const PLACE = (what: string) => neededText(63, what);
const CREATE = {
  id: ID,
  zone: PLACE('the zone that it serves').describe('Zone that it serves.'),
  ranges: RANGES,
  reserved: RANGES.default([]).describe('Parts of the ranges that are never given out.'),
};

export const VLAN_POOL_BODY = z.strictObject({
  ...CREATE,
  fabric: PLACE('the fabric whose switches know these VLANs').describe('Switches that share VLANs.'),
  ranges: RANGES.describe('Such as `100-199`; ids 2 to 4094.'),
  quarantine_seconds: SECONDS.default(3_600),
  reason: REASON,
});
export const PREFIX_POOL_BODY = z.strictObject({
  ...CREATE,
  vrf: PLACE('the VRF in which the prefixes are routed').describe('VRF in which they are routed.'),
  ranges: RANGES.describe('CIDRs of one family or both, such as `10.20.0.0/16`.'),
  quarantine_seconds: SECONDS.default(600),
  reason: REASON,
});
export const RESIZE_BODY = z.strictObject({
  ranges: RANGES.optional().describe('All of its ranges from now on; absent: as they are.'),
  reserved: RANGES.optional(),
  quarantine_seconds: SECONDS.optional().describe('Holds for releases from now on.'),
  reason: REASON,
});
export const RETIRE_BODY = z.strictObject({ reason: REASON });

/** Pools of VLANs, prefixes and addresses. */
export const POOL_DESCRIPTIONS: Descriptions = {
  'GET pools': {
    summary: 'Pools of VLANs, prefixes and addresses with their free, used and quarantined parts',
    answer: itemsOf(POOL_SUMMARY),
  },
  'GET pools/vlan': { summary: 'VLAN pools', answer: itemsOf(POOL_SUMMARY) },
  'GET pools/vlan/{id}': { summary: 'A VLAN pool with its holders', answer: POOL_DETAILS },
  'POST pools/vlan': {
    summary: 'Creates a VLAN pool',
    description: 'Two pools of one fabric never overlap. The same request again changes nothing.',
    body: VLAN_POOL_BODY,
    answer: POOL_DETAILS,
    errors: ['ALREADY_EXISTS'],
  },
  'POST pools/vlan/{id}/resize': {
    summary: 'Changes ranges, reservations or quarantine of a VLAN pool',
    description: 'Refused where it would leave out what is in use or in quarantine.',
    body: RESIZE_BODY,
    answer: POOL_DETAILS,
    errors: ['ALREADY_EXISTS', 'FAILED_PRECONDITION'],
  },
  'POST pools/vlan/{id}/retire': {
    summary: 'Ends a VLAN pool: it gives out nothing more, and takes back what it gave',
    body: RETIRE_BODY,
    answer: POOL_DETAILS,
  },
  'GET pools/prefix': { summary: 'Prefix pools', answer: itemsOf(POOL_SUMMARY) },
  'GET pools/prefix/{id}': { summary: 'A prefix pool with its holders', answer: POOL_DETAILS },
  'POST pools/prefix': {
    summary: 'Creates a prefix pool',
    description: 'Two pools of one VRF never overlap. The same request again changes nothing.',
    body: PREFIX_POOL_BODY,
    answer: POOL_DETAILS,
    errors: ['ALREADY_EXISTS'],
  },
  'POST pools/prefix/{id}/resize': {
    summary: 'Changes ranges, reservations or quarantine of a prefix pool',
    description: 'Refused where it would leave out what is in use or in quarantine.',
    body: RESIZE_BODY,
    answer: POOL_DETAILS,
    errors: ['ALREADY_EXISTS', 'FAILED_PRECONDITION'],
  },
  'POST pools/prefix/{id}/retire': {
    summary: 'Ends a prefix pool: it gives out nothing more, and takes back what it gave',
    body: RETIRE_BODY,
    answer: POOL_DETAILS,
  },
  'GET pools/address': {
    summary: 'External IP pools',
    description: 'They are created and removed as `external_ip_pools` of the private API.',
    answer: itemsOf(POOL_SUMMARY),
  },
  'GET pools/address/{id}': { summary: 'An external IP pool with its holders', answer: POOL_DETAILS },
};
