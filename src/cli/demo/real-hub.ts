import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../../domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { HubCheckAnswer, HubDetails } from '../../http/ledger/hub-operations.ts';
import type { ApiClient } from '../api-client.ts';
import { checkOfDocument } from '../commands/hub-options.ts';
import { checkText } from '../commands/hub-text.ts';
import { ClaimFailed, type Narrator } from './narrator.ts';

const HUBS = '/api/ledger/v1/hubs';
const GROUP = { group: 'osac.openshift.io', version: 'v1alpha1', plural: 'clusterorders' } as const;
const UUID_LABEL = 'osac.openshift.io/clusterorder-uuid';
const LOOK_MS = 100;

export type OrderOnHub = { readonly cluster: string; readonly name: string; readonly namespace: string };

/** Checks and registers the hub, and waits until orders are placed on it. */
export const registerHub = async (
  narrator: Narrator,
  admin: ApiClient,
  document: JsonObject,
  patienceMs: number,
): Promise<void> => {
  const id = stringAt(document, 'id');
  const check = await admin.send<HubCheckAnswer>('POST', `${HUBS}/check`, checkOfDocument(document));
  narrator.check(
    'the hub can be reached with that kubeconfig and has what orders need',
    check.ok,
    check.ok ? (check.version ?? '') : checkText(check),
  );
  await admin.send('POST', '/api/private/v1/hubs', document);
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const { health, message = '' } = await admin.get<HubDetails>(`${HUBS}/${id}`);
    if (health === 'ok') break;
    if (performance.now() > deadline) throw new ClaimFailed(`hub ${id} is ${health}: ${message}`);
    await pause(LOOK_MS);
  }
  narrator.say(`hub ${id} is registered and takes orders; from now on the simulated ones do not`);
};

/**
 * Orders that the hub holds for these clusters, read from it through the kubeconfig itself, past everything of the
 * service: with a namespace per tenant wherever they are, else in the hub's namespace.
 */
export const ordersOnHub = async (
  document: JsonObject,
  clusters: readonly string[],
): Promise<readonly OrderOnHub[]> => {
  const spec = objectAt(document, 'spec');
  // Loading it takes half a second, which the other demo does not need.
  const { CustomObjectsApi, KubeConfig } = await import('@kubernetes/client-node');
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromString(Buffer.from(stringAt(spec, 'kubeconfig'), 'base64').toString('utf8'));
  const api = kubeconfig.makeApiClient(CustomObjectsApi);
  const labelSelector = `${UUID_LABEL} in (${clusters.join(',')})`;
  const list = (await (spec['tenant_namespaces'] === true
    ? api.listCustomObjectForAllNamespaces({
        group: GROUP.group,
        version: GROUP.version,
        resourcePlural: GROUP.plural,
        labelSelector,
      })
    : api.listNamespacedCustomObject({
        ...GROUP,
        namespace: stringAt(spec, 'namespace'),
        labelSelector,
      }))) as JsonObject;
  return listAt(list, 'items')
    .filter(isObject)
    .map((order) => {
      const metadata = objectAt(order, 'metadata');
      return {
        cluster: stringAt(objectAt(metadata, 'labels'), UUID_LABEL),
        name: stringAt(metadata, 'name'),
        namespace: stringAt(metadata, 'namespace'),
      };
    });
};
