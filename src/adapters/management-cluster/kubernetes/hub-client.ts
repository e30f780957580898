import { hash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  HubError,
  type CallOptions,
  type ManagementCluster,
  type StoredMark,
  type HubReport,
} from '../../../app/hubs/management-cluster.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import { HUB_OBJECTS, hubObjectOf, isOwned, ownedObjects } from '../../../domain/hub-objects.ts';
import type { HostCounts } from '../../../domain/hubs/health.ts';
import {
  isDnsLabel,
  isLabelValue,
  OSAC_GROUP,
  type OwnedObject,
  apiVersionOf,
  type HubObject,
} from '../../../domain/hubs/hub-object.ts';
import {
  AGENT,
  NAMESPACE,
  RESOURCE_CLASS_LABEL,
  SECRET,
  LEASE,
  MARK_NAME,
} from '../../../domain/hubs/hub-objects.ts';
import { MARK_DURATION_MS, type HubMark } from '../../../domain/hubs/mark.ts';
import { objectAt, own, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { type Api, createApi } from './api.ts';
import { type HubNeeds, checkHub } from './check.ts';
import { openConnection } from './connection.ts';
import { hubController } from './controller.ts';
import { createObjectFields } from './crd-fields.ts';
import { createIdentity, verifiedApi, type Identity } from './identity.ts';
import { InvalidKubeconfig, readKubeconfig } from './kubeconfig.ts';
import { ensure, listed, objectOperations } from './objects.ts';
import { isKinded, type HubOperations, type Operation } from './protocol.ts';
import { READ_AGENTS, type Rights, createRights } from './rights.ts';
import { watchObjects, type ObjectWatch, type WatchNote, type WatchSettings } from './watch.ts';

const CLAIMED_LABEL = 'agent-install.openshift.io/clusterdeployment-namespace';
const TENANT_LABEL = `${OSAC_GROUP}/tenant-ref`;
const PROJECT_LABEL = `${OSAC_GROUP}/project`;

type SurroundingsOperations = Pick<
  ManagementCluster,
  'readSecret' | 'inventory' | 'ensureTenantNamespace' | 'removeTenantNamespace'
>;

/** What is around the objects of a hub: Secrets by name, tenants' namespaces, and hosts where the rights show them. */
const surroundingsOperations = (
  api: Api,
  rights: Rights,
  owned: readonly OwnedObject[],
  { namespace: hubNamespace, tenantNamespaces }: Pick<HubNeeds, 'namespace' | 'tenantNamespaces'>,
): SurroundingsOperations => ({
  readSecret: async ({ namespace, name, key }, by) => {
    if (name === '') return undefined;
    const secret = await api.get(SECRET, { namespace, name }, by);
    const data = own(objectAt(secret, 'data'), key);
    return typeof data === 'string' ? Buffer.from(data, 'base64') : undefined;
  },

  inventory: async (by) => {
    if (!(await rights.has(READ_AGENTS, by))) return undefined;
    try {
      return await countAgents(api, owned, tenantNamespaces ? {} : { namespace: hubNamespace }, by);
    } catch (error) {
      // No such kind: hosts of this hub are managed in another way.
      if (error instanceof HubError && error.kind === 'not-ready') return undefined;
      throw error;
    }
  },

  /** A namespace of that name without our labels is somebody else's, and nobody is let into it. */
  ensureTenantNamespace: async ({ name, tenant }, by) => {
    if (!isDnsLabel(name) || !isLabelValue(tenant))
      throw new HubError('invalid', `namespace ${name}: name or tenant is not a Kubernetes name`);
    const labels = { [TENANT_LABEL]: tenant, [PROJECT_LABEL]: hubNamespace };
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
    const wanted = { of: NAMESPACE, word: 'namespace', name, object };
    return { created: await ensure(api, wanted, TENANT_LABEL, by) };
  },

  /** Another service may have made it for its tenant of this name: then it is that one's to remove. */
  removeTenantNamespace: async ({ name, tenant }, by) => {
    const metadata = objectAt(await api.get(NAMESPACE, { name }, by), 'metadata');
    const labels = objectAt(metadata, 'labels');
    if (stringAt(labels, TENANT_LABEL) !== tenant || stringAt(labels, PROJECT_LABEL) !== hubNamespace)
      return { existed: false };
    if (stringAt(metadata, 'deletionTimestamp') !== '') return { existed: true };
    return { existed: await api.remove(NAMESPACE, { name }, by, stringAt(metadata, 'uid')) };
  },
});

/** Free is what the operator takes as free: of the class, nothing of ours on it, not claimed by a hosted cluster. */
const countAgents = async (
  api: Api,
  owned: readonly OwnedObject[],
  where: { readonly namespace?: string },
  by: CallOptions,
): Promise<HostCounts> => {
  const holders = new Set<string>();
  const backLabels = owned.flatMap(({ backLabel }) => backLabel ?? []);
  for (const kind of owned.filter(({ backLabel }) => backLabel !== undefined)) {
    const at = { ...where, labelSelector: kind.idLabel, metadataOnly: true } as const;
    for (const object of await listed(api, kind, at, by))
      holders.add(`${kind.backLabel}=${stringAt(objectAt(object, 'metadata'), 'name')}`);
  }
  const counts = new Map<string, { free: number; ours: number; foreign: number }>();
  const agents = { labelSelector: RESOURCE_CLASS_LABEL, metadataOnly: true } as const;
  for (const agent of await listed(api, AGENT, agents, by)) {
    const labels = objectAt(objectAt(agent, 'metadata'), 'labels');
    const resourceClass = stringAt(labels, RESOURCE_CLASS_LABEL);
    const count = counts.get(resourceClass) ?? { free: 0, ours: 0, foreign: 0 };
    const held = backLabels.filter((label) => stringAt(labels, label) !== '');
    if (held.some((label) => holders.has(`${label}=${stringAt(labels, label)}`))) count.ours += 1;
    else if (held.length > 0 || Object.hasOwn(labels, CLAIMED_LABEL)) count.foreign += 1;
    else count.free += 1;
    counts.set(resourceClass, count);
  }
  return Object.fromEntries(counts);
};

const ANNOTATION = 'fulfillment-ledger/';

type MarkOperations = Pick<ManagementCluster, 'readMark' | 'writeMark'>;

/** The mark of the deployment that drives the hub: a Lease, so that `kubectl get leases` shows who and since when. */
const markOperations = (api: Api, namespace: string): MarkOperations => ({
  readMark: async (by) => {
    const lease = await api.get(LEASE, { namespace, name: MARK_NAME }, by);
    return lease === undefined ? undefined : storedMark(lease);
  },
  writeMark: async (mark, over, by) => {
    const lease = leaseOf(mark, namespace, over);
    try {
      const stored = await (over === undefined
        ? api.create(LEASE, lease, by)
        : api.replace(LEASE, lease, by));
      return stringAt(objectAt(stored, 'metadata'), 'resourceVersion');
    } catch (error) {
      if (error instanceof HubError && LOST.includes(error.kind)) return undefined;
      // It was removed since it was read; a namespace that is not there says so at the next creation.
      if (over !== undefined && error instanceof HubError && error.kind === 'not-found') return undefined;
      throw error;
    }
  },
});

const LOST: readonly HubError['kind'][] = ['already-exists', 'conflict'];

const leaseOf = (mark: HubMark, namespace: string, resourceVersion: string | undefined): JsonObject => ({
  apiVersion: apiVersionOf(LEASE),
  kind: LEASE.kind,
  metadata: {
    name: MARK_NAME,
    namespace,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    annotations: {
      [`${ANNOTATION}deployment-id`]: mark.deploymentId,
      [`${ANNOTATION}deployment-name`]: mark.name,
      [`${ANNOTATION}former-ids`]: mark.formerIds.join(','),
      [`${ANNOTATION}epoch`]: String(mark.epoch),
      [`${ANNOTATION}nonce`]: mark.nonce,
      [`${ANNOTATION}holder`]: mark.holder,
    },
  },
  spec: {
    // As leader election has it: nobody holds what was released.
    holderIdentity: mark.released ? '' : mark.holder,
    leaseDurationSeconds: MARK_DURATION_MS / 1000,
    renewTime: mark.renewedAt.replace(/Z$/, '000Z'),
  },
});

/** A Lease of this name without what we write is foreign: nobody's deployment, held by whom it says. */
const storedMark = (lease: JsonObject): StoredMark => {
  const metadata = objectAt(lease, 'metadata');
  const spec = objectAt(lease, 'spec');
  const told = (key: string): string => stringAt(objectAt(metadata, 'annotations'), `${ANNOTATION}${key}`);
  const formerIds = told('former-ids');
  return {
    version: stringAt(metadata, 'resourceVersion'),
    mark: {
      deploymentId: told('deployment-id'),
      name: told('deployment-name'),
      formerIds: formerIds === '' ? [] : formerIds.split(','),
      epoch: Number(told('epoch')) || 0,
      nonce: told('nonce'),
      holder: told('holder'),
      renewedAt: stringAt(spec, 'renewTime'),
      released: stringAt(spec, 'holderIdentity') === '',
    },
  };
};

export type HubClientOptions = {
  readonly clock: Clock;
  readonly timers: Timers;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
  readonly note: WatchNote;
  readonly watch?: WatchSettings;
  /** Kinds that are known here. Default: all declared ones. */
  readonly objects?: readonly HubObject[];
};

/** One hub with the credentials of the moment, in the thread where its sockets are. */
export type HubClient = {
  /** Takes credentials over, the first or others. Throws nothing: bad ones are told by `check` and every call. */
  open(needs: HubNeeds, kubeconfig: Uint8Array): Promise<void>;
  call(op: Operation, args: readonly unknown[], by: CallOptions): Promise<unknown>;
  watch(kind: string, namespace: string): ObjectWatch;
  close(): void;
};

type Connected = {
  readonly api: Api;
  readonly identity: Identity;
  readonly operations: HubOperations;
  /** Only which cluster is expected has changed. True: watches that gave up on another one may go on. */
  readonly settle: (needs: HubNeeds) => boolean;
};

export const createHubClient = (options: HubClientOptions): HubClient => {
  const { timers, note, objects = HUB_OBJECTS } = options;
  const watches = new Set<ObjectWatch>();
  let connected: Connected | undefined;
  let refused: InvalidKubeconfig | undefined;
  /** Of kubeconfig and needs: the same again changes nothing. */
  let digest = '';
  let last: Promise<void> = Promise.resolve();
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  const replace = async (needs: HubNeeds, kubeconfig: Uint8Array): Promise<void> => {
    const { cluster: _known, ...others } = needs;
    const given = `${JSON.stringify(others)} ${hash('sha256', kubeconfig, 'hex')}`;
    // Which cluster it is becomes known meanwhile; who follows it need not begin anew for that.
    if (given === digest) {
      if (connected?.settle(needs) === true) for (const watch of watches) watch.restart();
      return;
    }
    const before = connected;
    try {
      connected = await connect(needs, kubeconfig, options);
      refused = undefined;
    } catch (error) {
      if (!(error instanceof InvalidKubeconfig)) throw error;
      connected = undefined;
      refused = error;
    }
    digest = given;
    for (const watch of watches) watch.restart();
    // Calls that are under way on the old sockets end; what they wrote is looked for as after any lost answer.
    before?.api.connection.close();
  };

  const current = (): Connected => {
    if (connected !== undefined) return connected;
    // Its work waits until somebody registers other credentials, as after a 401.
    throw new HubError('unauthorized', refused?.message ?? 'the hub has no credentials yet', {
      facts: { reason: 'InvalidKubeconfig' },
    });
  };

  const ownedObjectOf = (kind: string): OwnedObject => {
    const found = hubObjectOf(kind, objects);
    if (!isOwned(found)) throw new RangeError(`${kind} is not watched`);
    return found;
  };

  const invalid = (error: InvalidKubeconfig): HubReport => ({
    problems: [{ code: 'InvalidKubeconfig', message: error.message, subject: 'kubeconfig' }],
  });

  return {
    open: (needs, kubeconfig) => {
      // One after the other: the later credentials win.
      last = last.catch(() => undefined).then(() => replace(needs, kubeconfig));
      return last;
    },
    call: async (op, args, by) => {
      if (op === 'check' && refused !== undefined) return invalid(refused);
      const { identity, operations } = current();
      // Of a connection that leads to another cluster than the hub nothing is used but its check.
      if (op !== 'check' && op !== 'identify') await identity.ready(by);
      const [first, ...others] = args;
      const given = isKinded(op) ? [hubObjectOf(String(first), objects), ...others] : args;
      // The arguments were typed where they were sent from; both sides are one program.
      const run = operations[op] as (...all: readonly unknown[]) => Promise<unknown>;
      return run(...given, by);
    },
    watch: (kind, namespace) => {
      const started = watchObjects({
        kind: ownedObjectOf(kind),
        api: async () => {
          const { api, identity } = current();
          await identity.ready({ effectId: 'watch', deadlineMs: WATCH_MS, signal: closing.signal });
          return api;
        },
        namespace,
        timers,
        random: options.random,
        note,
        ...(options.watch === undefined ? {} : { settings: options.watch }),
      });
      watches.add(started);
      return {
        ...started,
        close: () => {
          watches.delete(started);
          started.close();
        },
      };
    },
    close: () => {
      closing.abort();
      for (const watch of watches) watch.close();
      watches.clear();
      connected?.api.connection.close();
      connected = undefined;
    },
  };
};

/** Milliseconds in which a watch must learn which cluster it follows. */
const WATCH_MS = 30_000;

const connect = async (
  given: HubNeeds,
  kubeconfig: Uint8Array,
  { clock, timers, objects = HUB_OBJECTS }: HubClientOptions,
): Promise<Connected> => {
  const access = readKubeconfig(kubeconfig);
  const connection = await openConnection(access, timers);
  const proxyPassword = access.proxyUrl === undefined ? undefined : new URL(access.proxyUrl).password;
  const asked = createApi(connection, [access.token, access.keyData, proxyPassword]);
  let needs = given;
  const identity = createIdentity(asked, needs.cluster);
  const api = verifiedApi(asked, identity);
  const rights = createRights(asked, () => clock.monotonicMs());
  const objectFields = createObjectFields(asked, rights);
  return {
    api,
    identity,
    settle: (changed) => {
      needs = changed;
      return identity.expect(changed.cluster);
    },
    operations: {
      check: (thorough: boolean, by: CallOptions) =>
        checkHub({ api: asked, rights, identity, needs, clock, objects, objectFields, thorough }, by),
      identify: (by: CallOptions) => identity.read(by),
      ...objectOperations(api, rights),
      ...markOperations(api, needs.namespace),
      ...surroundingsOperations(api, rights, ownedObjects(objects), needs),
      ...hubController(api, needs.namespace, () => clock.now()),
    },
  };
};
