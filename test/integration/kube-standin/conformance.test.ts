import {
  loadDefinitions,
  startKubeApiServer,
  type KubeApiServer,
} from '../../support/kube-apiserver/start.ts';
import {
  KUBE_BEHAVIOURS,
  conformanceContext,
  type ConformanceContext,
} from '../../support/kube-conformance/behaviours.ts';

describe('the stand-in behaves like a Kubernetes API server', () => {
  let server: KubeApiServer;
  let context: ConformanceContext;
  before(async () => {
    server = await startKubeApiServer({ crds: [] });
    const access = { url: server.url, ca: server.ca, token: server.adminToken };
    context = await conformanceContext(access, loadDefinitions());
  });
  after(async () => {
    await context.close();
    await server.close();
  });

  for (const { name, check } of KUBE_BEHAVIOURS) it(name, () => check(context));
});
