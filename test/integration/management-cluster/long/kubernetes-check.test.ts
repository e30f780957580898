import { expect } from 'chai';
import type { CallOptions, HubReport } from '../../../../src/app/hubs/management-cluster.ts';
import { createAuthority } from '../../../support/kube-apiserver/access/certificates.ts';
import {
  loadDefinitions,
  startKubeApiServer,
  type KubeApiServer,
  type KubeApiServerOptions,
} from '../../../support/kube-apiserver/start.ts';
import type { JsonObject } from '../../../support/kube-apiserver/types.ts';
import { hubAccessOf, kubernetesHub, rbacOf } from '../../../support/hubs/kubernetes-hub.ts';

const NS = 'osac-hub';
const USER = hubAccessOf(NS);

describe('check of a Kubernetes hub', function () {
  this.timeout(20_000);
  const servers: KubeApiServer[] = [];
  const start = async (options: KubeApiServerOptions = {}): Promise<KubeApiServer> => {
    const server = await startKubeApiServer({
      namespaces: [NS],
      objects: rbacOf('hub-access', NS),
      ...options,
    });
    servers.push(server);
    return server;
  };
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close();
  });
  const by = (deadlineMs = 60_000): CallOptions => ({
    effectId: 'check',
    deadlineMs,
    signal: new AbortController().signal,
  });
  const checkOf = async (
    kubeconfig: string,
    connection: Parameters<typeof kubernetesHub>[0]['connection'] = {},
    deadlineMs?: number,
  ): Promise<HubReport> => {
    const { clusters, hub } = kubernetesHub({ kubeconfigs: { '1': kubeconfig }, namespace: NS, connection });
    try {
      return await hub.check(by(deadlineMs));
    } finally {
      await clusters.close();
    }
  };
  const codes = ({ problems }: HubReport): string[] =>
    problems.map(({ code, subject }) => `${code}${subject === undefined ? '' : ` ${subject}`}`);
  const withRights = (server: KubeApiServer): string => server.kubeconfig({ token: server.tokenFor(USER) });

  it('finds nothing wrong with the stock rights, and says what they do not show', async () => {
    const report = await checkOf(withRights(await start()));
    expect(report).to.deep.include({ problems: [], canReadNodePools: false, canReadAgents: false });
    expect(report.version).to.equal('v1.36.3');
    expect(Math.abs(report.clockSkewMs ?? Number.NaN)).to.be.lessThan(60_000);
  });

  it('is shown node pools and hosts with the recommended rights of a hub that an operator looks after', async () => {
    const server = await start();
    for (const object of rbacOf('node-counts', NS)) server.seed(object);
    expect(await checkOf(withRights(server))).to.deep.include({
      problems: [],
      canReadNodePools: true,
      canReadAgents: true,
    });
  });

  it('accepts a client certificate as well as a token', async () => {
    const server = await start();
    const pair = await server.certificateFor(USER);
    expect(await checkOf(server.kubeconfig(pair))).to.deep.include({ problems: [] });
  });

  it('names a kubeconfig that is refused, without connecting', async () => {
    const server = await start();
    const exec = 'users: [{name: u, user: {exec: {command: aws}}}]';
    const contexts = 'contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x';
    const report = await checkOf(
      `clusters: [{name: c, cluster: {server: "${server.url}"}}]\n${exec}\n${contexts}`,
    );
    expect(codes(report)).to.deep.equal(['InvalidKubeconfig kubeconfig']);
    expect(report.problems[0]?.message).to.include('exec plugin');
    expect(server.audit()).to.have.length(0);
  });

  it('names an authority that did not sign the server, and an address where nobody is', async () => {
    const server = await start();
    const other = await createAuthority('127.0.0.1');
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const access = JSON.stringify({
      clusters: [
        { name: 'c', cluster: { server: server.url, 'certificate-authority-data': base64(other.ca) } },
      ],
      users: [{ name: 'u', user: { token: server.tokenFor(USER) } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    });
    const report = await checkOf(access);
    expect(codes(report)).to.deep.equal(['Unreachable TLS']);
    expect(report.problems[0]?.message).to.include('certificate-authority-data');
    await server.pause();
    expect(codes(await checkOf(withRights(server)))).to.deep.equal(['Unreachable']);
    await server.resume();
    server.faults.always({}, { kind: 'hang' });
    const hung = await checkOf(withRights(server), {}, 200);
    expect(hung.problems[0]?.message).to.include('deadline');
  });

  it('names credentials that have ended, also those that were revoked meanwhile', async () => {
    const server = await start();
    const ended = server.tokenFor(USER, -1);
    expect(codes(await checkOf(server.kubeconfig({ token: ended })))).to.deep.equal(['CredentialsRefused']);
    const token = server.tokenFor(USER);
    const { clusters, hub } = kubernetesHub({
      kubeconfigs: { '1': server.kubeconfig({ token }) },
      namespace: NS,
    });
    expect((await hub.check(by())).problems).to.deep.equal([]);
    server.revoke(token);
    const report = await hub.check(by());
    expect(codes(report)).to.deep.equal(['CredentialsRefused']);
    expect(JSON.stringify(report)).to.not.include(token);
    await clusters.close();
  });

  it('names a version that is too old, and what is no API server', async () => {
    const old = await start({ version: 'v1.26.9' });
    expect(codes(await checkOf(withRights(old)))).to.deep.equal(['VersionTooOld']);
    const server = await start();
    const address = new URL(server.url).host;
    const noApi = (status: number): string =>
      `${address}: something answers /version there (HTTP ${status}), but not as a Kubernetes API server does; ` +
      "look at the field 'server' of the kubeconfig (host, port, path) and at proxies or load balancers on the way";
    for (const answer of [
      { code: 200, text: '<html>login</html>' },
      { code: 200, text: '{"ok":true}' },
      { code: 200, text: 'null' },
      { code: 404, text: '{"code":5,"message":"Not Found"}' },
      { code: 403, text: 'go away' },
      { code: 302, text: '' },
      { code: 502, text: '<html>bad gateway</html>' },
    ]) {
      server.faults.always({}, { kind: 'answer', ...answer });
      const { problems } = await checkOf(withRights(server));
      expect(problems, answer.text).to.deep.equal([{ code: 'Unreachable', message: noApi(answer.code) }]);
      server.faults.clear();
    }
    server.faults.always({}, { kind: 'answer', code: 503 });
    expect((await checkOf(withRights(server))).problems[0]?.message).to.match(
      new RegExp(`^${address}: get version: `),
    );
  });

  it('names the path of an API server behind another one', async () => {
    const server = await start();
    server.faults.always({}, { kind: 'answer', code: 404, text: 'no such cluster' });
    const access = withRights(server).replace(server.url, `${server.url}/k8s/clusters/c-1/`);
    expect((await checkOf(access)).problems[0]?.message).to.contain(
      'something answers /k8s/clusters/c-1/version there (HTTP 404)',
    );
  });

  it('names a namespace that is missing once, without the rights that nobody can have there', async () => {
    const server = await start();
    const report = await checkOf(withRights(server), { namespace: 'elsewhere' });
    expect(codes(report)).to.deep.equal(['NamespaceMissing elsewhere']);
    const both = await checkOf(withRights(server), { otherNamespaces: ['elsewhere'], controller: 'ledger' });
    expect(codes(both).join())
      .to.match(/NamespaceMissing elsewhere/)
      .and.not.match(/in namespace elsewhere/);
    expect(codes(both)).to.include('RightMissing create serviceaccounts in every namespace');
  });

  it('names each right that is not there', async () => {
    const server = await start({ namespaces: [NS, 'acme-orders'] });
    expect(codes(await checkOf(withRights(server), { namespace: 'acme-orders' })).toSorted()).to.deep.equal(
      [
        ...['create', 'delete', 'get', 'list', 'patch', 'watch'].map(
          (verb) => `${verb} clusterorders.osac.openshift.io`,
        ),
        // The mark of the deployment that drives the hub.
        'create leases.coordination.k8s.io',
        ...['get', 'update'].map((verb) => `${verb} leases.coordination.k8s.io fulfillment-ledger`),
      ]
        .map((right) => `RightMissing ${right} in namespace acme-orders`)
        .toSorted(),
    );
    const nobody = server.kubeconfig({ token: server.tokenFor({ name: 'nobody', groups: [] }) });
    const subjects = codes(await checkOf(nobody));
    expect(subjects).to.include('RightMissing get hostedclusters.hypershift.openshift.io in every namespace');
    expect(subjects).to.include('RightMissing get secrets in every namespace');
  });

  it('names the wider rights that other settings of the hub need, and is content once they are granted', async () => {
    const server = await start();
    const wide = { controller: 'ledger', tenantNamespaces: true } as const;
    const subjects = codes(await checkOf(withRights(server), wide));
    expect(subjects).to.include('RightMissing create clusterorders.osac.openshift.io in every namespace');
    expect(subjects).to.include(
      'RightMissing create rolebindings.rbac.authorization.k8s.io in every namespace',
    );
    for (const file of ['controller-ledger', 'tenant-namespaces'] as const)
      for (const object of rbacOf(file, NS)) server.seed(object);
    expect(await checkOf(withRights(server), wide)).to.deep.include({
      problems: [],
      canReadNodePools: true,
      canReadAgents: true,
    });
  });

  it('asks for the right to write status wherever orders are: in every namespace with namespaces of tenants', async () => {
    const server = await start();
    for (const object of rbacOf('controller-ledger', NS)) server.seed(object);
    const everywhere = rbacOf('tenant-namespaces', NS);
    // Everything but status: the role that is bound everywhere is not the one with it.
    const withoutStatus = rbacOf('hub-access', NS)
      .filter(
        ({ kind, metadata }) =>
          kind === 'ClusterRole' && (metadata as JsonObject)['name'] === `${NS}-hub-access`,
      )
      .map((role) => ({
        ...role,
        metadata: { name: 'no-status' },
        rules: (role['rules'] as JsonObject[]).filter(
          ({ resources }) => !(resources as string[]).includes('clusterorders/status'),
        ),
      }));
    for (const object of withoutStatus) server.seed(object);
    for (const binding of everywhere)
      server.seed({ ...binding, roleRef: { ...(binding['roleRef'] as JsonObject), name: 'no-status' } });
    const wide = { controller: 'ledger', tenantNamespaces: true } as const;
    expect(codes(await checkOf(withRights(server), wide))).to.deep.equal(
      ['get', 'patch'].map(
        (verb) => `RightMissing ${verb} clusterorders/status.osac.openshift.io in every namespace`,
      ),
    );
    expect(codes(await checkOf(withRights(server), { controller: 'ledger' }))).to.deep.equal([]);
  });

  it('asks for namespaces of single tenants as for the hub’s own', async () => {
    const server = await start({ namespaces: [NS, 'acme-orders'] });
    const missing = codes(await checkOf(withRights(server), { otherNamespaces: ['globex-orders'] }));
    expect(missing).to.deep.equal(['NamespaceMissing globex-orders']);
    const found = codes(await checkOf(withRights(server), { otherNamespaces: ['acme-orders'] }));
    expect(found).to.include('RightMissing create clusterorders.osac.openshift.io in namespace acme-orders');
    expect(found.join()).to.not.include(`in namespace ${NS}`);
    const ledger = { controller: 'ledger', otherNamespaces: ['acme-orders'] } as const;
    expect(codes(await checkOf(withRights(server), ledger))).to.include(
      'RightMissing patch clusterorders/status.osac.openshift.io in namespace acme-orders',
    );
  });

  it('names a role that may not be bound: without it each order would park the hub', async () => {
    const server = await start();
    const withoutBind = rbacOf('controller-ledger', NS).map(
      (object) =>
        JSON.parse(JSON.stringify(object), (_key, value: unknown) =>
          Array.isArray(value) ? value.filter((one) => one !== 'bind') : value,
        ) as JsonObject,
    );
    for (const object of withoutBind) server.seed(object);
    const roles = ['admin', `${NS}-hub-access-hosted-clusters`];
    expect(codes(await checkOf(withRights(server), { controller: 'ledger' }))).to.deep.equal(
      roles.map((role) => `RightMissing bind clusterroles.rbac.authorization.k8s.io ${role}`),
    );
  });

  it('names CRDs that are missing, and a field that an old one does not have', async () => {
    const without = (plural: string) => (crd: JsonObject) =>
      (crd['metadata'] as JsonObject)['name'] !== `${plural}.hypershift.openshift.io`;
    const noHyperShift = await start({ crds: loadDefinitions().filter(without('hostedclusters')) });
    expect(codes(await checkOf(withRights(noHyperShift)))).to.deep.equal([
      'CrdMissing hostedclusters.hypershift.openshift.io',
    ]);
    const old = loadDefinitions().map(
      (crd) =>
        JSON.parse(JSON.stringify(crd), (key: string, value: unknown) =>
          key === 'sshPublicKey' ? undefined : value,
        ) as JsonObject,
    );
    const report = await checkOf(withRights(await start({ crds: old })));
    expect(codes(report)).to.deep.equal(['CrdMissing clusterorders.osac.openshift.io spec.sshPublicKey']);
    expect(codes(await checkOf(withRights(await start({ crds: [] })))).toSorted()).to.deep.equal([
      'CrdMissing clusterorders.osac.openshift.io',
      'CrdMissing hostedclusters.hypershift.openshift.io',
    ]);
  });

  it('is well without kinds that clusters do not need, and says what each of them lacks', async () => {
    const kinds = ({ lacking }: HubReport): string[] =>
      (lacking ?? []).map(({ kind, code, subject }) => `${kind} ${code} ${subject}`);
    expect(kinds(await checkOf(withRights(await start())))).to.deep.equal([]);
    const isOfIps = ({ metadata }: JsonObject): boolean =>
      (metadata as JsonObject)['name'] === 'externalips.osac.openshift.io';
    const rbac = JSON.parse(
      JSON.stringify(rbacOf('hub-access', NS)).replaceAll('"externalippools"', '"others"'),
    ) as JsonObject[];
    const server = await start({ crds: loadDefinitions().filter((crd) => !isOfIps(crd)), objects: rbac });
    const { clusters, hub } = kubernetesHub({ kubeconfigs: { '1': withRights(server) }, namespace: NS });
    const report = await hub.check(by());
    expect(report.problems).to.deep.equal([]);
    expect(kinds(report)).to.deep.equal([
      `ExternalIPPool RightMissing create externalippools.osac.openshift.io in namespace ${NS}`,
      'ExternalIP CrdMissing externalips.osac.openshift.io',
    ]);
    const asked = (): number =>
      server.audit().filter(({ resource }) => resource === 'selfsubjectaccessreviews').length;
    const before = asked();
    await hub.check(by());
    const again = asked() - before;
    for (const crd of loadDefinitions()) server.seed(crd);
    for (const object of rbacOf('hub-access', NS)) server.seed(object);
    expect(kinds(await hub.check({ ...by(), thorough: true }))).to.deep.equal([]);
    expect(again, 'rights to these kinds are remembered').to.be.lessThan(before);
    await clusters.close();
  });

  it('carries nothing but clusters where no operator runs', async () => {
    const server = await start();
    for (const object of rbacOf('controller-ledger', NS)) server.seed(object);
    const { problems, lacking = [] } = await checkOf(withRights(server), { controller: 'ledger' });
    expect(problems).to.deep.equal([]);
    const kinds = lacking.map(({ kind }) => kind);
    expect(kinds).to.include.members(['VirtualNetwork', 'Volume', 'ComputeInstance']);
    for (const carried of ['ClusterOrder', 'Tenant', 'UserDataSecret']) expect(kinds).to.not.include(carried);
    expect(lacking.find(({ kind }) => kind === 'Subnet')).to.deep.equal({
      kind: 'Subnet',
      code: 'NoOperator',
      message: 'no operator builds Subnet there: the ledger is the controller, of clusters alone',
    });
  });

  it('tries an order once per connection; later looks ask for rights, and again when they are asked to', async () => {
    const server = await start();
    const { clusters, hub } = kubernetesHub({ kubeconfigs: { '1': withRights(server) }, namespace: NS });
    const trials = (): number =>
      server.audit().filter(({ method, resource }) => method === 'POST' && resource === 'clusterorders')
        .length;
    for (let look = 0; look < 3; look += 1) expect((await hub.check(by())).problems).to.deep.equal([]);
    expect(trials()).to.equal(1);
    expect((await hub.check({ ...by(), thorough: true })).problems).to.deep.equal([]);
    expect(trials()).to.equal(2);
    await clusters.close();
  });

  it('tries the order again while the CRD drops a field, or the right to create it is missing', async () => {
    const definitions = loadDefinitions();
    const old = definitions.map(
      (crd) =>
        JSON.parse(JSON.stringify(crd), (key: string, value: unknown) =>
          key === 'sshPublicKey' ? undefined : value,
        ) as JsonObject,
    );
    const server = await start({ crds: old, objects: [] });
    const { clusters, hub } = kubernetesHub({ kubeconfigs: { '1': withRights(server) }, namespace: NS });
    const isRight = (code: string): boolean => code.startsWith('RightMissing');
    expect(codes(await hub.check(by())).every(isRight)).to.equal(true);
    for (const object of rbacOf('hub-access', NS)) server.seed(object);
    for (let look = 0; look < 2; look += 1)
      expect(codes(await hub.check(by()))).to.deep.equal([
        'CrdMissing clusterorders.osac.openshift.io spec.sshPublicKey',
      ]);
    for (const crd of definitions) server.seed(crd);
    expect(codes(await hub.check(by()))).to.deep.equal([]);
    await clusters.close();
  });

  it('measures a clock that is an hour off', async () => {
    const hour = 3_600_000;
    for (const clockSkewMs of [hour, -hour]) {
      const report = await checkOf(withRights(await start({ clockSkewMs })));
      expect(report.problems).to.deep.equal([]);
      expect(Math.abs((report.clockSkewMs ?? 0) - clockSkewMs)).to.be.lessThan(60_000);
    }
  });

  it('of a kubeconfig that is not in the secret store says so', async () => {
    const { clusters, hub } = kubernetesHub({ kubeconfigs: {}, namespace: NS });
    const report = await hub.check(by());
    expect(codes(report)).to.deep.equal(['InvalidKubeconfig']);
    expect(report.problems[0]?.message).to.include('secret store');
    await clusters.close();
  });

  it('a candidate is checked before it is registered', async () => {
    const server = await start();
    const { clusters } = kubernetesHub({ kubeconfigs: {}, namespace: NS });
    const connection = { id: 'new', namespace: NS, tenant: 'system', revision: 0 };
    const candidate = clusters.candidate(connection, Buffer.from(withRights(server)));
    expect((await candidate.check(by())).problems).to.deep.equal([]);
    await candidate.close();
    await clusters.close();
  });
});
