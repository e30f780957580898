import { hash } from 'node:crypto';
import type {
  HubObject,
  HubObjectEvent,
  Manifest,
  ObjectPlace,
  OwnedObject,
  OwnedShown,
} from '../../domain/hubs/hub-object.ts';
import type { Condition } from '../../domain/hubs/hub-codecs.ts';
import type { HubMark } from '../../domain/hubs/mark.ts';
import type { HubProblemFact, LackedKind } from '../../domain/hubs/health-events.ts';
import type { HostCounts } from '../../domain/hubs/health.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { MachineConsole } from '../consoles/console-line.ts';
import type { ConsoleType } from '../../domain/consoles.ts';

export type CallOptions = {
  /** The effect this call belongs to: label and journal entry on the far side. */
  readonly effectId: string;
  /** Every call has a deadline of its own; past it a write's outcome is unknown. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
};

/** What a look at a hub found wrong; each is one thing that somebody can mend (issue: "Hub life"). */
export type HubProblemCode =
  | 'InvalidKubeconfig' // not YAML, points to a file, exec plugin, no server …: refused without connecting
  | 'Unreachable' // no TCP or TLS connection, wrong CA, time-out
  | 'CredentialsRefused' // 401
  | 'DifferentCluster' // what answers is not the cluster that the hub is known to be
  | 'VersionTooOld'
  | 'NamespaceMissing'
  | 'CrdMissing' // a kind that we write, or a field of it, is not there
  | 'RightMissing'; // SelfSubjectAccessReview says no

export type HubProblem = HubProblemFact & { readonly code: HubProblemCode };

/** Result of really connecting to a hub. No problems: orders can be sent there. */
export type HubReport = {
  readonly problems: readonly HubProblem[];
  /** `gitVersion` of the API server, once it answered. */
  readonly version?: string;
  /** Which cluster answered (domain/hubs/identity.ts); absent: the rights do not show it. */
  readonly cluster?: string;
  /** The hub's clock minus ours in milliseconds, from its Date header. */
  readonly clockSkewMs?: number;
  /** Kinds that the hub is of use without, each with what is missing. Absent: they were not looked at. */
  readonly lacking?: readonly LackedKind[];
  /** What the rights allow besides the order itself. */
  readonly canReadNodePools?: boolean;
  readonly canReadAgents?: boolean;
};

/**
 * The controller's part, on a hub where nobody else reconciles an object, as its kind
 * declares it. All of it converges: repeated at any time it does what is missing and nothing else.
 */
export type HubController = {
  /** Finalizer on the object, then its companions: namespace, accounts, rights. Says what was missing. */
  prepare(
    kind: OwnedObject,
    place: ObjectPlace,
    options: CallOptions,
  ): Promise<{ readonly created: readonly string[] }>;
  /** Replaces what its kind renders of a status, and our conditions. */
  writeStatus(
    kind: OwnedObject,
    place: ObjectPlace,
    status: ControllerStatus,
    options: CallOptions,
  ): Promise<void>;
  /**
   * One step of the end of a deletion (OSAC's operator): asks for the namespace to go, and once it is gone takes
   * our finalizer off. Called until `released`; `waitingFor` says what is still there.
   */
  release(
    kind: OwnedObject,
    place: ObjectPlace,
    options: CallOptions,
  ): Promise<{ readonly released: boolean; readonly waitingFor: readonly string[] }>;
};

export type ControllerStatus = {
  readonly conditions: readonly Condition[];
  readonly [field: string]: unknown;
};

export type CheckOptions = CallOptions & {
  /**
   * Tries an order as well, which is not stored but which the hub's admission webhooks see. Without it the last
   * trial on
   * this connection counts, as long as nothing was wrong with it.
   */
  readonly thorough?: boolean;
};

/** The mark as the hub holds it. `version` changes with each write, whoever writes. */
export type StoredMark = { readonly mark: HubMark; readonly version: string };

/**
 * Port of a management cluster (hub), drawn after what a Kubernetes API offers: named objects with labels,
 * finalizers and
 * status, merge patches, watches. Kinds of objects are declared (domain/hub-objects.ts); no adapter names one.
 */
export type ManagementCluster = {
  readonly hubId: string;
  readonly simulated: boolean;
  /** Really connects and looks at everything that orders need. Never throws for what it finds wrong. */
  check(options: CheckOptions): Promise<HubReport>;
  /** Which cluster answers. Undefined: the rights do not show it. Absent where that cannot be asked. Throws HubError. */
  identify?(options: CallOptions): Promise<string | undefined>;
  /** Which deployment drives this hub (domain/hubs/mark.ts). Undefined: no mark stands there. Throws HubError. */
  readMark(options: CallOptions): Promise<StoredMark | undefined>;
  /**
   * Writes the mark over exactly the version that was read; undefined: where none stands. Returns the new version, or
   * undefined when somebody else was faster. Throws HubError.
   */
  writeMark(mark: HubMark, over: string | undefined, options: CallOptions): Promise<string | undefined>;
  /** Undefined: the hub has no agents or its rights do not show them. */
  inventory(options: CallOptions): Promise<HostCounts | undefined>;
  /** Creates the namespace of a tenant when it is not there; labels it with `tenant-ref` and `project`. */
  ensureTenantNamespace(
    namespace: { readonly name: string; readonly tenant: string },
    options: CallOptions,
  ): Promise<{ readonly created: boolean }>;
  /** Asks that it goes, unless it is somebody else's. `existed` false: there is none of this tenant. */
  removeTenantNamespace(
    namespace: { readonly name: string; readonly tenant: string },
    options: CallOptions,
  ): Promise<{ readonly existed: boolean }>;
  /** Absent where something else on the hub reconciles its objects in any case. */
  readonly controller?: HubController;
  /** Creates an object. Throws HubError `already-exists` (its `object` says whose it is). */
  create<Spec extends object, Shown extends OwnedShown>(
    kind: OwnedObject<Spec, Shown>,
    manifest: Manifest<Spec>,
    options: CallOptions,
  ): Promise<Shown>;
  /** Merge patch of owned fields only: of the spec, or of the status where `place` says so. */
  patch<Spec extends object, Shown extends OwnedShown>(
    kind: OwnedObject<Spec, Shown>,
    place: ObjectPlace & { readonly part?: 'status' },
    change: Partial<Spec> | JsonObject,
    options: CallOptions,
  ): Promise<Shown>;
  /**
   * Requests deletion; absence is confirmed only by a later read that finds nothing. Absent already: false. `uid`: of
   * that object only; throws HubError `conflict` when another one has its name by now.
   */
  delete(
    kind: OwnedObject,
    place: ObjectPlace & { readonly uid?: string },
    options: CallOptions,
  ): Promise<boolean>;
  /** Undefined when there is none. */
  get<Shown>(kind: HubObject<Shown>, place: ObjectPlace, options: CallOptions): Promise<Shown | undefined>;
  /** The whole object as the hub stores it, for webhooks and jobs; may hold a pull secret in clear. */
  read(kind: HubObject, place: ObjectPlace, options: CallOptions): Promise<JsonObject | undefined>;
  /** By the label with our id; shows also those that have another name. */
  find<Shown extends OwnedShown>(
    kind: OwnedObject<object, Shown>,
    namespace: string,
    id: string,
    options: CallOptions,
  ): Promise<readonly Shown[]>;
  /**
   * `digestOfLook` of many objects, each with what its kind reads beside it, in as few calls as the hub allows. Of one
   * that is not there, or can only be read by itself: undefined; undefined instead of a list: so it is with all of them.
   * Absent: the adapter reads one by one.
   */
  digests?(
    kind: OwnedObject,
    looks: readonly ObjectLook[],
    options: CallOptions,
  ): Promise<readonly (string | undefined)[] | undefined>;
  /** One key of a Secret by name. Undefined when there is none. */
  readSecret(
    place: ObjectPlace & { readonly key: string },
    options: CallOptions,
  ): Promise<Uint8Array | undefined>;
  /** Lists once (`applied` for each, then `synced`), then follows; resumes by itself; ends only on its signal. */
  watch<Shown extends OwnedShown>(
    kind: OwnedObject<object, Shown>,
    namespace: string,
    signal: AbortSignal,
  ): AsyncIterable<HubObjectEvent<Shown>>;
  /**
   * Opens a console of the machine that this object stands for; `deadlineMs` is for the opening alone, and `signal` ends
   * both. Throws HubError. Absent: the adapter has none.
   */
  openConsole?(
    kind: OwnedObject,
    place: ObjectPlace,
    type: ConsoleType,
    options: CallOptions,
  ): Promise<MachineConsole>;
  close(): Promise<void>;
};

/** Where an object of ours is, and what is read beside it. */
export type ObjectLook = { readonly place: ObjectPlace; readonly beside?: ObjectPlace };

/** Equal digests: two looks at an object, and at what is read beside it, showed the same. `beside` null: there is none. */
export const digestOfLook = (shown: OwnedShown, beside: unknown): string =>
  hash('sha256', JSON.stringify([shown, beside]), 'base64');

/** Error classes; each is one thing a caller can act on. */
export type HubErrorKind =
  | 'invalid' // 422: permanent
  | 'conflict' // 409 Conflict: re-read and retry
  | 'already-exists' // 409 AlreadyExists: ours, foreign or being deleted, see `object`
  | 'not-found' // 404 of the object
  | 'not-ready' // 404 of the kind: the hub has no CRD yet
  | 'unauthorized' // 401, 403: park all work of this hub
  | 'driven-elsewhere' // the mark says that another service drives the hub: nothing was sent
  | 'other-cluster' // what answers is not the hub: park all its work, and believe nothing
  | 'throttled' // 429
  | 'unavailable' // certainly not done: connection refused, 503 before processing
  | 'unknown-outcome'; // may have been done: time-out or lost answer of a write

export class HubError extends Error {
  override readonly name = 'HubError';
  readonly kind: HubErrorKind;
  readonly retryAfterMs: number | undefined;
  declare readonly object: OwnedShown | undefined;
  readonly facts: JsonObject;
  constructor(
    kind: HubErrorKind,
    message: string,
    more: { retryAfterMs?: number; object?: OwnedShown; facts?: JsonObject; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.kind = kind;
    this.retryAfterMs = more.retryAfterMs;
    // It may hold a pull secret: what logs an error with its fields must not find it.
    Object.defineProperty(this, 'object', { value: more.object, enumerable: false });
    this.facts = more.facts ?? {};
  }
}

/**
 * True for what the hub cannot show: it has no such kind, or the rights do not allow to read it (403). Nobody waits for
 * that. Credentials that are refused (401) are another thing: with others it can be shown.
 */
export const cannotBeShown = (error: unknown): boolean =>
  isForbidden(error) || (error instanceof HubError && error.kind === 'not-ready');
export const isForbidden = (error: unknown): error is HubError =>
  error instanceof HubError && error.kind === 'unauthorized' && error.facts['status'] === 403;

/** What an adapter needs to know of a registered hub. */
export type HubConnection = {
  readonly id: string;
  readonly namespace: string;
  /** Who owns the secret below. */
  readonly tenant: string;
  /** Reference of the kubeconfig; a later reference or revision replaces the credentials without a restart. */
  readonly kubeconfig?: SecretRef;
  readonly revision: number;
  /** Decide which rights the hub's credentials need; default `operator` and false. */
  readonly controller?: 'operator' | 'ledger';
  readonly tenantNamespaces?: boolean;
  /** Namespaces of single tenants, where orders are besides `namespace`; default none. */
  readonly otherNamespaces?: readonly string[];
  /** Which cluster has to answer; absent: any may. From another one no absence is believed, and nothing goes there. */
  readonly cluster?: string;
};

/**
 * Finds the adapter of a hub; undefined: no adapter can reach it (shown as `NoAdapter`). The same hub gets the same
 * adapter again, which takes over what changed in its connection.
 */
export type ManagementClusters = {
  of(hub: HubConnection): ManagementCluster | undefined;
  /** This hub is not registered any more: its connections are closed, and its credentials forgotten. */
  forget?(id: string): void;
  /** Host and port that a kubeconfig leads to; undefined: it is none that is taken. */
  hostOf?(kubeconfig: Uint8Array): string | undefined;
  /** A connection that is not registered yet, to check it first; closed by its caller. */
  candidate?(hub: Omit<HubConnection, 'kubeconfig'>, kubeconfig: Uint8Array): ManagementCluster;
};

export const TENANT_ANNOTATION = 'osac.openshift.io/tenant';
