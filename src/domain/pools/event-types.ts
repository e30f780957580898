import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, list, text, time, typesOf, type EventOf, type Shapes } from '../schemas.ts';

const holder = z.strictObject({ kind: text, id: text });

/** Rests until then: switches and caches may still know it. Absent: its pool has no quarantine. */
const quarantined = { quarantinedUntil: time.exactOptional() };
/** `ranges`: what the pool hands out of, but for what is reserved. `reason`: why somebody changed it. */
const sized = { ranges: list, reserved: list, quarantineSeconds: count, reason: text };
/** `generation`: which allocation of its pool it is; its release names it. */
const held = { holder, generation: count };
/** Nothing is left of what was `wanted`: told once, not for each attempt. `until`: when something leaves quarantine. */
const exhausted = { wanted: list, until: time.exactOptional() };

/** Events of `vlanPool-<id>`: who has which VLAN of a fabric. Ranges are texts such as `100-199`. */
export const VLAN_POOL = {
  VlanPoolCreated: { fabric: text, zone: text, ...sized },
  VlanPoolResized: sized,
  VlanPoolRetired: { reason: text },
  VlanAllocated: { ...held, purpose: text, vlanId: count },
  VlanReleased: { ...held, vlanId: count, ...quarantined },
  VlanPoolExhausted: exhausted,
} as const satisfies Shapes;

/** Events of `prefixPool-<id>`: who has which prefixes of a VRF. Ranges are CIDRs of both families. */
export const PREFIX_POOL = {
  PrefixPoolCreated: { vrf: text, zone: text, ...sized },
  PrefixPoolResized: sized,
  PrefixPoolRetired: { reason: text },
  /** One prefix of each family at most; both were decided at once. */
  PrefixAllocated: { ...held, purpose: text, prefixes: list, gateways: list },
  PrefixReleased: { ...held, prefixes: list, gateways: list, ...quarantined },
  /** `wanted`: family and length, such as `v4/24`. */
  PrefixPoolExhausted: exhausted,
} as const satisfies Shapes;

/** Events of `poolSpace-<fabric or vrf>`: which pool has which ranges, so that no two of them overlap. */
export const POOL_SPACE = {
  /** Before the pool says so itself: it may do that at this revision of its stream only (-1: the stream is empty). */
  PoolSpaceReserved: { pool: text, base: z.int().min(-1), ranges: list },
  /** What the pool's stream says at a revision; reservations of earlier ones came to nothing. */
  PoolSpaceSettled: { pool: text, revision: count, ranges: list },
} as const satisfies Shapes;

export type VlanPoolEvent = EventOf<typeof VLAN_POOL>;
export type PrefixPoolEvent = EventOf<typeof PREFIX_POOL>;
export type PoolSpaceEvent = EventOf<typeof POOL_SPACE>;

export const poolEventTypes: readonly EventType[] = typesOf(
  { context: 'networks', audience: 'provider' },
  { ...VLAN_POOL, ...PREFIX_POOL, ...POOL_SPACE },
);
