import { startKubeApiServer } from '../../support/kube-apiserver/start.ts';
import { describeNetworksOnAHub } from '../../support/hubs/network-suite.ts';

describeNetworksOnAHub('the stand-in of an API server', async () => {
  const { url, ca, adminToken: token, call, close } = await startKubeApiServer();
  return { access: { url, ca, token }, call, close };
});
