import { createRandom } from '../event-store/faulty-store.ts';
import { dataText, metadataText } from './stored-log.ts';
import { CLUSTERS, isReady, until, type ClusterBody, type Stack } from './stack.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';

/** One command with its idempotency key: sent until it is answered with success, however often the service dies. */
export type Operation = {
  /** Idempotency key and request id alike, so that its event is found by its correlation id. */
  readonly id: string;
  readonly verb: 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body: object;
  /** The one event that it leaves in the cluster's stream. */
  readonly event: 'ClusterOrdered' | 'ClusterLabelled' | 'NodeSetResized' | 'ClusterDeletionRequested';
  attempts: number;
  acknowledged: boolean;
  /** Set by the answer of a POST, known before for the others. */
  cluster: string | undefined;
};

type Expected = {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly size: number;
  readonly deleted: boolean;
};

const TEMPLATE = 'osac.templates.ocp_ci_small';
const NODE_SET = 'workers';
/** Clusters that one client keeps; beyond it deletes the oldest. */
const KEPT = 3;

export type Load = {
  readonly operations: readonly Operation[];
  /** Sends commands until `enough` or until the service is gone; never throws for what a crash explains. */
  run(enough: (acknowledged: number) => boolean, clients?: number): Promise<void>;
  /** Repeats every unanswered command with its key until it is answered. */
  settle(): Promise<void>;
  /** What every cluster must look like now that all is settled. */
  expected(): readonly Expected[];
};

/** Clients that post, patch (labels and sizes, also both at once) and delete clusters at the same time. */
export const createLoad = (
  stack: Stack,
  token: string,
  { seed, clients }: { readonly seed: number; readonly clients: number },
): Load => {
  const operations: Operation[] = [];
  const states = Array.from({ length: clients }, (_, n) => createClient(`c${n}`, seed + n, operations));

  /** True when it was answered with success; false when it has to be repeated. */
  const send = async (operation: Operation): Promise<boolean> => {
    operation.attempts += 1;
    const answer = await fetch(`${stack.http()}${operation.path}`, {
      method: operation.verb,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': `"${operation.id}"`,
        'x-request-id': operation.id,
      },
      body: JSON.stringify(operation.body),
    }).then(
      async (response) => ({ status: response.status, text: await response.text() }),
      () => undefined,
    );
    if (answer === undefined || answer.status === 503 || answer.status === 504) return false;
    if (answer.status !== 200)
      throw new Error(
        `${operation.verb} ${operation.path} (${operation.id}, attempt ${operation.attempts}) answered ${answer.status}: ${answer.text}`,
      );
    if (operation.verb === 'POST') operation.cluster = (JSON.parse(answer.text) as ClusterBody).id;
    operation.acknowledged = true;
    return true;
  };

  const acknowledged = (): number => operations.filter((operation) => operation.acknowledged).length;

  return {
    operations,
    run: async (enough, active = clients) => {
      const before = acknowledged();
      await Promise.all(
        states.slice(0, active).map(async (client) => {
          while (!enough(acknowledged() - before)) {
            const answered = await Promise.all(client.next().map(send));
            if (answered.includes(false)) return;
            client.settled();
          }
        }),
      );
    },
    settle: async () => {
      await Promise.all(
        states.map(async (client) => {
          for (const operation of client.pending())
            if (!operation.acknowledged) await until(`${operation.id} is answered`, () => send(operation));
          client.settled();
        }),
      );
    },
    expected: () => states.flatMap((client) => client.clusters()),
  };
};

/** Decides what one client does next; its clusters are its own, so that what they must look like is known. */
const createClient = (name: string, seed: number, operations: Operation[]) => {
  const random = createRandom(seed);
  const clusters = new Map<string, { labels: Record<string, string>; size: number; deleted: boolean }>();
  let pending: { operation: Operation; settle: () => void }[] = [];
  let count = 0;

  const plan = (
    verb: Operation['verb'],
    cluster: string | undefined,
    event: Operation['event'],
    body: (id: string) => object,
    settle: (operation: Operation) => void,
  ): void => {
    const id = `${name}-${(count += 1)}`;
    const path = cluster === undefined ? CLUSTERS : `${CLUSTERS}/${cluster}`;
    const operation = { id, verb, path, body: body(id), event, attempts: 0, acknowledged: false, cluster };
    operations.push(operation);
    pending.push({ operation, settle: () => settle(operation) });
  };

  const order = (): void =>
    plan(
      'POST',
      undefined,
      'ClusterOrdered',
      (id) => ({
        metadata: { name: id, annotations: { simulation: 'factor=0.05' } },
        spec: { template: { id: TEMPLATE } },
      }),
      ({ cluster = '' }) => clusters.set(cluster, { labels: {}, size: 1, deleted: false }),
    );
  const label = (id: string, cluster: { labels: Record<string, string> }): void => {
    const labels = { ...cluster.labels, [`n${count}`]: name };
    plan(
      'PATCH',
      id,
      'ClusterLabelled',
      () => ({ metadata: { labels } }),
      () => {
        cluster.labels = labels;
      },
    );
  };
  const resize = (id: string, cluster: { size: number }): void => {
    const size = (cluster.size % 3) + 1;
    plan(
      'PATCH',
      id,
      'NodeSetResized',
      () => ({ spec: { node_sets: { [NODE_SET]: { size } } } }),
      () => {
        cluster.size = size;
      },
    );
  };
  const remove = (id: string, cluster: { deleted: boolean }): void =>
    plan(
      'DELETE',
      id,
      'ClusterDeletionRequested',
      () => ({}),
      () => {
        cluster.deleted = true;
      },
    );

  return {
    /** The unanswered commands if there are any, else one new command, or two at once on one cluster. */
    next: (): readonly Operation[] => {
      if (pending.length === 0) {
        const live = [...clusters].filter(([, { deleted }]) => !deleted);
        const chosen = live[Math.floor(random() * live.length)];
        const dice = random();
        if (chosen === undefined || (live.length < KEPT && dice < 0.5)) order();
        else if (live.length >= KEPT && dice < 0.2) remove(...(live[0] ?? chosen));
        else {
          if (dice < 0.8) label(...chosen);
          if (dice > 0.6) resize(...chosen);
        }
      }
      return pending.map(({ operation }) => operation).filter((operation) => !operation.acknowledged);
    },
    pending: (): readonly Operation[] => pending.map(({ operation }) => operation),
    /** Every pending command was answered. */
    settled: (): void => {
      for (const { settle } of pending) settle();
      pending = [];
    },
    clusters: (): Expected[] => [...clusters].map(([id, cluster]) => ({ id, ...cluster })),
  };
};

/** Throws unless every acknowledged command left exactly one event, and no command more than one. */
export const assertCarriedOutOnce = (
  log: readonly RecordedEvent[],
  operations: readonly Operation[],
): void => {
  const found = Map.groupBy(
    log.filter((event) => event.stream.startsWith('cluster-')),
    (event) => `${metadataText(event, 'correlationId')} ${event.type}`,
  );
  for (const { id, event, acknowledged, attempts, cluster } of operations) {
    const events = found.get(`${id} ${event}`) ?? [];
    const times = events.length;
    if (times > 1 || (acknowledged && times !== 1))
      throw new Error(`${id} (${attempts} attempts, acknowledged: ${acknowledged}) left ${times} ${event}`);
    if (acknowledged && events[0]?.stream !== `cluster-${cluster}`)
      throw new Error(`${id} is about ${cluster}, its event in ${events[0]?.stream}`);
  }
};

/** Effects that one incarnation began and never recorded an outcome of, as the hub's journal names them. */
export const unrecordedEffects = (log: readonly RecordedEvent[], instance: string): ReadonlySet<string> => {
  const open = new Set<string>();
  for (const event of log) {
    const effect = `${event.stream}/${dataText(event, 'effectId')}`;
    if (event.type === 'EffectStarted' && metadataText(event, 'instance') === instance) open.add(effect);
    else if (/^Effect(Succeeded|Failed|Refused|OutcomeUnknown)$/.test(event.type)) open.delete(effect);
  }
  return open;
};

/** What a GET of the cluster must show, or undefined when it shows exactly that. */
export const difference = (wanted: Expected, found: ClusterBody | undefined): string | undefined => {
  if (wanted.deleted) return found === undefined ? undefined : 'it should be gone';
  if (found === undefined) return 'it is gone';
  const labels = found.metadata.labels ?? {};
  for (const [key, value] of Object.entries(wanted.labels))
    if (labels[key] !== value) return `label ${key} is ${labels[key]}`;
  const size = found.spec.node_sets[NODE_SET]?.size;
  if (size !== wanted.size) return `its size is ${size}, not ${wanted.size}`;
  const observed = found.status?.node_sets?.[NODE_SET]?.size;
  return isReady(found) && observed === wanted.size
    ? undefined
    : `${found.status?.state} with ${observed} nodes`;
};
