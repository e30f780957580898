import type { ClusterIdentifier } from '../../../app/hubs/hub-identity.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { reject } from '../../../domain/decider.ts';
import { isSimulatedHub } from '../../../domain/hubs/hub-facts.ts';
import { expectedCluster, hub, KUBECONFIG_PATH } from '../../../domain/hubs/hub.resource.ts';
import { clearTextRejection } from '../../../domain/hubs/hub-spec.ts';
import { acceptedCluster, differentCluster } from '../../../domain/hubs/identity.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, stringAt } from '../../../domain/json-tools.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import { refused, type CreateServices, type Creation } from '../creates.ts';
import type { HubAdapters } from '../credentials.ts';
import { documentCreation, documentRevision } from '../documents.ts';
import type { Change, Revision } from '../updates.ts';

/** Nobody gets a cluster from a simulated hub where customers wait for one. `refusesSimulated`: they are not wanted here. */
export const hubCreation = (refusesSimulated: boolean): Creation<DocumentCommand> => ({
  resolve: (object) => {
    if (refusesSimulated && isSimulatedHub(object.id))
      throw refused(
        reject(
          'failed-precondition',
          'SIMULATED_HUB_REFUSED',
          `hub '${object.id}': simulated hubs are refused when NODE_ENV=production; register a hub with a kubeconfig, or set LEDGER_SIMULATED_HUBS=allowed`,
          { field: 'id' },
        ),
      );
    refuseClearText(object.document);
    return documentCreation.resolve(object);
  },
});

export type HubRevisionServices = Pick<CreateServices, 'runner' | 'secrets'> & {
  /** Absent: nothing reaches a hub from here, and credentials are taken as they are. */
  readonly identify?: ClusterIdentifier;
};

/**
 * Other credentials of a hub must lead to the same cluster: on another one every order of the hub would look as if it
 * had been deleted. What cannot be compared now is taken, and compared before anything is done with it.
 */
export const hubRevision = (services: HubRevisionServices): Revision<DocumentCommand> => ({
  command: async (change) => {
    refuseClearText(change.after);
    if (!change.dryRun) await refuseOtherCluster(change, services);
    return documentRevision.command(change);
  },
});

const NAMED = 5;

/** Not by itself: taking away a tenant's namespaces takes a hub that answers, and time. */
export const hubHoldsTenants =
  ({ hubs }: { readonly hubs: HubAdapters }) =>
  (id: string): string | undefined => {
    const tenants = hubs.tenantsOn?.(id).toSorted() ?? [];
    if (tenants.length === 0) return undefined;
    const more = tenants.length > NAMED ? ` and ${tenants.length - NAMED} more` : '';
    const named = tenants.slice(0, NAMED).join(', ') + more;
    return `hub '${id}' still holds Tenants and Namespaces of ${named}; \`ledgerctl hubs remove ${id} --force\` removes them first`;
  };

const refuseClearText = (document: JsonObject): void => {
  const wrong = clearTextRejection(objectAt(document, 'spec'));
  if (wrong !== undefined) throw refused(wrong);
};

const refuseOtherCluster = async (
  { id, tenant, after, secrets: changed }: Change,
  { runner, secrets, identify }: HubRevisionServices,
): Promise<void> => {
  const ref = changed[KUBECONFIG_PATH];
  if (ref === undefined || ref === null || identify === undefined) return;
  const { state } = await runner.load(aggregateOf(hub), id);
  const expected = acceptedCluster(after) ?? expectedCluster(state);
  if (expected === undefined) return;
  const kubeconfig = await secrets.reveal(ref, ref.tenant ?? tenant);
  if (kubeconfig === undefined) return;
  const namespace = stringAt(objectAt(after, 'spec'), 'namespace');
  const seen = await identify({ id, namespace, tenant }, kubeconfig);
  if (seen === undefined || seen === expected) return;
  throw refused(
    reject('failed-precondition', 'DIFFERENT_CLUSTER', differentCluster(expected, seen).message, {
      field: KUBECONFIG_PATH,
    }),
  );
};
