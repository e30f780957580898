import {
  type HubController,
  HubError,
  type ManagementCluster,
} from '../../../src/app/hubs/management-cluster.ts';
import type { HubObjectEvent, OwnedObject, OwnedShown } from '../../../src/domain/hubs/hub-object.ts';
import { createCaller, type Caller, type HubWitness, type NetworkFaults, type Outcome } from './caller.ts';
import { latency, roundTrip, type Life } from './life.ts';

export type HubPortOptions = {
  readonly hub: ManagementCluster;
  readonly life: Life;
  readonly faults: () => NetworkFaults;
  readonly witness: HubWitness;
};

/** A hub as one incarnation reaches it. */
export const createHubPort = ({ hub, life, faults, witness }: HubPortOptions): ManagementCluster => {
  const { random } = life;
  const way = (): number => latency(random, faults().slow);

  const call = createCaller({
    life,
    faults,
    witness,
    where: hub.hubId,
    failure: (kind, why) => new HubError(kind, why),
    describe,
  });

  async function* watch<Shown extends OwnedShown>(
    kind: OwnedObject<object, Shown>,
    namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<HubObjectEvent<Shown>> {
    let kept: HubObjectEvent<Shown> | undefined;
    const until = AbortSignal.any([signal, life.ended]);
    for await (const event of hub.watch(kind, namespace, until)) {
      await Promise.race([roundTrip(life, way()), life.never]);
      if (!life.isAlive()) await life.never;
      if (signal.aborted) return;
      if (faults().refused === 1) throw new HubError('unavailable', 'connection refused');
      const shuffled = event.type !== 'synced' && random.chance(faults().shuffled);
      if (shuffled && kept === undefined && random.chance(0.5)) {
        kept = event;
        continue;
      }
      yield event;
      if (shuffled) yield event;
      if (kept !== undefined) {
        yield kept;
        kept = undefined;
      }
    }
    if (!life.isAlive()) await life.never;
  }

  return {
    hubId: hub.hubId,
    simulated: hub.simulated,
    create: (kind, manifest, by) =>
      call(`create ${manifest.name}`, true, (options) => hub.create(kind, manifest, options), by),
    patch: (kind, ref, spec, by) =>
      call(`patch ${ref.name}`, true, (options) => hub.patch(kind, ref, spec, options), by),
    delete: (kind, ref, by) =>
      call(`delete ${ref.name}`, true, (options) => hub.delete(kind, ref, options), by),
    get: (kind, ref, by) =>
      call(`get ${kind.kind} ${ref.name}`, false, (options) => hub.get(kind, ref, options), by),
    read: (kind, ref, by) => call(`read ${ref.name}`, false, (options) => hub.read(kind, ref, options), by),
    find: (kind, namespace, id, by) =>
      call(`find ${id}`, false, (options) => hub.find(kind, namespace, id, options), by),
    ...(hub.digests === undefined ? {} : { digests: digestsPort(hub.digests, call) }),
    readSecret: (ref, by) =>
      call(`read secret ${ref.name}`, false, (options) => hub.readSecret(ref, options), by),
    readMark: (by) => call('read mark', false, (options) => hub.readMark(options), by),
    // No moment to die in: drills count those of the orders, and a service may die while it gives its marks back. But one
    // that has died, and whose last answer still arrives, keeps no mark.
    writeMark: (mark, over, by) =>
      life.isAlive()
        ? call('write mark', false, (options) => hub.writeMark(mark, over, options), by)
        : life.never,
    check: (by) => call('check', false, (options) => hub.check(options), by),
    inventory: (by) => call('inventory', false, (options) => hub.inventory(options), by),
    ensureTenantNamespace: (namespace, by) =>
      call(
        `namespace ${namespace.name}`,
        true,
        (options) => hub.ensureTenantNamespace(namespace, options),
        by,
      ),
    removeTenantNamespace: (namespace, by) =>
      call(
        `no namespace ${namespace.name}`,
        true,
        (options) => hub.removeTenantNamespace(namespace, options),
        by,
      ),
    ...(hub.controller === undefined ? {} : { controller: controllerPort(hub.controller, call) }),
    watch,
    close: async () => undefined,
  };
};

const describe = (outcome: Outcome): string => {
  if ('error' in outcome) {
    const { error } = outcome;
    return error instanceof HubError ? error.kind : String(error);
  }
  const { value } = outcome;
  if (value === undefined || value === false) return 'nothing there';
  return Array.isArray(value) ? `${value.length} found` : 'done';
};

type Digests = NonNullable<ManagementCluster['digests']>;
const digestsPort =
  (digests: Digests, call: Caller): Digests =>
  (kind, looks, by) =>
    call(`compare ${looks.length} ${kind.plural}`, false, (options) => digests(kind, looks, options), by);

const controllerPort = (controller: HubController, call: Caller): HubController => ({
  prepare: (kind, place, by) =>
    call(`prepare ${place.name}`, true, (options) => controller.prepare(kind, place, options), by),
  writeStatus: (kind, place, status, by) =>
    call(
      `write status ${place.name}`,
      true,
      (options) => controller.writeStatus(kind, place, status, options),
      by,
    ),
  release: (kind, place, by) =>
    call(`release ${place.name}`, true, (options) => controller.release(kind, place, options), by),
});
