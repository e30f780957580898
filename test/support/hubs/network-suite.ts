import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { createWholeService } from '../service/whole-service.ts';
import type { HubServer } from './served-hub.ts';
import { eventually } from '../eventually.ts';
import { PRIVATE, textAt } from '../http/service.ts';
import { kubeApi } from '../kube-controllers/api.ts';
import { playTenants } from '../kube-controllers/tenants.ts';
import { kubeconfigOf } from '../kube-apiserver/kubeconfig.ts';
import { grantHubAccess } from './kubernetes-hub.ts';
import { startRulebook } from '../rulebook/rulebook-server.ts';
import { ipAt, IPS, networkStory, ok, POOLS, type NetworkStory } from './network-story.ts';

const NS = 'osac-hub';
const TOKEN = 'token-of-the-automation';
const API = `/apis/osac.openshift.io/v1alpha1/namespaces/${NS}`;
const MERGE = 'application/merge-patch+json';
const FINALIZER = 'osac.openshift.io/test-finalizer';
const LOOK_MS = 20;

const metadataOf = (object: JsonObject): JsonObject => objectAt(object, 'metadata');

/** Plays the operator of both kinds: it chooses addresses by `choose`. Returns how to stop it. */
const playOperator = ({ call }: HubServer, choose: (name: string) => string): (() => Promise<void>) => {
  let stopped = false;
  const tenants = playTenants(kubeApi(call), NS);
  const patch = (path: string, body: JsonObject) => call('PATCH', path, { body, type: MERGE });
  const tend = async (plural: string, object: JsonObject): Promise<void> => {
    const metadata = metadataOf(object);
    const name = stringAt(metadata, 'name');
    const path = `${API}/${plural}/${name}`;
    const finalizers = listAt(metadata, 'finalizers');
    if (stringAt(metadata, 'deletionTimestamp') !== '') {
      await patch(path, { metadata: { finalizers: [] } });
    } else if (!finalizers.includes(FINALIZER)) {
      await patch(path, { metadata: { finalizers: [FINALIZER] } });
    } else if (stringAt(objectAt(object, 'status'), 'phase') !== 'Ready') {
      const address = plural === 'externalips' ? { address: choose(name), state: 'Allocated' } : {};
      await patch(`${path}/status`, { status: { phase: 'Ready', ...address } });
    }
  };
  const run = async (): Promise<void> => {
    while (!stopped) {
      await tenants();
      for (const plural of ['externalippools', 'externalips']) {
        const { body } = await call('GET', `${API}/${plural}`);
        for (const object of listAt(body, 'items').filter(isObject)) await tend(plural, object);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  const running = run();
  return async () => {
    stopped = true;
    await running;
  };
};

/** Pools and external IPs on an API server, with an operator that chooses addresses, and without one. */
export const describeNetworksOnAHub = (name: string, start: () => Promise<HubServer>): void => {
  describe(`external IPs on ${name}`, function () {
    this.timeout(120_000);
    let server: HubServer;
    let people: NetworkStory;
    const stops: (() => Promise<void>)[] = [];
    const chosen = ['192.0.2.7', '192.0.2.7', '192.0.2.9'];

    const register = async (controller: 'operator' | 'ledger'): Promise<void> => {
      server = await start();
      stops.push(() => server.close());
      const more = controller === 'ledger' ? (['controller-ledger'] as const) : [];
      const token = await grantHubAccess(server.call, NS, more);
      const whole = await createWholeService();
      stops.push(() => whole.dispose());
      await whole.start();
      people = await networkStory(whole);
      const kubeconfig = Buffer.from(kubeconfigOf({ ...server.access, credentials: { token } }));
      const rulebook = await startRulebook({ token: TOKEN });
      stops.push(rulebook.close);
      // Without an operator somebody has to run the automation of clusters; nobody asks it here.
      const automated = {
        mode: 'eda',
        controller,
        endpoints: { eda: rulebook.url },
        automation: { token: TOKEN },
      };
      const spec = {
        namespace: NS,
        kubeconfig: kubeconfig.toString('base64'),
        ...(controller === 'ledger' ? automated : {}),
      };
      ok(await people.admin('POST', `${PRIVATE}/hubs`, { id: 'munich', metadata: { name: 'munich' }, spec }));
      await eventually('the hub was looked at', async () => {
        const { json } = await people.admin('GET', '/api/ledger/v1/hubs/munich');
        return textAt(json, 'health') === 'ok';
      });
    };
    const objects = async (plural: string): Promise<readonly JsonObject[]> =>
      listAt((await server.call('GET', `${API}/${plural}`)).body, 'items').filter(isObject);
    afterEach(async () => {
      for (const stop of stops.splice(0).toReversed()) await stop();
    });

    it('an operator chooses, what it shows is recorded, and what it shows twice is not believed', async () => {
      await register('operator');
      const given = new Map<string, string>();
      const choose = (of: string): string => {
        if (!given.has(of)) given.set(of, chosen[given.size] ?? '');
        return given.get(of) ?? '';
      };
      stops.push(playOperator(server, choose));
      const pool = await people.makePool('192.0.2.0/28');
      const first = await people.order(pool);
      expect(await people.shows(ipAt(first), 'ALLOCATED')).to.include({
        address: '192.0.2.7',
        hub: 'munich',
      });
      const [written] = await objects('externalips');
      expect(objectAt(written, 'spec')).to.deep.equal({ pool });
      expect(objectAt(metadataOf(written ?? {}), 'labels')).to.deep.equal({
        'osac.openshift.io/externalip-uuid': first,
      });
      const second = await people.order(pool);
      expect(await people.shows(ipAt(second), 'FAILED')).to.include({
        message: 'the hub shows address 192.0.2.7, which belongs to another one',
      });
      const alarm = 'the hub shows an address for two holders: 192.0.2.7';
      expect(await people.statusAt(`${POOLS}/${pool}`)).to.include({ message: alarm, allocated: '2' });
      const third = await people.order(pool);
      expect(await people.shows(ipAt(third), 'ALLOCATED')).to.include({ address: '192.0.2.9' });
      ok(await people.user('DELETE', `${IPS}/${third}`));
      await people.isGone(ipAt(third));
      expect((await objects('externalips')).length).to.equal(2);
    });

    it('where the ledger is the controller nobody builds a pool, and it waits', async () => {
      await register('ledger');
      const spec = { cidrs: ['192.0.2.0/28'], ip_family: 'IP_FAMILY_IPV4' };
      ok(await people.admin('POST', POOLS, { id: 'pool', metadata: { name: 'pool' }, spec }));
      await eventually('it says so', async () => {
        const { message } = await people.statusAt(`${POOLS}/pool`);
        return message === 'no hub carries out ExternalIPPool and ExternalIP';
      });
      expect(await objects('externalippools')).to.deep.equal([]);
      const { json } = await people.admin('GET', '/api/ledger/v1/hubs/munich');
      const lacking = listAt(json as JsonObject, 'lacking').filter(isObject);
      expect(lacking.map((each) => stringAt(each, 'kind'))).to.include('ExternalIPPool');
      ok(await people.admin('DELETE', `${POOLS}/pool`));
      await people.isGone(`${POOLS}/pool`);
    });
  });
};
