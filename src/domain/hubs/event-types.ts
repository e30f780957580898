import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, counts, list, listOf, mayBe, text, typesOf, type Shapes } from '../schemas.ts';

/** One thing that a look at a hub found wrong, in words that somebody can act on; never a credential. */
export const hubProblem = z.strictObject({
  /** `Unreachable`, `CrdMissing` …: the codes of the management-cluster port. */
  code: text,
  message: text,
  /** The kind, verb or file that it is about. */
  subject: mayBe,
});
const problems = { problems: listOf(hubProblem) };

/** What is missing for objects of one kind, which the hub is of use without. */
export const lackedKind = hubProblem.extend({ kind: text });

/** Hosts of one resource class, as the hub shows them (OSAC's operator). */
export const hostCount = z.strictObject({ free: count, ours: count, foreign: count });

/**
 * What looking at a hub showed, on the hub's own stream: its document tells it. Only what changed is an event, so
 * that a
 * hub that stays as it is adds nothing, however often it is looked at.
 */
export const HUB_HEALTH = {
  HubBecameReachable: {},
  HubBecameUnreachable: problems,
  HubCredentialsAccepted: {},
  HubCredentialsRefused: problems,
  /** The cluster that answers is the hub: the first one that did, or the one that its document names. */
  HubIdentified: { cluster: text },
  /** Other credentials, or the same address, lead to another cluster: nothing is done there, and nothing believed. */
  HubFoundToBeAnotherCluster: problems,
  /** The mark on the hub says that another service drives it: nothing is done there (mark.ts). */
  HubFoundDrivenElsewhere: problems,
  HubDrivingResumed: {},
  /** Kinds, rights, namespace and version are as orders need them. */
  HubFoundComplete: {},
  HubFoundIncomplete: problems,
  /** Its webhook listener or automation platform answers, takes the credentials and has the templates. */
  HubAutomationAnswered: {},
  HubAutomationFailed: problems,
  HubVersionSeen: { version: text },
  /** Kinds whose objects cannot be on the hub; none: every kind can. */
  HubKindsSeen: { lacking: listOf(lackedKind) },
  HubHostsCounted: { hosts: z.record(z.string(), hostCount) },
} as const satisfies Shapes;

/** Who holds capacity, and how much of it. */
const holder = z.strictObject({ kind: text, id: text });
/** `nodes`: by host type id. */
export const capacityClaim = z.strictObject({ controlPlanes: count, nodes: counts });
/** Hosted control planes that the hub can carry, and nodes by host type id; absent: unlimited. */
export const capacityLimits = z.strictObject({
  controlPlanes: count.exactOptional(),
  nodes: counts.exactOptional(),
});
/** How the scheduler came to its choice; an auditor can recompute it. */
export const placementDecision = z.strictObject({
  weightsVersion: count,
  candidates: listOf(
    z.strictObject({
      hub: text,
      fits: z.boolean(),
      /** Why it was filtered out; empty when it fits. */
      reasons: list,
      scores: z.record(z.string(), z.number()),
      total: z.number(),
    }),
  ),
});

const claimed = { holder, claim: capacityClaim };

/**
 * Events of `hubCapacity-<hub id>`: the one stream that owns what a hub can still take, so that a burst of orders
 * cannot all land on the emptiest hub.
 */
export const HUB_CAPACITY = {
  HubCapacityDeclared: { hub: text, limits: capacityLimits },
  HubCapacityReserved: claimed,
  /** A scale-out or scale-in: the claim of a holder is replaced as a whole. */
  HubCapacityResized: claimed,
  HubCapacityReleased: { holder },
  /**
   * The hub is about to be deregistered: nothing is reserved here until a later wording of its document declares
   * capacity again. `hubRevision`: that of its document at which it was to be deregistered.
   */
  HubCapacityClosed: { hub: text, hubRevision: count },
} as const satisfies Shapes;

/** `by`: subject id of who asked for it. */
const lane = { lane: text, by: text };
/** The lanes that people hold back. */
export const LANE_PAUSE = {
  LanePaused: { ...lane, reason: text },
  LaneResumed: lane,
} as const satisfies Shapes;

export const hubEventTypes: readonly EventType[] = [
  ...typesOf({ context: 'hubs', audience: 'provider', resource: 'hub' }, HUB_HEALTH),
  ...typesOf({ context: 'hubs', audience: 'provider' }, { ...HUB_CAPACITY, ...LANE_PAUSE }),
];
