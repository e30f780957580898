import type { LackedKind } from '../../domain/hubs/health-events.ts';
import type { OwnedObject } from '../../domain/hubs/hub-object.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { CallOptions } from '../hubs/management-cluster.ts';

/**
 * Port of a hub's automation: Event-Driven Ansible (a rulebook listening for webhooks, OSAC's operator)
 * or Ansible Automation Platform (job templates). Both carry out the same two playbooks on a whole ClusterOrder.
 */
export type AutomationPurpose = 'provision' | 'deprovision';

/** How the automation of a hub is reached; secrets by reference, revealed at the call. */
export type AutomationConnection = {
  readonly hub: string;
  readonly mode: 'eda' | 'aap';
  /** eda: the listener; aap: up to but without `/v2`. */
  readonly url: string;
  /** Bearer token. */
  readonly token?: SecretRef;
  /** eda: key of the `x-hub-signature-256` HMAC. */
  readonly hmacSecret?: SecretRef;
  /** PEM of the certificate authority; absent: the system's. */
  readonly ca?: string;
  /** aap: templates are `<prefix>-create-hosted-cluster` and `<prefix>-delete-hosted-cluster`. Default `osac`. */
  readonly templatePrefix: string;
  /** Who owns the secrets. */
  readonly tenant: string;
};

export type TriggerRequest = {
  readonly purpose: AutomationPurpose;
  readonly orderName: string;
  /** The whole ClusterOrder; holds the pull secret, never logged. */
  readonly order: JsonObject;
};

/** eda answers only that the request was queued, not that anything will happen. */
export type Triggered =
  | { readonly kind: 'queued' }
  | { readonly kind: 'launched'; readonly job: AutomationJob };

export type AutomationJob = {
  readonly id: string;
  /** Workflow jobs have another path than jobs. */
  readonly workflow: boolean;
  readonly template: string;
  readonly state: 'Pending' | 'Waiting' | 'Running' | 'Succeeded' | 'Failed' | 'Canceled' | 'Unknown';
  readonly createdAt: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  /** Of a failed job: the tail of its output, redacted. */
  readonly outputTail?: string;
};

/** One hub's automation. Throws AutomationError. */
export type Automation = {
  trigger(request: TriggerRequest, options: CallOptions): Promise<Triggered>;
  /** aap only: jobs of our effect id launched at or after `since`, by reading each one's extra_vars. */
  findJobs?(
    search: { readonly purpose: AutomationPurpose; readonly since: string },
    options: CallOptions,
  ): Promise<readonly AutomationJob[]>;
  /** aap only. Undefined: there is no such job any more. */
  job?(job: Pick<AutomationJob, 'id' | 'workflow'>, options: CallOptions): Promise<AutomationJob | undefined>;
  /** aap only. False: it had ended already. */
  cancel?(job: Pick<AutomationJob, 'id' | 'workflow'>, options: CallOptions): Promise<boolean>;
  /** Really connects: whether listener or platform answers, accepts the credentials and has the templates. */
  check(options: CallOptions): Promise<{ readonly problems: readonly string[] }>;
  /** Of these kinds, those that it has nothing for. `thorough`: what was found missing before is looked for again. */
  lacking?(
    kinds: readonly OwnedObject[],
    options: CallOptions & { readonly thorough: boolean },
  ): Promise<readonly LackedKind[]>;
};

/**
 * An automation that is tried before it is registered, or before a hub gets other secrets: those in clear are kept
 * nowhere,
 * references are to what the hub has already.
 */
export type AutomationCandidate = Omit<AutomationConnection, 'token' | 'hmacSecret'> & {
  readonly token?: string | SecretRef;
  readonly hmacSecret?: string | SecretRef;
};

export type Automations = {
  of(connection: AutomationConnection): Automation;
  candidate?(candidate: AutomationCandidate): Automation;
  close(): Promise<void>;
};

export type AutomationErrorKind =
  | 'invalid' // refused for good: not JSON for it, too large
  | 'unauthorized'
  | 'forbidden' // known, but not allowed: perhaps this template alone
  | 'not-found' // the template or endpoint does not exist
  | 'throttled'
  | 'unavailable' // certainly not done
  | 'unknown-outcome'; // may have been accepted: time-out or lost answer

export class AutomationError extends Error {
  override readonly name = 'AutomationError';
  readonly kind: AutomationErrorKind;
  readonly retryAfterMs: number | undefined;
  constructor(
    kind: AutomationErrorKind,
    message: string,
    more: { retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.kind = kind;
    this.retryAfterMs = more.retryAfterMs;
  }
}
