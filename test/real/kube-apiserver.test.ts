import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { installDefinitions } from '../../ops/real/kube-apiserver/play.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import {
  createWorkerChannel,
  type HubChannel,
} from '../../src/adapters/management-cluster/kubernetes/channel.ts';
import { describeDeclaredKindContract } from '../integration/management-cluster/contract-kinds.ts';
import { describeManagementClusterContract } from '../integration/management-cluster/contract.ts';
import { hubsUnderTest } from '../support/hubs/hub-under-test.ts';
import { loadDefinitions } from '../support/kube-apiserver/start.ts';
import { kubeClient, type KubeAccess, type KubeClient } from '../support/kube-apiserver/client.ts';
import {
  KUBE_BEHAVIOURS,
  conformanceContext,
  type ConformanceContext,
} from '../support/kube-conformance/behaviours.ts';
import { startKubeFaultProxy, type KubeFaultProxy } from '../support/kube-apiserver/fault-proxy.ts';
import { recordingLogger } from '../support/hubs/kubernetes-hub.ts';
import { notRunHere } from '../support/not-run-here.ts';

/**
 * What the stand-in is believed for, on a real kube-apiserver with etcd and controllers (ops/real/kube-apiserver): its
 * own list of behaviours, and the adapter's contract with exactly the rights of ops/rbac/hub-access.yaml. The first run
 * on a machine builds the server; where that cannot be done the pipeline's last line says so.
 */
const binary = kubeBinary((line) => console.log(`  ${line}`));

describe('a real kube-apiserver', function () {
  this.timeout(120_000);
  let servers: KubeServers;
  let access: KubeAccess;
  let admin: KubeClient;

  before(async function () {
    if ('missing' in binary) return notRunHere(this, 'kube-apiserver', binary.missing);
    servers = await startKubeServers(binary.path);
    access = { url: servers.url, ca: servers.ca, token: servers.adminToken };
    admin = kubeClient(access);
    await installDefinitions(admin);
  });
  after(async () => {
    admin?.close();
    await servers?.close();
  });

  describe('behaves as the stand-in does', () => {
    let context: ConformanceContext;
    before(async () => {
      context = await conformanceContext(access, loadDefinitions());
    });
    after(() => context.close());
    for (const { name, check } of KUBE_BEHAVIOURS) it(name, () => check(context));
  });

  describe('under the adapter', () => {
    let channel: HubChannel;
    let proxy: KubeFaultProxy;

    before(async () => {
      channel = createWorkerChannel({ logger: recordingLogger() });
      proxy = await startKubeFaultProxy(access);
    });
    after(async () => {
      await channel?.close();
      await proxy?.close();
    });

    const proxyFaults = () => ({
      loseNextCreate: proxy.loseNextCreate,
      hang: proxy.hang,
      clear: proxy.clear,
      pause: proxy.pause,
      resume: proxy.resume,
    });
    const underTest = hubsUnderTest(`hub-${randomUUID().slice(0, 4)}`, () => ({
      access,
      through: proxy,
      channel,
      patienceMs: 30_000,
      faults: proxyFaults(),
    }));

    describeManagementClusterContract('on a real API server', underTest);

    const withPools = hubsUnderTest(`pool-${randomUUID().slice(0, 4)}`, () => ({
      access,
      through: proxy,
      patienceMs: 30_000,
      faults: proxyFaults(),
    }));
    describeDeclaredKindContract('on a real API server', withPools, 'kept');

    // In a suite of its own: what stands beside suites runs before them.
    describe('in all of that', () => {
      it('asks for nothing that the rights of OSAC do not grant', () => {
        const refused = proxy
          .seen()
          .filter(({ code, path }) => code === 403 && !path.includes('/namespaces/nope/'));
        expect(proxy.seen().length).to.be.greaterThan(100);
        expect(refused).to.deep.equal([]);
      });
    });
  });
});
