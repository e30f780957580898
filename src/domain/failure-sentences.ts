/**
 * What a tenant reads of a failure. What a hub or an adapter said in full names hubs, namespaces and other tenants'
 * objects: that is the provider's to know (`detail` of the event).
 */
const SENTENCES: { readonly [reason: string]: string } = {
  NameTaken: 'the hub already holds something else under the name of this order',
  ValidationFailed: 'the hub refuses the order as invalid',
  PullSecretMissing: 'the pull secret of this order is not in the secret store',
  NetworkRangeNotRemovable: 'a network range of a cluster that was built cannot be taken back',
  HubNotRegistered: 'the hub of this order is not available',
  NoAdapter: 'the hub of this order cannot be reached by this release',
  Unauthorized: 'the hub of this order refuses the service',
  Forbidden: 'the hub of this order denies the service what it needs',
  DifferentCluster: 'the hub of this order is not available',
  Unavailable: 'the hub of this order does not answer',
  NotReady: 'the hub of this order is not ready',
  DuplicateOrders: 'the hub holds more than one order of this cluster',
  NoController: 'the hub of this order cannot be worked on by this release',
  EndpointMissing: 'the automation of the hub is not set up for this order',
  AutomationRefused: 'the automation of the hub refuses the order',
  AutomationUnauthorized: 'the automation of the hub refuses the service',
  AutomationForbidden: 'the automation of the hub denies the service what it needs',
  AutomationNotFound: 'the automation of the hub does not know how to carry out the order',
  AutomationThrottled: 'the automation of the hub is busy',
  AutomationUnavailable: 'the automation of the hub does not answer',
  StillThere: 'what belongs to it is still being removed',
  BeingDeleted: 'an earlier object of this order is still being deleted on its hub',
};
const OTHERWISE = 'the order cannot be carried out for now; its provider sees why';

/** The sentence for tenants; the same for every reason that says nothing to them. */
export const failureSentence = (reason: string): string =>
  Object.hasOwn(SENTENCES, reason) ? (SENTENCES[reason] ?? OTHERWISE) : OTHERWISE;
