import { LRUCache } from 'lru-cache';
import { hubObjectOf, isOwned } from '../../domain/hub-objects.ts';
import {
  plainDrift,
  type HubObject,
  type Manifest,
  type OwnedObject,
  type OwnedShown,
} from '../../domain/hubs/hub-object.ts';
import type { Condition } from '../../domain/hubs/hub-codecs.ts';
import { sameJson } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { firstProblem } from '../../domain/hubs/health.ts';
import { TENANT } from '../../domain/tenancy/hub-objects.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import {
  callOptionsOf,
  clusterOf,
  done,
  effectPort,
  Ended,
  failed,
  outcomeOf,
  outcomeOfHubError,
  refused,
  registeredHub,
} from './hub-effects.ts';
import {
  findLabelled,
  findObject,
  observationAt,
  type ObjectLooks,
  type ObjectRef,
  type Seen,
} from './hub-looks.ts';
import type { HubRegistry } from './hub-registry.ts';
import {
  HubError,
  TENANT_ANNOTATION,
  type CallOptions,
  type ManagementCluster,
} from './management-cluster.ts';
import type { Clock, SecretStore } from '../ports.ts';
import { storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import type { TenantSpaces } from './tenant-spaces.ts';

/** Which object an operation is about; `object` is the word of its kind. */
export type ObjectArgs = ObjectRef & { readonly object: string };
/** Arguments of `applyObject`. */
export type ApplyObjectArgs = ObjectArgs & {
  readonly spec: object;
  /** Besides those of the kind. */
  readonly labels?: { readonly [key: string]: string };
  readonly annotations?: { readonly [key: string]: string };
  /** By field of the spec; revealed at the last moment, and never in events or logs. */
  readonly secrets?: { readonly [field: string]: SecretRef };
  /** Fields of its status that are ours to write, as its kind says. */
  readonly status?: JsonObject;
  /** Its tenant must be known on the hub before it is made there; until then the answer is to wait. */
  readonly tenant?: boolean;
  /** The namespace is the tenant's own: made when first needed. */
  readonly tenantNamespace?: boolean;
  /** The hub never took it: what fails for certain may be sent to another one. */
  readonly unsent?: boolean;
  /** Somebody retried: the hub is to begin anew, also where the spec is stored already. */
  readonly relaunch?: boolean;
};

type TenantArgs = { readonly hub: string; readonly namespaces: readonly string[] };

/** Arguments of `writeStatus`. */
export type StatusArgs = ObjectArgs & {
  readonly status: { readonly conditions: readonly Condition[] };
  /** ISO time of the observation that it is made of. */
  readonly at: string;
};

/** Looks that are remembered, to be compared with later ones; others are made one by one. */
const MAX_SEEN = 50_000;
/** A namespace takes five seconds and more to go (OSAC's operator). */
const RELEASE_AGAIN_MS = 5_000;

const NOT_CARRIED = 'it cannot be made where it belongs at the moment; its provider sees why';

/** Operations that write to a hub. */
export const HUB_WRITES: readonly string[] = [
  'applyObject',
  'deleteObject',
  'prepareObject',
  'writeStatus',
  'releaseObject',
  'prepareTenant',
  'removeTenant',
];

/**
 * Effect port `management-cluster` (OSAC's operator): makes a hub hold what is wanted. Of every declared kind:
 *
 * - `applyObject` ApplyObjectArgs → {uid, name, generation, did, fields?}: creates the object or patches what
 * differs in it. {waiting, detail?, for?}: it waits until the hub knows its
 * tenant, or (for: `hub`) carries its kind.
 * - `deleteObject` ObjectArgs → {existed}: asks for deletion; absence is confirmed by later observations only.
 * - `observeObject` ObjectArgs → what its kind says of an observation; with `askedAt` when it is there.
 * - `compareObjects` {reads: ObjectArgs[]} → {unchanged}: indexes of those that show what the last `observeObject` of this
 * process showed. Refused where the hub shows its objects only one by one.
 *
 * Where nobody else reconciles it (`controller: ledger`):
 *
 * - `prepareObject` ObjectArgs → {created}: finalizer, namespace, account and rights.
 * - `writeStatus` StatusArgs → {}.
 * - `releaseObject` ObjectArgs → {}: done when namespace and finalizer are gone; until then it fails with what it
 * waits for.
 *
 * For a tenant, in whose name the effect is called:
 *
 * - `prepareTenant` {hub, namespaces} → {created}: makes those that are missing.
 * - `removeTenant` {hub, namespaces} → {existed}: asks that they go; false once nothing of them is left.
 *
 * Everything here may be repeated at any time: names are deterministic, patches say what should be, and an object that
 * is there already is ours when the label with our id says so.
 */
export const createManagementClusterEffects = (options: {
  readonly registry: HubRegistry;
  readonly secrets: Pick<SecretStore, 'reveal'>;
  readonly clock: Pick<Clock, 'now'>;
  /** The turns of whoever looks at an object, those of the watch of its hub included. */
  readonly looks: ObjectLooks;
  /** Absent: no object waits for its tenant. */
  readonly tenants?: TenantSpaces;
  /** Kinds that are known. Default: all declared ones. */
  readonly objects?: readonly HubObject[];
  /** Milliseconds that one call to a hub may take; an effect makes up to three. Default 10,000. */
  readonly callDeadlineMs?: number;
}): EffectPort => {
  const { registry, secrets, clock, looks, tenants, objects, callDeadlineMs = 10_000 } = options;

  // Counted by size, like all large caches here: `max` would take the room for all of them at once.
  const lastSeen = new LRUCache<string, Seen>({ maxSize: MAX_SEEN, sizeCalculation: () => 1 });
  const keyOf = ({ object, hub, id }: ObjectArgs): string => `${object}/${hub}/${id}`;

  const optionsOf = (call: EffectCall): CallOptions => callOptionsOf(call, callDeadlineMs);

  const adapterOf = async (hub: string, call: EffectCall): Promise<ManagementCluster> =>
    clusterOf(await registeredHub(registry, hub, call));

  const kindOf = (word: string): OwnedObject => {
    const kind = hubObjectOf(word, objects);
    if (isOwned(kind)) return kind;
    throw new Ended(refused('NotWritten', `objects of kind ${word} are only read`));
  };

  /** With the secrets' values in clear: only for the adapter. */
  const manifestOf = async (
    kind: OwnedObject,
    args: ApplyObjectArgs,
    call: EffectCall,
  ): Promise<Manifest> => {
    const values: { [field: string]: string } = {};
    for (const [field, secret] of Object.entries(args.secrets ?? {})) {
      // A template's default pull secret belongs to the template's tenant.
      const value = await secrets.reveal(secret, secret.tenant ?? call.tenant);
      if (value === undefined) {
        const reason = `${field.slice(0, 1).toUpperCase()}${field.slice(1)}Missing`;
        throw new Ended(refused(reason, `${field} of this ${args.object} is not in the secret store`));
      }
      values[field] = new TextDecoder().decode(value);
    }
    return {
      name: args.name,
      namespace: args.namespace,
      labels: { ...args.labels, [kind.idLabel]: args.id },
      annotations: { ...args.annotations, [TENANT_ANNOTATION]: call.tenant },
      spec: { ...args.spec, ...values },
    };
  };

  const apply = async (args: ApplyObjectArgs, call: EffectCall): Promise<EffectOutcome> => {
    const kind = kindOf(args.object);
    const cluster = await adapterOf(args.hub, call);
    const manifest = await manifestOf(kind, args, call);
    const there = await existingObject(cluster, kind, args, call);
    if (there !== undefined) return adopt(cluster, kind, manifest, args, there, call);
    const wait = args.tenant === true ? await waitFor(args, call) : undefined;
    if (wait !== undefined) return done(wait);
    if (args.tenantNamespace === true) await makeNamespace(args, call);
    try {
      const made = await cluster.create(kind, manifest, optionsOf(call));
      return applied(await stated(cluster, kind, args, made, call), 'created');
    } catch (error) {
      if (!(error instanceof HubError) || error.kind !== 'already-exists') throw error;
      const existing = error.object ?? (await cluster.get(kind, manifest, optionsOf(call)));
      if (existing === undefined) return failed('Conflict', 'the object of this name has just gone');
      return adopt(cluster, kind, manifest, args, existing, call);
    }
  };

  /**
   * Of a cluster's order, which needs no Tenant (OSAC's operator). It is asked for all the same where the hub can hold one,
   * because what was made for a tenant goes with its Tenant.
   */
  const makeNamespace = async ({ hub, namespace }: ApplyObjectArgs, call: EffectCall): Promise<void> => {
    const cluster = await adapterOf(hub, call);
    await cluster.ensureTenantNamespace({ name: namespace, tenant: call.tenant }, optionsOf(call));
    const { health } = await registeredHub(registry, hub, call);
    if (health.lacking?.kinds.some(({ kind }) => kind === TENANT.kind) !== true)
      await tenants?.settle(hub, call);
  };

  /** What goes to a hub because something else is there may find a hub that cannot carry it, or not its tenant yet. */
  const waitFor = async (
    { hub, object }: ApplyObjectArgs,
    call: EffectCall,
  ): Promise<{ readonly [field: string]: string } | undefined> => {
    const { health } = await registeredHub(registry, hub, call);
    const lacked = health.lacking?.kinds.find(({ kind }) => kind === object);
    if (lacked === undefined) return tenants?.settle(hub, call);
    const others = registry
      .hubs()
      .filter(({ deleting, health: of }) => !deleting && of.reachable !== undefined && !firstProblem(of))
      .filter((other) => other.health.lacking?.kinds.some(({ kind }) => kind === object) !== true)
      .map(({ facts }) => facts.id);
    const could = others.length === 0 ? 'no other hub carries it' : `carried by hub ${others.join(', ')}`;
    const detail = `hub ${hub}: ${lacked.code}: ${lacked.message}; ${could}`;
    return { waiting: NOT_CARRIED, for: 'hub', detail };
  };

  /**
   * An earlier attempt may have happened: looked for by name and by label before anything is written. What OSAC's own
   * service once made has another name (OSAC's operator); simulated hubs hold nothing of others.
   */
  const existingObject = async (
    cluster: ManagementCluster,
    kind: OwnedObject,
    args: ApplyObjectArgs,
    call: EffectCall,
  ): Promise<OwnedShown | undefined> => {
    if (call.mode === 'observe') {
      const named = await findObject(cluster, kind, args, optionsOf(call));
      if (named === undefined || named.name === args.name || cluster.simulated) return named;
    } else if (cluster.simulated) return undefined;
    const labelled = await findLabelled(cluster, kind, args, optionsOf(call));
    const ours = labelled.find(({ name }) => name === args.name);
    if (labelled.length > 1 && ours === undefined) {
      const names = labelled.map(({ name, uid }) => `${name} (uid ${uid})`).join(', ');
      const { called, owner } = kind;
      const reason = `Duplicate${called.slice(0, 1).toUpperCase()}${called.slice(1)}`;
      throw new Ended(refused(reason, `hub ${args.hub} holds several ${called} of this ${owner}: ${names}`));
    }
    return ours ?? labelled[0];
  };

  const adopt = async (
    cluster: ManagementCluster,
    kind: OwnedObject,
    manifest: Manifest,
    args: ApplyObjectArgs,
    existing: OwnedShown,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { id, hub } = args;
    const which = `${kind.kind} ${existing.name}`;
    if (existing.deletionTimestamp !== undefined) {
      // Whoever's it was: the name is free once it has gone (OSAC's operator).
      const waiting = failed('BeingDeleted', `${which} is being deleted since ${existing.deletionTimestamp}`);
      return existing.id === id ? whileThere(args, waiting) : waiting;
    }
    if (existing.id !== id) {
      const owner = existing.id === undefined ? 'nobody known' : `${kind.owner} ${existing.id}`;
      return refused(
        'NameTaken',
        `${which} (uid ${existing.uid}) in ${manifest.namespace} on hub ${hub} belongs to ${owner}`,
      );
    }
    const drift = (kind.drift ?? plainDrift)(existing.spec, manifest.spec);
    if ('refused' in drift) return refused(drift.refused, drift.message);
    const relaunch = args.relaunch === true ? kind.relaunch?.(existing, manifest.spec) : undefined;
    const patch = drift.patch ?? relaunch;
    const ref = { namespace: manifest.namespace, name: existing.name };
    try {
      if (patch === undefined) return applied(await stated(cluster, kind, args, existing, call), 'unchanged');
      const patched = await cluster.patch(kind, ref, patch, optionsOf(call));
      return applied(await stated(cluster, kind, args, patched, call), 'patched', Object.keys(patch));
    } catch (error) {
      if (error instanceof HubError) return whileThere(args, outcomeOfHubError(error));
      throw error;
    }
  };

  /** With what of its status is ours to write. */
  const stated = async (
    cluster: ManagementCluster,
    kind: OwnedObject,
    { status = {} }: ApplyObjectArgs,
    shown: OwnedShown,
    call: EffectCall,
  ): Promise<OwnedShown> => {
    const held = shown as OwnedShown & JsonObject;
    if (Object.entries(status).every(([field, value]) => sameJson(held[field] ?? null, value))) return shown;
    const place = { namespace: shown.namespace, name: shown.name, part: 'status' } as const;
    return cluster.patch(kind, place, status, optionsOf(call));
  };

  const remove = async (args: ObjectArgs, call: EffectCall): Promise<EffectOutcome> => {
    const kind = kindOf(args.object);
    const cluster = await adapterOf(args.hub, call);
    const object = await findObject(cluster, kind, args, optionsOf(call));
    if (object === undefined) return done({ existed: false });
    if (object.deletionTimestamp !== undefined) return done({ existed: true });
    // What has taken its name since it was read is somebody else's, or looked at anew.
    const ref = { namespace: args.namespace, name: object.name, uid: object.uid };
    const existed = await cluster.delete(kind, ref, optionsOf(call));
    return done({ existed });
  };

  const observe = async (args: ObjectArgs, call: EffectCall): Promise<EffectOutcome> => {
    const kind = kindOf(args.object);
    const cluster = await adapterOf(args.hub, call);
    return looks.inTurn(args, async () => {
      const askedAt = clock.now();
      const { object, observation, seen } = await observationAt(cluster, kind, args, optionsOf(call));
      lastSeen.set(keyOf(args), seen);
      if (object === undefined) return done({ ...observation });
      looks.read(args, object);
      return done({ ...observation, askedAt });
    });
  };

  const compare = async (
    { reads }: { readonly reads: readonly ObjectArgs[] },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const known = reads.flatMap((read, index) => {
      const seen = lastSeen.get(keyOf(read));
      return seen === undefined ? [] : [{ read, index, seen }];
    });
    const unchanged: number[] = [];
    for (const some of Map.groupBy(known, ({ read }) => `${read.object}/${read.hub}`).values()) {
      const [
        {
          read: { object, hub },
        } = { read: { object: '', hub: '' } },
      ] = some;
      const looks = some.map(({ seen }) => seen.look);
      const cluster = await adapterOf(hub, call);
      const digests = await cluster.digests?.(kindOf(object), looks, optionsOf(call));
      if (digests === undefined) return refused('OneByOne', `hub ${hub} shows its objects only one by one`);
      for (const [at, { index, seen }] of some.entries())
        if (digests[at] === seen.digest) unchanged.push(index);
    }
    return done({ unchanged });
  };

  const controllerOf = async (hub: string, call: EffectCall) => {
    const { controller } = await adapterOf(hub, call);
    if (controller !== undefined) return controller;
    throw new Ended(failed('NoController', `nothing in this release reconciles the orders of hub ${hub}`));
  };

  /** Undefined: not there. What has its name without our label belongs to somebody else, and is not touched. */
  const oursAt = async (
    kind: OwnedObject,
    { hub, id, namespace, name }: ObjectRef,
    call: EffectCall,
  ): Promise<OwnedShown | undefined> => {
    const shown = await (await adapterOf(hub, call)).get(kind, { namespace, name }, optionsOf(call));
    return shown?.id === id ? shown : undefined;
  };

  const prepare = async (args: ObjectArgs, call: EffectCall): Promise<EffectOutcome> => {
    const kind = kindOf(args.object);
    const controller = await controllerOf(args.hub, call);
    if ((await oursAt(kind, args, call)) === undefined)
      return failed('NotFound', `${kind.kind} ${args.name} of this ${kind.owner} is not on hub ${args.hub}`);
    const { created } = await controller.prepare(kind, args, optionsOf(call));
    return done({ created: [...created] });
  };

  const writeStatus = async (
    { status, at, ...args }: StatusArgs,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const kind = kindOf(args.object);
    const controller = await controllerOf(args.hub, call);
    const shown = await oursAt(kind, args, call);
    // Gone meanwhile: there is nothing to say any more.
    if (shown === undefined) return done({});
    // A condition whose status stays keeps the time that it has (HubController).
    const conditions = status.conditions.map((one) => ({ ...one, lastTransitionTime: at }));
    const wanted = { ...status, conditions, ...kind.controlled?.stated(shown as never) };
    await controller.writeStatus(kind, args, wanted, optionsOf(call));
    return done({});
  };

  const release = async (args: ObjectArgs, call: EffectCall): Promise<EffectOutcome> => {
    const kind = kindOf(args.object);
    const controller = await controllerOf(args.hub, call);
    if ((await oursAt(kind, args, call)) === undefined) return done({});
    const { released, waitingFor } = await controller.release(kind, args, optionsOf(call));
    return released
      ? done({})
      : failed('BeingDeleted', `waiting for ${waitingFor.join(', ')}`, RELEASE_AGAIN_MS);
  };

  const namespacesOf = (
    { hub, namespaces }: TenantArgs,
    call: EffectCall,
    visit: (cluster: ManagementCluster, name: string) => Promise<boolean>,
  ): Promise<readonly boolean[]> =>
    adapterOf(hub, call).then((cluster) => Promise.all(namespaces.map((name) => visit(cluster, name))));

  const prepareTenant = async (args: TenantArgs, call: EffectCall): Promise<EffectOutcome> => {
    const { tenant } = call;
    const made = await namespacesOf(
      args,
      call,
      async (cluster, name) =>
        (await cluster.ensureTenantNamespace({ name, tenant }, optionsOf(call))).created,
    );
    return done({ created: args.namespaces.filter((_name, index) => made[index]) });
  };

  const removeTenant = async (args: TenantArgs, call: EffectCall): Promise<EffectOutcome> => {
    const { tenant } = call;
    const existed = await namespacesOf(
      args,
      call,
      async (cluster, name) =>
        (await cluster.removeTenantNamespace({ name, tenant }, optionsOf(call))).existed,
    );
    return done({ existed: existed.includes(true) });
  };

  const operations = {
    applyObject: apply,
    deleteObject: remove,
    observeObject: observe,
    compareObjects: compare,
    prepareObject: prepare,
    writeStatus,
    releaseObject: release,
    prepareTenant,
    removeTenant,
  };
  return effectPort(operations, (error) => outcomeOf(error) ?? storeOutcome(error));
};

/** A certain failure may send an order elsewhere: not while one of ours is on this hub, whoever made it. */
const whileThere = ({ unsent }: ApplyObjectArgs, outcome: EffectOutcome): EffectOutcome =>
  unsent === true && outcome.outcome === 'failed'
    ? { outcome: 'unknown', reason: outcome.reason, message: outcome.message }
    : outcome;

const applied = (
  { uid, name, generation }: OwnedShown,
  did: 'created' | 'patched' | 'unchanged',
  fields?: string[],
): EffectOutcome => done({ uid, name, generation, did, ...(fields === undefined ? {} : { fields }) });
