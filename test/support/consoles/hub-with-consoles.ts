import { kubeconfigOf } from '../kube-apiserver/kubeconfig.ts';
import { grantHubAccess } from '../hubs/kubernetes-hub.ts';
import { ok } from '../hubs/network-story.ts';
import { NS, playOperator } from '../hubs/placed-suite.ts';
import type { HubServer } from '../hubs/served-hub.ts';
import { eventually } from '../eventually.ts';
import { PRIVATE, textAt, type Caller } from '../http/service.ts';

/**
 * Makes the one hub of a service of this API server, with the generated rights, and plays an operator there whose
 * machines run at once. Gives back what ends the operator.
 */
export const registerPlayedHub = async (admin: Caller, server: HubServer): Promise<() => Promise<void>> => {
  const token = await grantHubAccess(server.call, NS);
  const kubeconfig = Buffer.from(kubeconfigOf({ ...server.access, credentials: { token } }));
  const spec = { namespace: NS, kubeconfig: kubeconfig.toString('base64') };
  ok(await admin('POST', `${PRIVATE}/hubs`, { id: 'munich', metadata: { name: 'munich' }, spec }));
  await eventually('the hub was looked at', async () => {
    const { json } = await admin('GET', '/api/ledger/v1/hubs/munich');
    return textAt(json, 'health') === 'ok';
  });
  return playOperator(server);
};
