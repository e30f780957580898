import { expect } from 'chai';
import {
  createWorkerChannel,
  type HubChannel,
} from '../../../src/adapters/management-cluster/kubernetes/channel.ts';
import { hubsUnderTest } from '../../support/hubs/hub-under-test.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { recordingLogger } from '../../support/hubs/kubernetes-hub.ts';
import { describeDeclaredKindContract } from './contract-kinds.ts';
import { describeManagementClusterContract } from './contract.ts';

/** The contract on the stand-in, with exactly the rights of ops/rbac/hub-access.yaml. */
const suite = (name: string, inWorker: boolean): void => {
  let server: KubeApiServer;
  let channel: HubChannel | undefined;

  const underTest = hubsUnderTest('hub', () => ({
    access: { url: server.url, ca: server.ca, token: server.adminToken },
    ...(channel === undefined ? {} : { channel }),
    patienceMs: 60_000,
    faults: {
      loseNextCreate: (user) => void server.faults.next({ user, verb: 'create' }, { kind: 'lost-answer' }),
      hang: (user) => void server.faults.always({ user }, { kind: 'hang' }),
      clear: server.faults.clear,
      pause: server.pause,
      resume: server.resume,
    },
  }));

  describe(`Kubernetes adapter ${name}`, () => {
    before(async function () {
      this.timeout(20_000);
      server = await startKubeApiServer();
      channel = inWorker ? createWorkerChannel({ logger: recordingLogger() }) : undefined;
    });
    after(async () => {
      await channel?.close();
      await server.close();
    });

    describeManagementClusterContract(name, underTest);
    if (!inWorker) describeDeclaredKindContract(name, underTest, 'kept');

    describe(`rights of the adapter ${name}`, () => {
      it('those of hub-access.yaml are enough for everything above', () => {
        const calls = server
          .audit()
          .filter(({ user, path }) => user.includes(':hub-access') && !path.includes('/namespaces/nope/'));
        expect(calls.length).to.be.greaterThan(100);
        expect(calls.filter(({ code }) => code === 403)).to.deep.equal([]);
      });
    });
  });
};

suite('in a worker thread', true);
suite('in the same thread', false);
