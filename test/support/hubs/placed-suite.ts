import { expect } from 'chai';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import { BARE_METAL_INSTANCE } from '../../../src/domain/bare-metal/hub-objects.ts';
import { COMPUTE_INSTANCE, USER_DATA_SECRET } from '../../../src/domain/compute/hub-objects.ts';
import { isOwned } from '../../../src/domain/hub-objects.ts';
import { apiVersionOf, type OwnedObject } from '../../../src/domain/hubs/hub-object.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { eventually } from '../eventually.ts';
import { KIND_SAMPLES, makeHousePool } from '../http/kind-samples.ts';
import { itemsOf, PRIVATE, seedCatalogue, textAt, type Caller } from '../http/service.ts';
import { kubeApi } from '../kube-controllers/api.ts';
import { playTenants } from '../kube-controllers/tenants.ts';
import { startKubeFaultProxy } from '../kube-apiserver/fault-proxy.ts';
import { kubeconfigOf } from '../kube-apiserver/kubeconfig.ts';
import { createWholeService } from '../service/whole-service.ts';
import { grantHubAccess } from './kubernetes-hub.ts';
import { ok } from './network-story.ts';
import type { HubServer } from './served-hub.ts';

export const NS = 'osac-hub';
const MERGE = 'application/merge-patch+json';
const FINALIZER = 'osac.openshift.io/test-finalizer';
const LOOK_MS = 20;

/** Kinds that are one object on one hub. */
export const PLACED = actingKinds.flatMap((kind) =>
  kind.hubObjects
    .filter((one) => isOwned(one))
    .flatMap((object) => (object.ownLane && object.unwatched !== true ? { kind, object } : [])),
);
/** Ends of the names of states that are called otherwise. */
const READY: { readonly [kind: string]: string } = {
  bareMetalInstance: 'RUNNING',
  computeInstance: 'RUNNING',
  externalIp: 'ALLOCATED',
  volume: 'AVAILABLE',
};
export const readyOf = (kind: string): string => `_STATE_${READY[kind] ?? 'READY'}`;
const PENDING: { readonly [kind: string]: string } = {
  bareMetalInstance: 'PROVISIONING',
  computeInstance: 'STARTING',
  volume: 'CREATING',
};
/** Labels of its object besides the id. */
const LABELS: { readonly [kind: string]: object } = {
  computeInstance: { 'osac.openshift.io/instance-type-name': 'house-type' },
};
/** What a kind says of itself that has no message of its own: in a condition. */
const FAILED: { readonly [kind: string]: string } = {
  bareMetalInstance: 'the hub shows the bare metal instance as failed',
  computeInstance: 'the hub shows the compute instance as failed',
};
const saidIn = (status: JsonObject): string => {
  const conditions = listAt(status, 'conditions').filter(isObject);
  const provisioned = conditions.find((one) => stringAt(one, 'type').endsWith('_PROVISIONED'));
  return stringAt(status, 'message') || stringAt(provisioned ?? {}, 'message');
};
/** As an operator calls the phases of those that have no `Ready` and no `Progressing`. */
const PHASES: { readonly [object: string]: { readonly [phase: string]: string } } = {
  ComputeInstance: { Progressing: 'Starting', Ready: 'Running' },
};
const phaseOf = ({ kind }: OwnedObject, phase: Phase): string => PHASES[kind]?.[phase] ?? phase;

/** The others are those of machines alone. */
type Phase = 'Progressing' | 'Failed' | 'Ready' | 'Stopping' | 'Stopped' | 'Paused';

const CONDITION_TYPES = [
  'ConfigurationApplied',
  'Ready',
  'Provisioned',
  'RestartInProgress',
  'RestartFailed',
  'RestartRequired',
];

const metadataOf = (object: JsonObject): JsonObject => objectAt(object, 'metadata');

/** What an operator writes of a phase. What its maker writes is left alone. */
const statusOf = (object: OwnedObject, phase: Phase, number: number): JsonObject => {
  const ours = Object.keys(object.status?.shape ?? {});
  const ready = Object.entries(object.sample.status).filter(([field]) => !ours.includes(field));
  // Each address of the house's pool once.
  const address = 'address' in object.sample.status ? { address: `192.0.2.${number}` } : {};
  if (phase === 'Ready') return { ...Object.fromEntries(ready), ...address };
  const state = 'state' in object.sample.status ? { state: phase === 'Failed' ? 'Failed' : 'Pending' } : {};
  const condition = { type: 'Ready', status: 'False', reason: 'ProvisioningFailed', message: 'no room' };
  const conditions = [{ ...condition, lastTransitionTime: '2026-11-23T12:00:00Z' }];
  return { phase: phaseOf(object, phase), ...state, ...(phase === 'Failed' ? { conditions } : {}) };
};

/** Asks the operator's automation to make or remove one; false: there is none that does. */
export type Carry = (what: 'create' | 'delete', object: OwnedObject, stored: JsonObject) => Promise<boolean>;

/** Plays the operator of all these kinds. An object is ready at once, unless `phases` has its name. */
export const playOperator = (
  { call }: Pick<HubServer, 'call'>,
  phases: Map<string, Phase> = new Map(),
  held: Set<string> = new Set(),
  carry: Carry = async () => true,
) => {
  let stopped = false;
  const tenants = playTenants(kubeApi(call), NS);
  const numbers = new Map<string, number>();
  const numberOf = (name: string): number => {
    if (!numbers.has(name)) numbers.set(name, 1 + numbers.size);
    return numbers.get(name) ?? 0;
  };
  const patch = (path: string, body: JsonObject) => call('PATCH', path, { body, type: MERGE });
  const tend = async (object: OwnedObject, all: string, stored: JsonObject): Promise<void> => {
    const name = stringAt(metadataOf(stored), 'name');
    const finalizers = listAt(metadataOf(stored), 'finalizers');
    const status = objectAt(stored, 'status');
    const phase = phases.get(name) ?? 'Ready';
    if (stringAt(metadataOf(stored), 'deletionTimestamp') !== '') {
      if (!held.has(name) && (await carry('delete', object, stored)))
        await patch(`${all}/${name}`, { metadata: { finalizers: [] } });
      else if (status['phase'] !== 'Deleting')
        await patch(`${all}/${name}/status`, { status: { phase: 'Deleting' } });
    } else if (!finalizers.includes(FINALIZER))
      await patch(`${all}/${name}`, { metadata: { finalizers: [FINALIZER] } });
    else if (status['phase'] !== phaseOf(object, phase) && (await carry('create', object, stored)))
      await patch(`${all}/${name}/status`, {
        status: statusOf(object, phase, object.kind === 'ExternalIP' ? numberOf(name) : 0),
      });
  };
  const run = async (): Promise<void> => {
    while (!stopped) {
      // A server whose store is just being read refuses for a moment; an operator looks again.
      await tenants().catch(() => undefined);
      for (const { object } of PLACED) {
        const all = pathOf(object);
        const { body } = await call('GET', all);
        for (const stored of listAt(body, 'items').filter(isObject)) await tend(object, all, stored);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  const running = run();
  return async (): Promise<void> => {
    stopped = true;
    await running;
  };
};

export const pathOf = (object: OwnedObject): string =>
  `/apis/${apiVersionOf(object)}/namespaces/${NS}/${object.plural}`;

/** Each kind that is placed on hubs, on an API server with the generated rights and definitions: its states by its phases. */
export const describePlacedKinds = (name: string, start: () => Promise<HubServer>): void => {
  describe(`objects of every kind on ${name}`, function () {
    this.timeout(120_000);
    let server: HubServer;
    let proxy: Awaited<ReturnType<typeof startKubeFaultProxy>>;
    let admin: Caller;
    const phases = new Map<string, Phase>();
    const held = new Set<string>();
    const around = { user: () => '' };
    const stops: (() => Promise<void>)[] = [];

    before(async () => {
      server = await start();
      stops.push(() => server.close());
      const token = await grantHubAccess(server.call, NS);
      proxy = await startKubeFaultProxy(server.access);
      stops.push(() => proxy.close());
      stops.push(playOperator(server, phases, held));
      const whole = await createWholeService({ LEDGER_CATALOG: '' });
      stops.push(() => whole.dispose());
      await whole.start();
      admin = await whole.caller({ sub: 'root', preferred_username: 'root', groups: ['/admins'] });
      const kubeconfig = Buffer.from(kubeconfigOf({ ...proxy, credentials: { token } })).toString('base64');
      const spec = { namespace: NS, kubeconfig };
      ok(await admin('POST', `${PRIVATE}/hubs`, { id: 'munich', metadata: { name: 'munich' }, spec }));
      await eventually('the hub was looked at', async () => {
        const { json } = await admin('GET', '/api/ledger/v1/hubs/munich');
        return textAt(json, 'health') === 'ok';
      });
      await seedCatalogue(admin);
      await makeHousePool(admin);
      // What the samples refer to is on the hub before the first of them.
      for (const { kind } of PLACED)
        await eventually(`every ${kind.words} is as wanted`, async () =>
          itemsOf(await admin('GET', `${PRIVATE}/${kind.collection}`)).every((item) => {
            const status = objectAt(item as JsonObject, 'status');
            return stringAt(status, 'hub') !== '' && stringAt(status, 'state').endsWith(readyOf(kind.kind));
          }),
        );
    });
    after(async () => {
      for (const stop of stops.toReversed()) await stop();
    });

    for (const { kind, object } of PLACED) {
      it(`${kind.words}: follows its hub through failure, recovery and deletion`, async () => {
        const id = `followed-${kind.kind.toLowerCase()}`;
        const at = `${PRIVATE}/${kind.collection}/${id}`;
        const cr = object.nameOf(id);
        let seen: JsonObject = {};
        const shows = (state: string, message?: string): Promise<void> =>
          eventually(
            () => `${kind.words} shows ${state}: ${JSON.stringify(seen)}`,
            async () => {
              seen = objectAt(ok(await admin('GET', at)) as JsonObject, 'status');
              const fits = message === undefined || saidIn(seen) === message;
              return fits && stringAt(seen, 'state').endsWith(`_STATE_${state}`);
            },
          );
        const stored = async (): Promise<JsonObject | undefined> => {
          const { code, body } = await server.call('GET', `${pathOf(object)}/${cr}`);
          return code === 404 ? undefined : body;
        };

        phases.set(cr, 'Progressing');
        // It is made, and nobody of ours hears it.
        let lost = 0;
        proxy.onCall(({ method, path, moment }) => {
          if (moment === 'arrived' || method !== 'POST' || !path.startsWith(pathOf(object))) return 'pass';
          lost += 1;
          return lost > 1 ? 'pass' : 'cut';
        });
        const sample = KIND_SAMPLES[kind.kind]?.body(id, around) ?? {};
        ok(await admin('POST', `${PRIVATE}/${kind.collection}`, { ...sample, id }));
        await eventually('its operator works on it', async () => {
          const status = objectAt((await stored()) ?? {}, 'status');
          const ours = Object.keys(object.status?.shape ?? {});
          return status['phase'] === phaseOf(object, 'Progressing') && ours.every((field) => field in status);
        });
        expect(lost).to.equal(1);
        await shows(PENDING[kind.kind] ?? 'PENDING');
        const { metadata, spec } = (await stored()) ?? {};
        expect(objectAt(metadata, 'labels')).to.deep.equal({ [object.idLabel]: id, ...LABELS[kind.kind] });
        expect(object.spec.parse(spec), 'no field of ours was dropped').to.deep.equal(spec);

        phases.set(cr, 'Failed');
        await shows('FAILED', FAILED[kind.kind] ?? `the hub could not make the ${kind.words} ready`);
        phases.set(cr, 'Ready');
        await shows(READY[kind.kind] ?? 'READY');
        expect(seen).to.not.have.property('message');

        held.add(cr);
        ok(await admin('DELETE', at));
        await eventually(
          'its hub removes it',
          async () => stringAt(metadataOf((await stored()) ?? {}), 'deletionTimestamp') !== '',
        );
        const leaving = ok(await admin('GET', at)) as JsonObject;
        expect(metadataOf(leaving)).to.have.property('deletion_timestamp');
        held.delete(cr);
        await eventually('it is gone', async () => (await admin('GET', at)).status === 404);
        expect(await stored()).to.equal(undefined);
      });
    }

    it('a machine shows its power, its restart and its six conditions; what somebody changes there is put right', async () => {
      const id = 'powered';
      const at = `${PRIVATE}/compute_instances/${id}`;
      const cr = COMPUTE_INSTANCE.nameOf(id);
      const crAt = `${pathOf(COMPUTE_INSTANCE)}/${cr}`;
      const secretAt = `/api/v1/namespaces/${NS}/secrets/${USER_DATA_SECRET.nameOf(id)}`;
      let status: JsonObject = {};
      const comes = (what: string, look: () => boolean): Promise<void> =>
        eventually(
          () => `${what}: ${JSON.stringify(status)}`,
          async () => {
            status = objectAt(ok(await admin('GET', at)) as JsonObject, 'status');
            return look();
          },
        );
      const shows = (state: string): Promise<void> =>
        comes(state, () => stringAt(status, 'state').endsWith(`_STATE_${state}`));
      const wants = (field: string, value: string): Promise<void> =>
        eventually(`${field} is ${value} there`, async () => {
          const { body } = await server.call('GET', crAt);
          return stringAt(objectAt(body, 'spec'), field) === value;
        });
      const change = async (spec: object): Promise<void> => void ok(await admin('PATCH', at, { spec }));

      const sample = (KIND_SAMPLES['computeInstance']?.body(id, around) ?? {}) as JsonObject;
      const spec = { ...objectAt(sample, 'spec'), user_data: '#cloud-config' };
      ok(await admin('POST', `${PRIVATE}/compute_instances`, { ...sample, id, spec }));
      await shows('RUNNING');
      const { body: secret } = await server.call('GET', secretAt);
      expect(objectAt(secret, 'data')).to.deep.equal({
        userData: Buffer.from('#cloud-config').toString('base64'),
      });

      // It is changed, and nobody of ours hears it.
      let lost = 0;
      proxy.onCall(({ method, path, moment }) => {
        if (moment === 'arrived' || method !== 'PATCH' || !path.startsWith(crAt)) return 'pass';
        lost += 1;
        return lost > 1 ? 'pass' : 'cut';
      });
      phases.set(cr, 'Stopping');
      await change({ run_strategy: 'Halted' });
      await wants('runStrategy', 'Halted');
      await eventually('the answer was cut off', () => lost > 0);
      await shows('STOPPING');
      phases.set(cr, 'Stopped');
      await shows('STOPPED');
      phases.set(cr, 'Ready');
      await change({ run_strategy: 'Always' });
      await shows('RUNNING');
      phases.set(cr, 'Paused');
      await shows('PAUSED');
      phases.set(cr, 'Ready');
      await shows('RUNNING');

      await server.call('PATCH', crAt, { body: { spec: { runStrategy: 'Halted' } }, type: MERGE });
      await wants('runStrategy', 'Always');

      const asked = new Date().toISOString();
      await change({ restart_requested_at: asked });
      await wants('restartRequestedAt', asked);
      const lastRestartedAt = `${new Date(Date.now() + 1_000).toISOString().slice(0, 19)}Z`;
      const conditions = CONDITION_TYPES.map((type) => ({
        type,
        status: type.startsWith('Restart') ? 'False' : 'True',
        reason: 'Told',
        message: `of ${type}`,
        lastTransitionTime: lastRestartedAt,
      }));
      const told = { status: { lastRestartedAt, conditions } };
      await server.call('PATCH', `${crAt}/status`, { body: told, type: MERGE });
      await comes('it is restarted', () => stringAt(status, 'last_restarted_at') === lastRestartedAt);
      expect(listAt(status, 'conditions').map((one) => stringAt(one as JsonObject, 'message'))).to.deep.equal(
        CONDITION_TYPES.map((type) => `of ${type}`),
      );

      ok(await admin('DELETE', at));
      await eventually('it is gone', async () => (await admin('GET', at)).status === 404);
      for (const path of [crAt, secretAt]) expect((await server.call('GET', path)).code).to.equal(404);
    });

    it('a whole server shows its power as its operator says it, through failures and a lost answer', async () => {
      const id = 'whole-server';
      const at = `${PRIVATE}/baremetal_instances/${id}`;
      const cr = BARE_METAL_INSTANCE.nameOf(id);
      const crAt = `${pathOf(BARE_METAL_INSTANCE)}/${cr}`;
      let status: JsonObject = {};
      const shows = (state: string): Promise<void> =>
        eventually(
          () => `${state}: ${JSON.stringify(status)}`,
          async () => {
            status = objectAt(ok(await admin('GET', at)) as JsonObject, 'status');
            return stringAt(status, 'state').endsWith(`_STATE_${state}`);
          },
        );
      const tell = async (is: string, reason: string): Promise<void> => {
        const lastTransitionTime = `${new Date().toISOString().slice(0, 19)}Z`;
        const conditions = [
          { type: 'PowerSynced', status: is, reason, message: 'of ironic', lastTransitionTime },
        ];
        await server.call('PATCH', `${crAt}/status`, { body: { status: { conditions } }, type: MERGE });
      };
      const sample = (KIND_SAMPLES['bareMetalInstance']?.body(id, around) ?? {}) as JsonObject;
      ok(await admin('POST', `${PRIVATE}/baremetal_instances`, { ...sample, id }));
      await shows('RUNNING');
      await tell('False', 'Progressing');
      await shows('STARTING');
      for (const reason of ['PowerSyncFailed', 'IronicAPIFailure']) {
        await tell('False', reason);
        await shows('FAILED');
        expect(JSON.stringify(status), 'the words of its hub').not.to.include('ironic');
        await tell('True', 'PowerOn');
        await shows('RUNNING');
      }

      // It is changed, and nobody of ours hears it.
      let lost = 0;
      proxy.onCall(({ method, path, moment }) => {
        if (moment === 'arrived' || method !== 'PATCH' || !path.startsWith(crAt)) return 'pass';
        lost += 1;
        return lost > 1 ? 'pass' : 'cut';
      });
      ok(await admin('PATCH', at, { spec: { run_strategy: 'BARE_METAL_INSTANCE_RUN_STRATEGY_HALTED' } }));
      await eventually('it is halted there', async () => {
        const { body } = await server.call('GET', crAt);
        return stringAt(objectAt(body, 'spec'), 'runStrategy') === 'Halted';
      });
      await eventually('the answer was cut off', () => lost > 0);
      await tell('False', 'PowerSyncRequired');
      await shows('STOPPING');
      await tell('True', 'PowerOff');
      await shows('STOPPED');
      ok(await admin('DELETE', at));
      await eventually('it is gone', async () => (await admin('GET', at)).status === 404);
      expect((await server.call('GET', crAt)).code).to.equal(404);
    });

    it('never asks for what the generated rights do not allow', () => {
      const refused = proxy.seen().filter(({ code }) => code === 403);
      // What is read of HostedClusters and agents is looked for, and done without.
      const ours = refused.filter(({ path }) =>
        PLACED.some(({ object }) => path.includes(`/${object.plural}`)),
      );
      expect(ours).to.deep.equal([]);
    });
  });
};
