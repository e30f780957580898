import type { DomainEvent } from '../decider.ts';
import type { AuditTreeEvent } from './audit-events.ts';

/**
 * Events of the service's own `sys-` streams (design §4): who is at work and how far, never anything about an order.
 * They are in no read model; only somebody who asks for such a stream sees them.
 */
export type BookkeepingEvent =
  /** `sys-lease-<name>`: the newest one says who holds the lease. */
  | DomainEvent<'LeaseTaken' | 'LeaseRenewed' | 'LeaseReleased', LeaseData>
  /** `sys-clock`: the wall clock moved by `deltaMs` against the monotonic one. */
  | DomainEvent<'ClockDiverged', { readonly at: string; readonly instance: string; readonly deltaMs: number }>
  /**
   * `sys-checkpoint-<name>`, `sys-kafka-<topic>`: a loop over the log resumes behind this position of this store; without one
   * at the beginning. `nothingSent`: none of what lies in front of it was anything to send.
   */
  | DomainEvent<
      'CheckpointReached',
      {
        readonly at: string;
        readonly position?: string;
        readonly nothingSent?: boolean;
        /** `<partition>:<offset>` of what a Kafka topic was sent last. */
        readonly places?: readonly string[];
        /** Id that the brokers gave to that topic. */
        readonly topicId?: string;
      }
    >
  /** `sys-kafkaParked-<topic>`: all streams that the topic leaves out at present. */
  | DomainEvent<'KafkaParkingChanged', { readonly at: string; readonly streams: readonly ParkedStream[] }>
  /** `sys-deployment`: the newest one says which deployment this log belongs to. */
  | DomainEvent<'DeploymentBound', DeploymentData>
  /** `sys-driving`: event n began epoch n + 1, before anything of that epoch was written to a hub (app/hub-epochs.ts). */
  | DomainEvent<'DrivingEpochBegun', DrivingEpochData>
  /** `sys-store`: the id of a store that has none by itself. */
  | DomainEvent<'StoreIdentified', { readonly at: string; readonly storeId: string }>
  | AuditTreeEvent;

/** A stream whose events from `revision` on are in no record of a topic. */
export type ParkedStream = {
  readonly stream: string;
  readonly revision: number;
  /** Position of that event. */
  readonly position: string;
  /** Why. */
  readonly error: string;
  /** `newer-release`: the event is of one, and is tried again by each publisher that begins. Absent: anything else. */
  readonly reason?: 'newer-release';
  readonly at: string;
};

export type DrivingEpochData = {
  readonly at: string;
  readonly epoch: number;
  /** Tells it from the epoch of this number in a copy of the log. */
  readonly nonce: string;
  /** Data directory of the instance that began it. */
  readonly holder: string;
};

export type DeploymentData = {
  readonly at: string;
  /** What the events of this log look like (`LOG_FORM`). */
  readonly form: number;
  /** Of the deployment keys. */
  readonly fingerprint: string;
  /** What the mark on each hub carries. A log restored from a backup is given another one. */
  readonly deploymentId: string;
  /** What people know the deployment by. */
  readonly name: string;
  /** Ids that this log had before, oldest first: their marks on hubs are taken over. */
  readonly formerIds: readonly string[];
};

export type LeaseData = {
  readonly at: string;
  /** Name of the process incarnation. */
  readonly holder: string;
  /** Id of its data directory. */
  readonly directory: string;
  /** Grows by one each time the lease is taken. */
  readonly epoch: number;
  /** Milliseconds after which the lease may be taken over when it is not renewed. */
  readonly ttlMs: number;
};
