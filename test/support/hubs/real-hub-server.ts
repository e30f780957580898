import { installDefinitions } from '../../../ops/real/kube-apiserver/play.ts';
import { startKubeServers } from '../../../ops/real/kube-apiserver/servers.ts';
import type { HubServer } from './served-hub.ts';
import { kubeClient } from '../kube-apiserver/client.ts';

/** A real kube-apiserver with the definitions of ops/crds, as tests reach it. `path`: of its program. */
export const realHubServer = async (path: string): Promise<HubServer> => {
  const servers = await startKubeServers(path);
  const access = { url: servers.url, ca: servers.ca, token: servers.adminToken };
  const admin = kubeClient(access);
  await installDefinitions(admin);
  const close = async (): Promise<void> => {
    admin.close();
    await servers.close();
  };
  return { access, call: admin.call, close };
};
