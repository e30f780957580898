import { setTimeout as pause } from 'node:timers/promises';
import { startKubeFaultProxy } from '../../../../test/support/kube-apiserver/fault-proxy.ts';
import { percentile, processorMs, residentMb } from '../report.ts';
import { createPlayer, type PlayedOrder } from './player.ts';
import { CLUSTERS, eventually, inParallel, startHubRig, watchCreations, type HubRig } from './rig.ts';

/** What every part is run with. */
export type PartOptions = {
  readonly real: boolean;
  /** Orders of a run. */
  readonly orders: number;
  /** Status changes a second. */
  readonly rate: number;
  readonly seconds: number;
  /** Options of node for the service, for example `--cpu-prof`. */
  readonly nodeOptions: readonly string[];
};

const CLIENTS = 32;
const LATE_MS = 10_000;
/** Status changes that the hub may have before it answers. */
const MAX_WRITING = 64;
/** Two rounds of ten thousand clusters at 20 a second are 1,000 s. */
const ROUND_MS = 1_500_000;
/** Questions about rights and identity are POSTs that change nothing, and so are rehearsals (`dryRun`). */
const REVIEWS = /^\/apis\/auth(entication|orization)\.k8s\.io\//;

const ms = (values: readonly number[]): string =>
  values.length === 0
    ? 'none'
    : `p50 ${percentile(values, 0.5).toFixed(0)}, p99 ${percentile(values, 0.99).toFixed(0)}, max ${Math.max(...values).toFixed(0)} ms`;

const withRig = async (options: PartOptions, run: (rig: HubRig) => Promise<void>): Promise<void> => {
  const rig = await startHubRig(options.real, options.nodeOptions);
  try {
    await run(rig);
  } finally {
    await rig.close();
  }
};

/** Orders as fast as 32 clients post them; until the last one is on a hub. Nobody plays an operator. */
export const dispatchPart = (options: PartOptions, hubs: number): Promise<void> =>
  withRig(options, async (rig) => {
    for (let n = 1; n <= hubs; n += 1) await rig.addHub({ id: `hub-${n}` });
    const creations = await watchCreations(rig.kube);
    const acceptedAt = new Map<string, number>();
    const usedBefore = processorMs(rig.bench.service.pid);
    const started = performance.now();
    await inParallel(Array.from({ length: options.orders }), CLIENTS, async (_, n) => {
      acceptedAt.set(await rig.order(`o-${n}`), performance.now());
    });
    const posted = performance.now();
    await eventually('every order is on a hub', () =>
      acceptedAt.keys().every((id) => creations.seenAt.has(id)),
    );
    const used = processorMs(rig.bench.service.pid) - usedBefore;
    const last = Math.max(...creations.seenAt.values());
    // What was left when the last answer came is dispatched beside nothing else.
    const left = [...creations.seenAt.values()].filter((at) => at > posted).length;
    const waits = [...acceptedAt].map(([id, at]) => (creations.seenAt.get(id) ?? Number.NaN) - at);
    creations.close();
    console.log(
      `${hubs} hub(s): ${((1000 * options.orders) / (last - started)).toFixed(0)} dispatches/s; ` +
        `${options.orders} orders posted in ${((posted - started) / 1000).toFixed(1)} s, on the hub after ${((last - started) / 1000).toFixed(1)} s, the ${left} that were left then at ${((1000 * left) / (last - posted)).toFixed(0)}/s; ` +
        `accepted → seen on the hub ${ms(waits)}; ${(used / options.orders).toFixed(1)} ms of processor time per order`,
    );
  });

/** Node counts change on the hub; sampled ones are read over HTTP until they show. */
export const statusPart = (options: PartOptions): Promise<void> =>
  withRig(options, async (rig) => {
    const { rate, seconds } = options;
    await rig.addHub({ id: 'hub-1' });
    const player = createPlayer(rig.kube);
    const orders = await readyOrders(rig, options.orders);
    const usedBefore = processorMs(rig.bench.service.pid);
    const total = rate * seconds;
    // About 20 a second are read: more would measure the reading.
    const every = Math.max(1, Math.round(rate / 20));
    const delays: number[] = [];
    const late = { count: 0, writes: 0 };
    const started = performance.now();
    const under: Promise<void>[] = [];
    const writing = new Set<Promise<void>>();
    for (let n = 0; n < total; n += 1) {
      const due = started + (n * 1000) / rate;
      const wait = due - performance.now();
      if (wait > 1) await pause(wait);
      const order = orders[n % orders.length] as PlayedOrder;
      // One pass takes a node away, the next one gives it back: each change is seen.
      const nodes = order.size - (Math.floor(n / orders.length) % 2 === 0 ? 1 : 0);
      // A hub that is slower than asked for is not buried: the rate that was reached is told.
      while (writing.size >= MAX_WRITING) await Promise.race(writing);
      const write = player.setNodes(order, nodes).finally(() => writing.delete(write));
      writing.add(write);
      late.writes = Math.max(late.writes, performance.now() - due);
      under.push(n % every === 0 ? write.then(() => untilSeen(rig, order, nodes, delays, late)) : write);
    }
    const sent = performance.now() - started;
    await Promise.all(under);
    const used = processorMs(rig.bench.service.pid) - usedBefore;
    console.log(
      `${total} changes of ${orders.length} orders at ${((1000 * total) / sent).toFixed(0)}/s (asked for ${rate}/s): ` +
        `hub answered → read shows it ${ms(delays)} of ${delays.length} samples, ${late.count} not within ${LATE_MS / 1000} s; ` +
        `${(used / total).toFixed(1)} ms of processor time per change`,
    );
  });

const readyOrders = async (rig: HubRig, count: number): Promise<readonly PlayedOrder[]> => {
  await inParallel(Array.from({ length: count }), CLIENTS, async (_, n) => {
    await rig.order(`o-${n}`);
  });
  return becomeReady(rig, count);
};

/** Waits for so many orders on the hub and plays them to the end. */
const becomeReady = async (rig: HubRig, count: number): Promise<readonly PlayedOrder[]> => {
  const player = createPlayer(rig.kube);
  await eventually('every order is on the hub', async () => (await player.orders('hub-1')).length >= count);
  const orders = await player.orders('hub-1');
  await player.makeReady(orders);
  await eventually('every order is ready', async () => (await notReady(rig)) === 0);
  return orders;
};

const notReady = async (rig: HubRig): Promise<number> => {
  const filter = encodeURIComponent('this.status.state != CLUSTER_STATE_READY');
  return (await rig.user.get<{ total?: number }>(`${CLUSTERS}?limit=0&filter=${filter}`)).total ?? 0;
};

type Shown = {
  readonly status?: { readonly node_sets?: { readonly [name: string]: { readonly size?: number } } };
};

const untilSeen = async (
  { user }: HubRig,
  order: PlayedOrder,
  nodes: number,
  delays: number[],
  late: { count: number },
): Promise<void> => {
  const from = performance.now();
  for (;;) {
    const { status } = await user.get<Shown>(`${CLUSTERS}/${order.clusterId}`);
    const shown = Object.values(status?.node_sets ?? {}).reduce((sum, { size = 0 }) => sum + size, 0);
    const passed = performance.now() - from;
    if (shown === nodes) return void delays.push(passed);
    if (passed > LATE_MS) return void (late.count += 1);
    await pause(10);
  }
};

/** Orders in flight that are changed three times each while they are: what the hub is written for that. */
export const flightPart = (options: PartOptions): Promise<void> =>
  withRig(options, async (rig) => {
    const CHANGES = 3;
    const proxy = await startKubeFaultProxy(rig.access);
    try {
      await rig.addHub({ id: 'hub-1', through: proxy });
      const player = createPlayer(rig.kube);
      const ids: string[] = [];
      await inParallel(Array.from({ length: options.orders }), CLIENTS, async (_, n) => {
        ids.push(await rig.order(`o-${n}`));
      });
      await eventually(
        'every order is on the hub',
        async () => (await player.orders('hub-1')).length === ids.length,
      );
      await player.accept(await player.orders('hub-1'));
      const wanted = 2 + CHANGES;
      await inParallel(ids, CLIENTS, async (id) => {
        for (let change = 1; change <= CHANGES; change += 1) {
          const spec = { node_sets: { workers: { size: 2 + change } } };
          await rig.user.send('PATCH', `${CLUSTERS}/${id}`, { spec });
        }
      });
      await eventually('the hub holds every last change', async () =>
        (await player.orders('hub-1')).every(({ size }) => size === wanted),
      );
      await player.makeReady(await player.orders('hub-1'));
      await eventually('every order is ready', async () => (await notReady(rig)) === 0);
      const writes = proxy
        .seen()
        .filter(({ method, path }) => method !== 'GET' && !REVIEWS.test(path) && !path.includes('dryRun='));
      const asked = ids.length * (1 + CHANGES);
      let versions = 0;
      await inParallel(ids, CLIENTS, async (id) => {
        const { metadata } = await rig.user.get<{ metadata: { version?: number } }>(`${CLUSTERS}/${id}`);
        versions += metadata.version ?? 0;
      });
      const by = Map.groupBy(writes, ({ method }) => method);
      const kinds = [...by].map(([method, each]) => `${each.length} ${method}`).join(', ');
      const reads = proxy.seen().filter(({ method }) => method === 'GET').length;
      console.log(
        `${ids.length} orders in flight, each changed ${CHANGES} times: ${writes.length} hub writes (${kinds}), ` +
          `${(writes.length / asked).toFixed(2)} per order or change that was asked for, ` +
          `${(writes.length / versions).toFixed(2)} per version of a document (${versions}); ${reads} reads`,
      );
    } finally {
      await proxy.close();
    }
  });

/** Resident memory of the service, the hubs' thread included, with so many orders watched. */
export const memoryPart = async (
  options: PartOptions,
  sizes: readonly number[],
  kind: 'seen' | 'ordered',
): Promise<void> =>
  withRig(options, async (rig) => {
    await rig.addHub({ id: 'hub-1' });
    const player = createPlayer(rig.kube);
    const { pid } = rig.bench.service;
    const taken: { readonly size: number; readonly mb: number }[] = [];
    for (const size of [0, ...sizes]) {
      const from = taken.at(-1)?.size ?? 0;
      if (kind === 'seen') await player.seed('hub-1', from, size);
      else {
        await inParallel(Array.from({ length: size - from }), CLIENTS, async (_, n) => {
          await rig.order(`o-${from + n}`);
        });
        await becomeReady(rig, size);
      }
      await atRest(pid);
      taken.push({ size, mb: residentMb(pid) });
    }
    const [first, last] = [taken[1], taken.at(-1)];
    const slope =
      first === undefined || last === undefined || last.size === first.size
        ? Number.NaN
        : ((last.mb - first.mb) / (last.size - first.size)) * 10_000;
    console.log(
      `orders ${kind === 'seen' ? 'seen on the hub' : 'ordered here'}: ` +
        `${taken.map(({ size, mb }) => `${size} → ${mb.toFixed(0)} MB`).join(', ')}; ` +
        `from the second to the last ${slope.toFixed(0)} MB per 10,000`,
    );
  });

/** Uses less than a tenth of a core for two seconds on end, or had time to: many orders are read on a timer for ever. */
const atRest = async (pid: number): Promise<void> => {
  for (let looks = 0; looks < 10; looks += 1) {
    const before = processorMs(pid);
    await pause(2_000);
    if (processorMs(pid) - before < 200) return;
  }
};

export type LooksOptions = PartOptions & {
  /** Null: none, as a hub has by default. */
  readonly pacing: { readonly calls_per_second: number; readonly burst: number } | null;
};
const HOSTED = /\/hostedclusters\/([^/?]+)/;

/** At the pace of `pacing`: how long apart the looks at one READY cluster are, over two rounds of all. */
export const looksPart = (options: LooksOptions): Promise<void> =>
  withRig(options, async (rig) => {
    const proxy = await startKubeFaultProxy(rig.access);
    try {
      await rig.addHub({ id: 'hub-1', through: proxy });
      await readyOrders(rig, options.orders);
      await rig.admin.send('PATCH', '/api/private/v1/hubs/hub-1', { spec: { pacing: options.pacing } });
      const lastAt = new Map<string, number>();
      const gaps = new Map<string, number>();
      proxy.onCall(({ path, moment }) => {
        const name = HOSTED.exec(path)?.[1];
        if (moment === 'arrived' && name !== undefined) {
          const at = performance.now();
          const before = lastAt.get(name);
          if (before !== undefined) gaps.set(name, at - before);
          lastAt.set(name, at);
        }
        return 'pass';
      });
      const started = performance.now();
      await eventually('every cluster was looked at', () => lastAt.size === options.orders, ROUND_MS);
      const round = performance.now() - started;
      const { pacing } = options;
      const pace = pacing === null ? 'the default pace' : `${pacing.calls_per_second} effects a second`;
      gaps.clear();
      await eventually('every cluster was looked at again', () => gaps.size === options.orders, ROUND_MS);
      console.log(
        `${options.orders} READY clusters, ${pace}: all looked at once after ` +
          `${(round / 1000).toFixed(0)} s; from one look at a cluster to the next ${ms([...gaps.values()])}`,
      );
    } finally {
      await proxy.close();
    }
  });

/** Orders at a steady pace for all hubs in turn, before and while one of them answers nothing. */
export const hungPart = (options: PartOptions, hubs: number, perSecond: number): Promise<void> =>
  withRig(options, async (rig) => {
    const proxy = await startKubeFaultProxy(rig.access);
    try {
      for (let n = 1; n < hubs; n += 1) await rig.addHub({ id: `hub-${n}` });
      await rig.addHub({ id: `hub-${hubs}`, through: proxy });
      const creations = await watchCreations(rig.kube);
      const measure = async (phase: string): Promise<void> => {
        const waits = await steadyOrders(rig, creations.seenAt, {
          phase,
          hubs,
          perSecond,
          seconds: options.seconds,
        });
        console.log(
          `${phase}: accepted → seen on one of the other ${hubs - 1} hubs ${ms(waits)}, ${waits.length} orders`,
        );
      };
      // The first orders of a process are slower than any later ones.
      await steadyOrders(rig, creations.seenAt, { phase: 'warm up', hubs, perSecond, seconds: 2 });
      await measure('all hubs answer');
      proxy.hang();
      await measure('one hub hangs');
      creations.close();
    } finally {
      proxy.clear();
      await proxy.close();
    }
  });

const steadyOrders = async (
  rig: HubRig,
  seenAt: ReadonlyMap<string, number>,
  plan: {
    readonly phase: string;
    readonly hubs: number;
    readonly perSecond: number;
    readonly seconds: number;
  },
): Promise<readonly number[]> => {
  const acceptedAt = new Map<string, number>();
  const started = performance.now();
  const posts: Promise<void>[] = [];
  for (let n = 0; n < plan.perSecond * plan.seconds; n += 1) {
    const wait = started + (n * 1000) / plan.perSecond - performance.now();
    if (wait > 1) await pause(wait);
    const hub = (n % plan.hubs) + 1;
    const name = `${plan.phase.replaceAll(' ', '-')}-${n}`;
    const post = async (): Promise<void> => {
      const id = await rig.order(name, `hub-${hub}`);
      if (hub !== plan.hubs) acceptedAt.set(id, performance.now());
    };
    posts.push(post());
  }
  await Promise.all(posts);
  await eventually('every order of the other hubs is on its hub', () =>
    acceptedAt.keys().every((id) => seenAt.has(id)),
  );
  return [...acceptedAt].map(([id, at]) => (seenAt.get(id) ?? Number.NaN) - at);
};
