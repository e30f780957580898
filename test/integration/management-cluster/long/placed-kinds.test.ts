import { describePlacedKinds } from '../../../support/hubs/placed-suite.ts';
import { startKubeApiServer } from '../../../support/kube-apiserver/start.ts';

describePlacedKinds('the stand-in of an API server', async () => {
  const { url, ca, adminToken: token, call, close } = await startKubeApiServer();
  return { access: { url, ca, token }, call, close };
});
