import { NO_NETWORK_FAULTS, type NetworkFaults } from './caller.ts';
import type { Moment } from './life.ts';
import { randomOf, type Random } from './random.ts';
import { NO_STORE_FAULTS, type StoreFaults } from './store-port.ts';
import { FAILPOINTS } from '../../../src/app/process-runner/types.ts';

export type HubPlan = {
  /** Every step is the hub's own. */
  readonly delegated?: true;
  readonly id: string;
  readonly controlPlanes: number;
  readonly nodes: number;
  /** Nobody ever reaches it. */
  readonly away?: true;
  /** Its zone, which has a site. */
  readonly zone?: string;
  /** Absent: registered at the beginning. */
  readonly registeredAt?: number;
};

/** Hubs whose automation the service runs, instead of simulated ones. */
export type RealHubPlan = {
  readonly mode: 'eda' | 'aap';
  readonly controller: 'operator' | 'ledger';
  /** Chance (0 to 1) that a playbook fails, or that a webhook is accepted and forgotten. */
  readonly failures: number;
  /** How many times longer than usual its playbooks take. */
  readonly pace: number;
};

/** Everything about a simulation that is decided before it starts. */
export type Plan = {
  readonly seed: number;
  /** One instance on a store of its own, or several on one that others write to as well. */
  readonly singleWriter: boolean;
  readonly instances: number;
  /** The file of an instance's runs survives its death. (Files of read models are removed by threads, in real time.) */
  readonly keepsIndex: boolean;
  readonly store: StoreFaults;
  readonly network: NetworkFaults;
  readonly hubs: readonly HubPlan[];
  /** Absent: the hubs are simulated ones. */
  readonly real?: RealHubPlan;
  /** Incarnations that die before the end. */
  readonly deaths: number;
  /** How they die; absent: as chance has it. */
  readonly death?: Death;
  /** Pairs of networks that are ordered. */
  readonly networks?: number;
  /** Clusters that are ordered. */
  readonly clusters: number;
  /** Milliseconds in which everything but the end happens. */
  readonly activeMs: number;
  readonly clockJumps: boolean;
  /** Changes of the hubs' own behaviour. */
  readonly hubTroubles: number;
  readonly stalls: number;
  readonly deletesAll: boolean;
  /** Objects of all kinds are ordered; see `every-kind.ts`. */
  readonly everyKind?: EveryKindPlan;
};

export type EveryKindPlan = {
  /** Tenants that come with default networking, and go again. */
  readonly guests: number;
  /** Nobody reaches its first hub for so long, from this moment on: virtual milliseconds. */
  readonly outage?: { readonly from: number; readonly ms: number };
  /** What each tenant does once it has something of every kind. */
  readonly deeds: number;
};

/** `mode`: its hubs are of this mode; absent: of the one that the seed gives, most of them simulated. */
export const planOf = (seed: number, mode?: RealHubPlan['mode']): Plan => {
  const random = randomOf(seed).fork('plan');
  const singleWriter = random.chance(0.55);
  const instances = singleWriter || random.chance(0.25) ? 1 : 2;
  const calm = random.chance(0.1);
  const keepsIndex = random.chance(0.6);
  const [store, network, hubs] = [storeOf(random, calm), networkOf(random, calm), hubsOf(random)];
  const real = realOf(randomOf(seed).fork('real'), mode);
  // Of simulated hubs alone, and of few worlds: others find what they found before.
  const isNetworked = seed % 4 === 0 && real === undefined;
  return {
    seed,
    singleWriter,
    instances,
    keepsIndex,
    // A read model is checked against many more streams there, all of them in one go.
    store: isNetworked ? { ...store, brokenRead: store.brokenRead / 8 } : store,
    network,
    hubs: real === undefined ? hubs : hubs.map((hub) => ({ ...hub, id: hub.id.replace('sim-', 'hub-') })),
    ...(real === undefined ? {} : { real }),
    deaths: calm ? 0 : random.pick([0, 1, 1, 2, 2, 3]),
    ...(isNetworked ? { networks: 2 } : {}),
    clusters: random.int(1, 4),
    activeMs: random.int(15, 40) * 1_000,
    clockJumps: random.chance(0.12),
    hubTroubles: calm ? 0 : random.int(0, 3),
    stalls: instances > 1 ? random.int(0, 2) : 0,
    deletesAll: random.chance(0.5),
  };
};

const storeOf = (random: Random, calm: boolean): StoreFaults =>
  calm || random.chance(0.2) ? NO_STORE_FAULTS : storeFaults(random);
const networkOf = (random: Random, calm: boolean): NetworkFaults =>
  calm || random.chance(0.2) ? NO_NETWORK_FAULTS : networkFaults(random);

const realOf = (random: Random, mode?: RealHubPlan['mode']): RealHubPlan | undefined =>
  random.chance(0.6) && mode === undefined
    ? undefined
    : {
        mode: mode ?? random.pick(['eda', 'aap'] as const),
        controller: random.pick(['operator', 'ledger'] as const),
        failures: random.chance(0.5) ? random.next() * 0.3 : 0,
        pace: random.int(1, 8),
      };

/** Each kind of misfortune is absent in some simulations, so that no other hides behind it. */
const rate = (random: Random, most: number): number => (random.chance(0.5) ? random.next() * most : 0);

const storeFaults = (random: Random): StoreFaults => ({
  unavailable: rate(random, 0.06),
  lostAnswer: rate(random, 0.08),
  lostRequest: rate(random, 0.06),
  late: rate(random, 0.06),
  slow: rate(random, 0.1),
  brokenRead: rate(random, 0.06),
  held: rate(random, 0.2),
});

const networkFaults = (random: Random): NetworkFaults => ({
  refused: rate(random, 0.15),
  lostRequest: rate(random, 0.15),
  lostAnswer: rate(random, 0.2),
  late: rate(random, 0.15),
  twice: rate(random, 0.2),
  slow: rate(random, 0.2),
  shuffled: rate(random, 0.3),
});

const hubsOf = (random: Random): readonly HubPlan[] => {
  const hubs: HubPlan[] = [
    { id: 'sim-a', controlPlanes: random.int(1, 4), nodes: random.int(3, 10) },
    { id: 'sim-b', controlPlanes: random.int(1, 3), nodes: random.int(2, 8) },
  ];
  if (random.chance(0.4)) {
    hubs.push({
      id: 'sim-c',
      controlPlanes: random.int(1, 3),
      nodes: random.int(3, 8),
      registeredAt: random.int(1, 30) * 1_000,
    });
  }
  return hubs;
};

/** How one incarnation dies: at the n-th time that a moment comes, or some time after its birth. */
export type Death =
  | { readonly at: Moment; readonly count: number }
  | { readonly afterMs: number; readonly graceful: boolean };

export const deathOf = (random: Random): Death => {
  const kind = random.next();
  if (kind < 0.3) {
    return { at: random.pick(['before append', 'after append'] as const), count: random.int(1, 80) };
  }
  if (kind < 0.5) {
    return { at: random.pick(['before effect', 'after effect'] as const), count: random.int(1, 6) };
  }
  if (kind < 0.8) {
    const name = random.pick(FAILPOINTS);
    return { at: `at ${name}`, count: random.int(1, name === 'before-timer' ? 3 : 25) };
  }
  return { afterMs: random.int(1, 25_000), graceful: random.chance(0.3) };
};
