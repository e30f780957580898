import type { JsonObject } from '../../domain/json.ts';
import type { CallOptions } from '../hubs/management-cluster.ts';

/**
 * Ports of a site: what stands around its hubs and is configured for an order. All methods throw SiteError.
 *
 * - Every write names its owner, so that it can be repeated, looked for and taken away. What carries another mark is left
 *   alone: a creation is refused as `conflict`, and a removal takes nothing away.
 * - A write is answered once it is taken. `observe` shows it when it works everywhere, and until nothing of it is left
 *   anywhere: so a creation is awaited, and a removal repeated, by looks.
 * - A creation that was sent before a removal of the same mark, and comes after it, is refused.
 */
export type OwnerMark = {
  /** Id of the object that it was made for. */
  readonly order: string;
  /** Of the allocation: what is made anew after its removal is another one. */
  readonly generation: number;
};

export type SiteErrorKind =
  /** Will never be taken as it is. */
  | 'refused'
  /** Something of another owner stands there. Nothing was changed. */
  | 'conflict'
  /** Certainly not carried out. */
  | 'unavailable'
  /** May have been carried out: look first. */
  | 'unknown-outcome';

export class SiteError extends Error {
  override readonly name = 'SiteError';
  readonly kind: SiteErrorKind;
  readonly retryAfterMs?: number;
  constructor(kind: SiteErrorKind, message: string, retryAfterMs?: number) {
    super(message);
    this.kind = kind;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** Something that carries our mark, as the far side shows it. */
export type Marked<Spec> = { readonly owner: OwnerMark; readonly spec: Spec };

export type FabricNetwork = { readonly fabric: string; readonly vlanId: number };
/** `switch` and `port` as the agent's link says. */
export type FabricPort = { readonly fabric: string; readonly switch: string; readonly port: string };
export type BoundPort = FabricPort & { readonly vlanId: number };

/** L2: VLANs on the switches of a fabric, and the ports that are in them. */
export type NetworkFabric = {
  createNetwork(network: FabricNetwork, owner: OwnerMark, options: CallOptions): Promise<void>;
  deleteNetwork(network: FabricNetwork, owner: OwnerMark, options: CallOptions): Promise<void>;
  bindPort(port: BoundPort, owner: OwnerMark, options: CallOptions): Promise<void>;
  /** Back to the VLAN in which machines are provisioned. */
  resetPort(port: FabricPort, owner: OwnerMark, options: CallOptions): Promise<void>;
  /** Of one order, or of everybody: what the reconciler compares. */
  observe(
    of: { readonly order?: string },
    options: CallOptions,
  ): Promise<{
    readonly networks: readonly Marked<FabricNetwork>[];
    readonly ports: readonly Marked<BoundPort>[];
  }>;
};

export type L3Network = {
  readonly vrf: string;
  /** One of each family at most. */
  readonly prefixes: readonly string[];
  readonly gateways: readonly string[];
  readonly dhcp: boolean;
};
/** An address of an external pool that leads to an endpoint of a cluster. */
export type Nat = { readonly address: string; readonly endpoint: 'api' | 'ingress'; readonly vrf: string };
export type L3Binding = FabricNetwork & { readonly vrf: string; readonly prefixes: readonly string[] };

export type L3 = {
  createNetwork(network: L3Network, owner: OwnerMark, options: CallOptions): Promise<void>;
  deleteNetwork(network: L3Network, owner: OwnerMark, options: CallOptions): Promise<void>;
  bind(binding: L3Binding, owner: OwnerMark, options: CallOptions): Promise<void>;
  unbind(binding: L3Binding, owner: OwnerMark, options: CallOptions): Promise<void>;
  ensureNat(nat: Nat, owner: OwnerMark, options: CallOptions): Promise<void>;
  removeNat(nat: Nat, owner: OwnerMark, options: CallOptions): Promise<void>;
  observe(
    of: { readonly order?: string },
    options: CallOptions,
  ): Promise<{
    readonly networks: readonly Marked<L3Network>[];
    readonly bindings: readonly Marked<L3Binding>[];
    readonly nats: readonly Marked<Nat>[];
  }>;
};

/** `name` is absolute, without the last dot; a wildcard begins with `*.`. */
export type DnsRecord = {
  readonly name: string;
  readonly type: 'A' | 'AAAA';
  readonly values: readonly string[];
  readonly ttlSeconds: number;
};

export type Dns = {
  /** `conflict`: a record of that name is another owner's. It stays as it is. */
  ensure(records: readonly DnsRecord[], owner: OwnerMark, options: CallOptions): Promise<void>;
  /** Takes away those of the owner whose values are still these. */
  remove(records: readonly DnsRecord[], owner: OwnerMark, options: CallOptions): Promise<void>;
  /** Whether every authoritative server answers with them. */
  propagated(
    records: readonly DnsRecord[],
    options: CallOptions,
  ): Promise<{ readonly missing: readonly string[] }>;
  observe(of: { readonly order?: string }, options: CallOptions): Promise<readonly Marked<DnsRecord>[]>;
};

/** A host that waits to join a cluster. `hostClass`: id of its host type. */
export type SiteAgent = {
  readonly id: string;
  readonly hub: string;
  readonly hostClass: string;
  readonly links: readonly (FabricPort & { readonly mac: string })[];
};

export type Agents = {
  /** Marks it as the order's. `conflict`: it is another one's. */
  label(agent: string, owner: OwnerMark, options: CallOptions): Promise<void>;
  /** Starts to wipe it; the mark goes with the end of that. `conflict`: it is another one's, and is left alone. */
  clean(agent: string, owner: OwnerMark, options: CallOptions): Promise<void>;
  /** Those of the order, or of everybody. `addresses`: what it was seen to have. `cleaned`: with evidence of the last wipe. */
  observe(
    of: { readonly hub: string; readonly order?: string },
    options: CallOptions,
  ): Promise<
    readonly (SiteAgent & {
      readonly state: 'free' | 'labelled' | 'cleaning' | 'failed';
      readonly owner?: OwnerMark;
      readonly addresses: readonly string[];
      readonly cleaned?: { readonly at: string; readonly evidence: string };
    })[]
  >;
};

export type Discovery = {
  /** Asks for one more host of a class. Answers at once; the agent appears later, or never. */
  discover(
    wanted: { readonly id: string; readonly hub: string; readonly hostClass: string },
    options: CallOptions,
  ): Promise<void>;
  /** How many hosts of the class the hub has that were not discovered yet. Undefined: nobody knows. */
  remaining(
    of: { readonly hub: string; readonly hostClass: string },
    options: CallOptions,
  ): Promise<number | undefined>;
  observe(
    of: { readonly hub: string },
    options: CallOptions,
  ): Promise<
    readonly {
      readonly id: string;
      readonly state: 'discovering' | 'found' | 'failed';
      readonly agent?: string;
    }[]
  >;
};

export type ClusterTask = {
  readonly name: string;
  readonly phase: 'post-install' | 'validation';
  readonly cluster: string;
  readonly hub: string;
};

export type TaskResult =
  | { readonly state: 'running'; readonly since: string }
  | {
      readonly state: 'passed' | 'failed';
      readonly message: string;
      readonly evidence: JsonObject;
    };

/** Work on a cluster that runs: each task converges and may be repeated. */
export type Tasks = {
  /**
   * Starts the task, or says what became of the run that goes on. An effect is told one result, however often it asks;
   * another effect that asks after that starts another run.
   */
  run(task: ClusterTask, owner: OwnerMark, options: CallOptions): Promise<TaskResult>;
};

/** What of a site can be reached. */
export type Site = {
  readonly fabric: NetworkFabric;
  readonly l3: L3;
  readonly dns: Dns;
  readonly agents: Agents;
  readonly discovery: Discovery;
  readonly tasks: Tasks;
};

/** Adapters of the sites, by zone. Undefined: nothing in this release reaches that site. */
export type Sites = {
  of(zone: string): Site | undefined;
};
