import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { installDefinitions } from '../../ops/real/kube-apiserver/play.ts';
import { startKubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import { rulebookEnvironment } from '../../ops/real/rulebook/environment.ts';
import { startRealRulebook, type RealRulebook } from '../../ops/real/rulebook/server.ts';
import { createAutomations } from '../../src/adapters/automation/automations.ts';
import { systemClock, systemTimers } from '../../src/adapters/system/system-ports.ts';
import { createAutomationEffects, type TriggerArgs } from '../../src/app/automation/automation-effects.ts';
import type { HubRegistry, RegisteredHub } from '../../src/app/hubs/hub-registry.ts';
import type { ManagementCluster } from '../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER, HOSTED_CLUSTER } from '../../src/domain/clusters/hub-objects.ts';
import type { ObjectPlace } from '../../src/domain/hubs/hub-object.ts';
import type { EffectCall, EffectPort } from '../../src/app/process-runner/types.ts';
import { hubFacts } from '../../src/domain/hubs/hub-facts.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { callBy, HMAC_SECRET, PULL_SECRET, secretStore, TOKEN } from '../integration/automation/contract.ts';
import { effectCall } from '../support/hubs/hub-fixture.ts';
import { startKubeApiServer } from '../support/kube-apiserver/start.ts';
import { kubeClient, type KubeAccess } from '../support/kube-apiserver/client.ts';
import { kubernetesHub } from '../support/hubs/kubernetes-hub.ts';
import { eventually } from '../support/eventually.ts';
import { notRunHere, obtained } from '../support/not-run-here.ts';

/**
 * A hub without an operator from end to end: our effects post an order to the real ansible-rulebook with our rulebook,
 * and its playbooks write to an API server what our adapter then sees. On the stand-in everywhere, and on the real
 * kube-apiserver where it can be built.
 */
const HUB = 'hub-a';
const INFRASTRUCTURE = 'osac.openshift.io/infrastructure';
const PLAYBOOK_MS = 60_000;
const PLAYBOOKS = new URL('../../ops/real/rulebook/playbooks/', import.meta.url).pathname;

type Server = {
  readonly access: KubeAccess;
  readonly kubeconfig: string;
  readonly close: () => Promise<void>;
};

const standIn = async (): Promise<Server> => {
  const server = await startKubeApiServer();
  return {
    access: { url: server.url, ca: server.ca, token: server.adminToken },
    kubeconfig: server.kubeconfig(),
    close: () => server.close(),
  };
};
const real = async (path: string): Promise<Server> => {
  const servers = await startKubeServers(path);
  const access = { url: servers.url, ca: servers.ca, token: servers.adminToken };
  const admin = kubeClient(access);
  await installDefinitions(admin);
  admin.close();
  return { access, kubeconfig: servers.kubeconfig(), close: () => servers.close() };
};

const describeOn = (name: string, start: () => Promise<Server | { readonly missing: string }>): void => {
  describe(`the real ansible-rulebook and ${name}`, function () {
    this.timeout(240_000);
    const closing: (() => Promise<void> | void)[] = [];
    let cluster: ManagementCluster;
    let port: EffectPort;
    let rulebook: RealRulebook;
    const place: ObjectPlace & { clusterId: string } = {
      namespace: 'orders',
      name: 'order-abcdefghij',
      clusterId: 'id-of-order',
    };

    before(async function () {
      const server = await start();
      if ('missing' in server) return notRunHere(this, 'kube-apiserver', server.missing);
      closing.push(server.close);
      const admin = kubeClient(server.access);
      await admin.post('/api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: place.namespace },
      });
      admin.close();
      const fixture = kubernetesHub({ kubeconfigs: { '1': server.kubeconfig }, namespace: place.namespace });
      cluster = fixture.hub;
      closing.push(() => fixture.hub.close());
      const folder = mkdtempSync(join(tmpdir(), 'ledger-hub-ca-'));
      closing.push(() => rmSync(folder, { recursive: true, force: true }));
      const authority = join(folder, 'ca.pem');
      writeFileSync(authority, server.access.ca);
      rulebook = await startRealRulebook({
        environment: obtained(this, 'rulebook', rulebookEnvironment),
        token: TOKEN,
        hmacSecret: HMAC_SECRET,
        playbooks: {
          create: `${PLAYBOOKS}hub-create-hosted-cluster.yml`,
          delete: `${PLAYBOOKS}hub-delete-hosted-cluster.yml`,
        },
        env: {
          HUB_URL: server.access.url,
          HUB_TOKEN: server.access.token ?? '',
          HUB_CA_FILE: authority,
        },
      });
      closing.push(rulebook.close);
      port = portOf(rulebook.url);
    });
    after(async () => {
      for (const close of closing.toReversed()) await close();
    });

    const portOf = (url: string): EffectPort => {
      const refTo = (id: string) => ({ id, version: 'v1', kind: 'secret-data', fingerprint: 'f' }) as const;
      const hub = {
        facts: hubFacts({
          id: HUB,
          document: { spec: { namespace: place.namespace, endpoints: { eda: url } } },
        }),
        adapter: cluster,
        automation: { token: refTo(TOKEN), hmacSecret: refTo(HMAC_SECRET) },
        tenant: 'shared',
      } as unknown as RegisteredHub;
      const registry: Pick<HubRegistry, 'ready' | 'get'> = { ready: async () => undefined, get: () => hub };
      return createAutomationEffects({
        registry,
        automations: createAutomations({ secrets: secretStore }),
        clock: systemClock(),
        timers: systemTimers(),
        // What got lost is asked for again after a moment, not after a minute.
        settings: { requestDeadlineMs: 100, queuedGraceMs: 100 },
      });
    };
    const trigger = (
      args: Partial<TriggerArgs> = {},
      call: EffectCall = effectCall({ deadlineMs: 60_000 }),
    ) =>
      port(
        'trigger',
        { hub: HUB, mode: 'eda', purpose: 'provision', place, ...args } as unknown as JsonObject,
        call,
      );
    const order = () => cluster.get(CLUSTER_ORDER, place, callBy());
    const hosted = () =>
      cluster.get(
        HOSTED_CLUSTER,
        { namespace: `${place.namespace}-${place.name}`, name: place.name },
        callBy(),
      );
    /** With what the playbooks said, when it does not come. */
    const until = async (what: string, condition: () => Promise<boolean>): Promise<void> => {
      try {
        await eventually(what, condition, PLAYBOOK_MS);
      } catch (error) {
        throw new Error(`${what}:\n${rulebook.output().slice(-3_000)}`, { cause: error });
      }
    };
    /** A playbook still at work would undo what the next one does: the deletion takes no lock. */
    const playbooksEnded = (count: number): Promise<void> =>
      until(
        `${count} playbooks have ended`,
        async () => rulebook.output().split('PLAY RECAP').length > count,
      );
    const POSTED = { outcome: 'done', result: { queued: true, did: 'posted' } };

    it('builds what was ordered', async () => {
      await cluster.create(
        CLUSTER_ORDER,
        {
          ...place,
          labels: { 'osac.openshift.io/clusterorder-uuid': place.clusterId },
          annotations: { 'osac.openshift.io/tenant': 'acme' },
          spec: {
            templateID: 'osac.templates.ocp_small',
            templateParameters: '{}',
            nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
            pullSecret: PULL_SECRET,
          },
        },
        callBy(),
      );
      await cluster.controller?.prepare(CLUSTER_ORDER, place, callBy());
      expect(await trigger()).to.deep.equal(POSTED);
      await playbooksEnded(1);
      const built = await order();
      expect(built?.finalizers, rulebook.output()).to.include(INFRASTRUCTURE);
      expect(built?.annotations).to.include.keys('osac.openshift.io/ansible-workflow-time');
      expect(await hosted()).to.have.nested.property('nodePools[0].desired', 2);
    });

    it('does not ask again for what is there', async () => {
      const again = await trigger({}, effectCall({ attempt: 2, mode: 'observe', deadlineMs: 60_000 }));
      expect(again).to.have.nested.property('result.did', 'observed');
    });

    it('scales, and changes nothing when that is asked for twice', async () => {
      const nodeRequests = [{ resourceClass: 'fc430', numberOfNodes: 3 }];
      await cluster.patch(CLUSTER_ORDER, place, { nodeRequests }, callBy());
      const observing = effectCall({ attempt: 2, mode: 'observe', deadlineMs: 60_000 });
      expect(await trigger({ again: 'nodes' }, observing)).to.deep.equal(POSTED);
      await playbooksEnded(2);
      expect(await trigger({ again: 'nodes' })).to.deep.equal(POSTED);
      await playbooksEnded(3);
      expect((await hosted())?.nodePools?.map(({ desired }) => desired)).to.deep.equal([3]);
      expect(await trigger({ again: 'nodes' }, observing)).to.have.nested.property('result.did', 'observed');
    });

    it('removes it, and has nothing to ask for after that', async () => {
      expect(await trigger({ purpose: 'deprovision' })).to.deep.equal(POSTED);
      await playbooksEnded(4);
      expect((await order())?.finalizers, rulebook.output()).not.to.include(INFRASTRUCTURE);
      expect(await hosted()).to.equal(undefined);
      const observing = effectCall({ attempt: 2, mode: 'observe', deadlineMs: 60_000 });
      const again = await trigger({ purpose: 'deprovision' }, observing);
      expect(again).to.have.nested.property('result.evidence', 'the infrastructure finalizer is off');
    });
  });
};

describeOn('the stand-in of an API server', standIn);
const binary = kubeBinary((line) => console.log(`  ${line}`));
describeOn('the real kube-apiserver', async () => ('missing' in binary ? binary : real(binary.path)));
