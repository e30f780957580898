import type { DomainEvent } from '../decider.ts';

/** One thing that a look at a hub found wrong, in words that somebody can act on; never a credential. */
export type HubProblemFact = {
  /** `Unreachable`, `CrdMissing` …: the codes of the management-cluster port. */
  readonly code: string;
  readonly message: string;
  /** The kind, verb or file that it is about. */
  readonly subject?: string;
};

/** Hosts of one resource class, as the hub shows them (management-cluster.md §3.3). */
export type HostCount = { readonly free: number; readonly ours: number; readonly foreign: number };

type Problems = { readonly at: string; readonly problems: readonly HubProblemFact[] };

/**
 * What looking at a hub showed, on the hub's own stream: its document tells it. Only what changed is an event, so that a
 * hub that stays as it is adds nothing, however often it is looked at.
 */
export type HubHealthEvent =
  | DomainEvent<'HubBecameReachable', { readonly at: string }>
  | DomainEvent<'HubBecameUnreachable', Problems>
  | DomainEvent<'HubCredentialsAccepted', { readonly at: string }>
  | DomainEvent<'HubCredentialsRefused', Problems>
  /** The cluster that answers is the hub: the first one that did, or the one that its document names. */
  | DomainEvent<'HubIdentified', { readonly at: string; readonly cluster: string }>
  /** Other credentials, or the same address, lead to another cluster: nothing is done there, and nothing believed. */
  | DomainEvent<'HubFoundToBeAnotherCluster', Problems>
  /** The mark on the hub says that another service drives it: nothing is done there (mark.ts). */
  | DomainEvent<'HubFoundDrivenElsewhere', Problems>
  | DomainEvent<'HubDrivingResumed', { readonly at: string }>
  /** Kinds, rights, namespace and version are as orders need them. */
  | DomainEvent<'HubFoundComplete', { readonly at: string }>
  | DomainEvent<'HubFoundIncomplete', Problems>
  /** Its webhook listener or automation platform answers, takes the credentials and has the templates. */
  | DomainEvent<'HubAutomationAnswered', { readonly at: string }>
  | DomainEvent<'HubAutomationFailed', Problems>
  | DomainEvent<'HubVersionSeen', { readonly at: string; readonly version: string }>
  | DomainEvent<
      'HubHostsCounted',
      { readonly at: string; readonly hosts: { readonly [resourceClass: string]: HostCount } }
    >;
