import { agentPoolDecider } from '../../domain/agents/agent-pool.ts';
import { AGENT_POOL, type AgentPoolEvent } from '../../domain/agents/event-types.ts';
import { nodesOf, type AgentPoolState } from '../../domain/agents/pool-state.ts';
import { holderKey, type Holder } from '../../domain/holder.ts';
import type { CapacityLimits } from '../../domain/hubs/capacity-events.ts';
import { capacityLimitsOf, limitsWithHosts } from '../../domain/hubs/capacity.ts';
import { HEALTH_EVENTS, type HubHealth } from '../../domain/hubs/health.ts';
import {
  AUTOMATED_MODES,
  formerSecretPath,
  HMAC_SECRET_PATH,
  TOKEN_PATH,
} from '../../domain/hubs/former-modes.ts';
import { hubFacts, type HubFacts } from '../../domain/hubs/hub-facts.ts';
import {
  expectedCluster,
  hub as hubKind,
  KUBECONFIG_PATH,
  type HubEvent,
  type HubState,
} from '../../domain/hubs/hub.resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { TenantSpaceEvent } from '../../domain/tenancy/tenant-space.ts';
import type { EventCodec } from '../log/event-codec.ts';
import {
  LogReplaced,
  type EventStore,
  type RecordedEvent,
  type UnreadableEvent,
} from '../log/event-store.ts';
import type { HubConnection, ManagementCluster, ManagementClusters } from './management-cluster.ts';
import type { EventMetadata } from '../log/metadata.ts';
import type { Logger, Timers } from '../ports.ts';
import { aborted, pause } from '../process-runner/pause.ts';
import { createTenantSpaceBook, SPACE_TYPES, type HubSpace } from './tenant-space-book.ts';
import { defined, objectAt, sameJson, stringAt } from '../../domain/json-tools.ts';

export type AutomationSecrets = { readonly token?: SecretRef; readonly hmacSecret?: SecretRef };

/** A registered hub as the parts that work with hubs need it. */
export type RegisteredHub = {
  readonly facts: HubFacts;
  /** It is being deregistered: nothing new goes there, what is there is still looked after. */
  readonly deleting: boolean;
  /**
   * What its document declares, and of other classes what hosts it shows; absent limits mean unlimited. Where the ledger owns
   * its agents, nodes are what the agent pool has and can still get.
   */
  readonly limits: CapacityLimits;
  /** What looking at it showed last. */
  readonly health: HubHealth;
  /** Undefined: nothing in this release reaches it (shown as `NoAdapter`). */
  readonly adapter: ManagementCluster | undefined;
  /** Which cluster has to answer as this hub; undefined: it is not known yet (domain/hubs/identity.ts). */
  readonly cluster?: string | undefined;
  /** Reference of its credentials; only adapters reveal it. */
  readonly kubeconfig: SecretRef | undefined;
  /** References of what its automation is called with; absent without any. */
  readonly automation?: AutomationSecrets;
  /** The same of modes that the hub was switched away from, by mode: running orders end in theirs. */
  readonly formerAutomation?: { readonly [mode: string]: AutomationSecrets };
  /** Revision of the hub's stream at which its document was last worded anew; what was seen of it words nothing. */
  readonly revision: number;
  readonly tenant: string;
  readonly project: string;
};

export type HubRegistry = {
  /** Follows the log; returns when `signal` was aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when everything that was in the log at the start is known. */
  ready(signal?: AbortSignal): Promise<void>;
  hubs(): readonly RegisteredHub[];
  get(id: string): RegisteredHub | undefined;
  /** How many of a tenant, or of one kind of it, have a place on a hub. */
  holdersOf(hub: string, tenant: string, kind?: string): number;
  /** For which tenant a place on a hub was reserved, while somebody has it. */
  tenantOf(hub: string, holder: Holder): string | undefined;
  /** Tenants that ever had a place on a hub; a first one is told like a change of the hub. */
  tenantsOn(hub: string): readonly string[];
  /** What a hub holds of tenants. */
  spacesOn(hub: string): readonly HubSpace[];
  /** Its agents, as the log has them; undefined: it never had any, and nobody wanted one. */
  agentPool(hub: string): AgentPoolState | undefined;
  /** Called with the hub after each change (undefined: it is gone), first for each hub once ready. Returns how to stop. */
  onChange(listener: (id: string, hub: RegisteredHub | undefined) => void): () => void;
};

const DOCUMENT_TYPES = ['HubRegistered', 'HubRevised', 'HubDeregistrationRequested', 'HubDeregistered'];
const HUB_TYPES: readonly string[] = [...DOCUMENT_TYPES, ...HEALTH_EVENTS];
const POOL_TYPES: readonly string[] = Object.keys(AGENT_POOL);
const RESERVED = 'HubCapacityReserved';
const RELEASED = 'HubCapacityReleased';

/** Hubs change rarely, while every order grows the log: news may be this late, so that not each is looked at alone. */
const PATIENCE_MS = 10;
/** Milliseconds before a log that turned out to be another one is read again. */
const READ_AGAIN_MS = 1_000;

/**
 * The registered hubs in memory, folded from the log by each instance: a few hundred at most. How much each tenant has
 * where is counted from the reservations, whose metadata name the tenant.
 */
export const createHubRegistry = (options: {
  readonly store: EventStore;
  readonly codec: Pick<EventCodec, 'decode'>;
  readonly clusters: ManagementClusters;
  readonly timers: Timers;
  readonly logger: Logger;
}): HubRegistry => {
  const { store, codec, clusters, timers, logger } = options;
  const states = new Map<string, HubState>();
  const hubs = new Map<string, RegisteredHub>();
  /** By hub, tenant and kind. */
  const counts = new Map<string, Map<string, Map<string, number>>>();
  /** By hub and holder. */
  const tenants = new Map<string, Map<string, string>>();
  /** Agent pools by hub. */
  const pools = new Map<string, AgentPoolState>();
  const spaces = createTenantSpaceBook();
  const listeners = new Set<(id: string, hub: RegisteredHub | undefined) => void>();
  const caughtUp = Promise.withResolvers<void>();
  let ready = false;
  /** Those that were known when it began to read. */
  let known: readonly string[] = [];

  const see = (event: RecordedEvent): void => {
    const { id } = parseStreamName(event.stream);
    if (event.type === RESERVED) count(id, event, 1);
    else if (event.type === RELEASED) count(id, event, -1);
    else if (HUB_TYPES.includes(event.type)) seeHub(id, event);
    else if (POOL_TYPES.includes(event.type)) seePool(id, event);
    else if (SPACE_TYPES.includes(event.type)) spaces.see(id, codec.decode(event) as TenantSpaceEvent);
  };

  const count = (hub: string, event: RecordedEvent, change: 1 | -1): void => {
    const { tenant } = event.metadata as unknown as EventMetadata;
    const holder = objectAt(event.data, 'holder');
    const kind = stringAt(holder, 'kind');
    const key = holderKey({ kind, id: stringAt(holder, 'id') });
    if (change === 1) tenants.set(hub, (tenants.get(hub) ?? new Map<string, string>()).set(key, tenant));
    else tenants.get(hub)?.delete(key);
    const ofHub = counts.get(hub) ?? new Map<string, Map<string, number>>();
    const isNew = !ofHub.has(tenant);
    // Of one that has left, something may still be there.
    const ofTenant = ofHub.get(tenant) ?? new Map<string, number>();
    ofTenant.set(kind, Math.max(0, (ofTenant.get(kind) ?? 0) + change));
    counts.set(hub, ofHub.set(tenant, ofTenant));
    if (isNew && ready && hubs.get(hub)?.facts.tenantNamespaces === true) {
      for (const listener of listeners) listener(hub, hubs.get(hub));
    }
  };

  const seePool = (id: string, event: RecordedEvent): void => {
    const before = pools.get(id) ?? agentPoolDecider.initialState();
    pools.set(id, agentPoolDecider.evolve(before, codec.decode(event) as AgentPoolEvent));
    const [state, hub] = [states.get(id), hubs.get(id)];
    if (state === undefined || hub === undefined) return;
    const limits = limitsOf(hub.facts, seenOf(state).limits);
    if (sameJson(limits, hub.limits)) return;
    const now = { ...hub, limits };
    hubs.set(id, now);
    if (ready) for (const listener of listeners) listener(id, now);
  };

  const limitsOf = (facts: HubFacts, declared: CapacityLimits): CapacityLimits => {
    const pool = facts.steps.agents === 'ledger' ? pools.get(facts.id) : undefined;
    const nodes = pool && nodesOf(pool);
    return nodes === undefined ? declared : { ...declared, nodes: { ...declared.nodes, ...nodes } };
  };

  const seeHub = (id: string, event: RecordedEvent): void => {
    const before = states.get(id) ?? hubKind.decider.initialState();
    const state = hubKind.decider.evolve(before, codec.decode(event) as HubEvent);
    const known = hubs.get(id);
    const worded = DOCUMENT_TYPES.includes(event.type);
    const hub = known === undefined || worded ? registered(state, event.revision) : seen(known, state);
    if (hub === undefined) {
      if (hubs.delete(id)) clusters.forget?.(id);
      states.delete(id);
    } else {
      hubs.set(id, hub);
      states.set(id, state);
    }
    if (ready) for (const listener of listeners) listener(id, hub);
  };

  /** The adapter is told once it is known which cluster it has to be. */
  const seen = (hub: RegisteredHub, state: HubState): RegisteredHub => {
    const { health, limits } = seenOf(state);
    const now = {
      ...hub,
      health,
      limits: limitsOf(hub.facts, limits),
      cluster: expectedCluster(state),
    };
    return now.cluster === hub.cluster ? now : { ...now, adapter: clusters.of(connectionOf(now)) };
  };

  const registered = (state: HubState, revision: number): RegisteredHub | undefined => {
    if (state.status !== 'present' && state.status !== 'deleting') return undefined;
    const facts = hubFacts(state);
    const { health, limits } = seenOf(state);
    const hub = {
      facts,
      deleting: state.status === 'deleting',
      health,
      limits: limitsOf(facts, limits),
      cluster: expectedCluster(state),
      kubeconfig: state.secrets[KUBECONFIG_PATH],
      ...automationOf(state.secrets),
      revision,
      tenant: state.tenant,
      project: state.project,
    };
    return { ...hub, adapter: clusters.of(connectionOf(hub)) };
  };

  /** The hub stays as it was known: its aggregate folds no further either. */
  const passOver = ({ stream, revision, reason }: UnreadableEvent): void =>
    logger.error({ stream, revision, reason }, 'event unreadable; hub stays as last known');

  /** From the beginning of the log to its end and on. What was known stays until the end is reached once more. */
  const follow = async (signal: AbortSignal): Promise<void> => {
    ready = false;
    known = [...hubs.keys()];
    states.clear();
    counts.clear();
    tenants.clear();
    pools.clear();
    spaces.clear();
    const filter = { typePrefixes: [...HUB_TYPES, ...POOL_TYPES, ...SPACE_TYPES, RESERVED, RELEASED] };
    for await (const item of store.subscribe({
      filter,
      signal,
      patienceMs: PATIENCE_MS,
      name: 'hub registry',
    })) {
      if (item.kind === 'event') see(item.event);
      else if (item.kind === 'caught-up') becomeReady();
      else if (item.kind === 'unreadable') passOver(item.event);
    }
  };

  const becomeReady = (): void => {
    if (ready) return;
    ready = true;
    caughtUp.resolve();
    for (const id of known) {
      if (states.has(id)) continue;
      if (hubs.delete(id)) clusters.forget?.(id);
      for (const listener of listeners) listener(id, undefined);
    }
    for (const [id, hub] of hubs) for (const listener of listeners) listener(id, hub);
  };

  return {
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          await follow(signal);
        } catch (error) {
          if (!(error instanceof LogReplaced)) throw error;
          logger.warn({ reason: error.message }, 'log replaced: reading the hubs again');
          await pause(timers, READ_AGAIN_MS, signal);
        }
      }
    },
    ready: async (signal) => {
      await (signal === undefined ? caughtUp.promise : Promise.race([caughtUp.promise, aborted(signal)]));
      signal?.throwIfAborted();
    },
    hubs: () => [...hubs.values()],
    get: (id) => hubs.get(id),
    holdersOf: (hub, tenant, kind) =>
      [...(counts.get(hub)?.get(tenant) ?? [])].reduce(
        (sum, [each, count]) => (kind === undefined || each === kind ? sum + count : sum),
        0,
      ),
    tenantOf: (hub, holder) => tenants.get(hub)?.get(holderKey(holder)),
    tenantsOn: (hub) => [...(counts.get(hub)?.keys() ?? [])],
    spacesOn: spaces.on,
    agentPool: (hub) => pools.get(hub),
    onChange: (listener) => {
      listeners.add(listener);
      if (ready) for (const [id, hub] of hubs) listener(id, hub);
      return () => listeners.delete(listener);
    },
  };
};

/** How a registered hub is called. */
export const connectionOf = ({
  facts,
  tenant,
  revision,
  kubeconfig,
  cluster,
}: Omit<RegisteredHub, 'adapter'>): HubConnection => ({
  id: facts.id,
  namespace: facts.namespace,
  tenant,
  revision,
  controller: facts.controller,
  tenantNamespaces: facts.tenantNamespaces,
  otherNamespaces: Object.values(facts.namespaces),
  ...defined({ kubeconfig, cluster }),
});

const seenOf = (state: HubState): Pick<RegisteredHub, 'health' | 'limits'> => {
  const { health = {} } = state;
  const declared = 'document' in state ? capacityLimitsOf(state.document) : {};
  return { health, limits: limitsWithHosts(declared, health.hosts?.counts) };
};

type Secrets = { readonly [path: string]: SecretRef };

const automationOf = (secrets: Secrets): Pick<RegisteredHub, 'automation' | 'formerAutomation'> => {
  const now = secretsOf(secrets, TOKEN_PATH, HMAC_SECRET_PATH);
  const former = AUTOMATED_MODES.flatMap((mode) => {
    const paths = [formerSecretPath(mode, 'token'), formerSecretPath(mode, 'hmac_secret')] as const;
    const kept = secretsOf(secrets, ...paths);
    return kept === undefined ? [] : [[mode, kept] as const];
  });
  return {
    ...(now === undefined ? {} : { automation: now }),
    ...(former.length === 0 ? {} : { formerAutomation: Object.fromEntries(former) }),
  };
};

const secretsOf = (
  secrets: Secrets,
  tokenPath: string,
  hmacSecretPath: string,
): AutomationSecrets | undefined => {
  const { [tokenPath]: token, [hmacSecretPath]: hmacSecret } = secrets;
  if (token === undefined && hmacSecret === undefined) return undefined;
  return defined({ token, hmacSecret });
};
