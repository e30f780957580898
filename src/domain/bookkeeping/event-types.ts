import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, list, listOf, mayBe, text, typesOf, type Shapes } from '../schemas.ts';

/** Lease of a process: its stream, and which time of holding it. */
export const renewedLease = z.strictObject({ stream: text, epoch: count });

const lease = {
  /** Name of the process incarnation. */
  holder: text,
  /** Id of its data directory. */
  directory: text,
  /** Grows by one each time the lease is taken. */
  epoch: count,
  /** Milliseconds after which the lease may be taken over when it is not renewed. */
  ttlMs: z.number().min(0),
  /** The lease that it rests on, which is the one that is renewed. */
  process: renewedLease.exactOptional(),
};

/** A stream whose events from `revision` on are in no record of a topic. */
export const parkedStream = z.strictObject({
  stream: text,
  revision: count,
  /** Position of that event. */
  position: text,
  /** Why. */
  error: text,
  /** `newer-release`: the event is of one, and is tried again by each publisher that begins. Absent: anything else. */
  reason: z.literal('newer-release').exactOptional(),
  at: text,
});

/**
 * Events of the service's own `sys-` streams: who is at work and how far, never anything about an order.
 * They are in no read model; only somebody who asks for such a stream sees them.
 */
export const BOOKKEEPING_SHAPES = {
  /**
   * `sys-process-<data directory>`: the lease that a process renews. `sys-lease-<name>`: what it owns for as long as it
   * holds that. The newest event of each says who holds it.
   */
  LeaseTaken: lease,
  LeaseRenewed: lease,
  LeaseReleased: lease,
  /** Another process ended it, which had not heard of its holder for its time. */
  LeaseExpired: lease,
  /** `sys-clock`: the wall clock moved by `deltaMs` against the monotonic one. */
  ClockDiverged: { instance: text, deltaMs: z.number() },
  /**
   * `sys-checkpoint-<name>`, `sys-kafka-<topic>`: a loop over the log resumes behind this position of this store;
   * without one
   * at the beginning.
   */
  CheckpointReached: {
    position: mayBe,
    /** None of what lies in front of it was anything to send. */
    nothingSent: z.boolean().exactOptional(),
    /** `<partition>:<offset>` of what a Kafka topic was sent last. */
    places: list.exactOptional(),
    /** Id that the brokers gave to that topic. */
    topicId: mayBe,
  },
  /** `sys-kafkaParked-<topic>`: all streams that the topic leaves out at present. */
  KafkaParkingChanged: { streams: listOf(parkedStream) },
  /** `sys-deployment`: the newest one says which deployment this log belongs to. */
  DeploymentBound: {
    /** What the events of this log look like (`LOG_FORM`). */
    form: count,
    /** Of the deployment keys. */
    fingerprint: text,
    /** What the mark on each hub carries. A log restored from a backup is given another one. */
    deploymentId: text,
    /** What people know the deployment by. */
    name: text,
    /** Ids that this log had before, oldest first: their marks on hubs are taken over. */
    formerIds: list,
  },
  /** `sys-driving`: event n began epoch n + 1, before anything of that epoch was written to a hub (app/hub-epochs.ts). */
  DrivingEpochBegun: {
    epoch: count,
    /** Tells it from the epoch of this number in a copy of the log. */
    nonce: text,
    /** Data directory of the instance that began it. */
    holder: text,
  },
  /** `sys-store`: the id of a store that has none by itself. */
  StoreIdentified: { storeId: text },
  /** `sys-auditTree`: a signed head of the Merkle tree over the log; only the newest 10,000 stay. */
  TreeHeadSigned: {
    /** Leaves of the tree; no event of these streams is one. */
    size: count,
    /** Store position of the last leaf. */
    position: text,
    /** Root hash, base64. */
    root: text,
    /** Root over the trees of all tenants, base64, and how many these are. */
    tenantsRoot: text,
    tenants: count,
    /** The checkpoint as a signed note: what auditors keep. */
    note: text,
    keyId: text,
  },
  /** `sys-auditKeys`: all of them stay. `rotation`: note of the key before this one that announces it. */
  AuditKeyAdded: { vkey: text, rotation: mayBe },
} as const satisfies Shapes;

export const bookkeepingEventTypes: readonly EventType[] = typesOf(
  { context: 'system', audience: 'internal' },
  BOOKKEEPING_SHAPES,
);
