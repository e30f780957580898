import type { ClusterOrderSpec, ObservedClusterOrder } from '../../../app/management-cluster.ts';
import { createAgenda } from './agenda.ts';
import { createHostedLife, type HostedLife } from './hosted-life.ts';
import {
  INFRASTRUCTURE_FINALIZER,
  OPERATOR_FINALIZER,
  hostedNamespace,
  kubernetesTime,
  withCondition,
  type Hosted,
  type Job,
  type OrderRecord,
  type OrderStatus,
  type Write,
} from './record.ts';
import { isAmong, type Span } from './settings.ts';

/**
 * The life of one ClusterOrder, replayed from its record up to a moment: a small discrete event simulation of the
 * operator, the automation jobs and HyperShift, in the order in which the recorded runs show them (operator-run.md
 * §2). It is a function of (record, until): a write at time t changes nothing that happened up to t, so every reader
 * at every time sees the same past, and progress needs no process of its own.
 */
export type Life = {
  /** The order as it is at that moment; undefined: gone. */
  readonly order: ObservedClusterOrder | undefined;
  readonly hosted: Hosted | undefined;
  readonly goneAt: number | undefined;
  /** Hub time of the next change by itself, if there will be one. */
  readonly nextAt: number | undefined;
};

/** One state of the order that a watcher could have seen. `gone`: this is the last state of a removed order. */
export type Version = { readonly at: number; readonly resourceVersion: number; readonly gone: boolean };
export type OnVersion = (version: Version, order: () => ObservedClusterOrder) => void;

/** Resource versions are `<hub time in ms><3 digits>`: they grow with every change of an object. */
const VERSIONS_PER_MS = 1000;
/** Jobs of one order that can be told apart by id; more would need months. */
const JOBS_PER_ORDER = 100_000;
const KEPT_JOBS = 10;
const REACTION_MS = 10;
/** Retries: max(retry, 2 × gap), at most 15 × retry: the operator's 2 min and 30 min (operator-run.md §3, §6 rows). */
const LONGEST_RETRY = 15;

export const replay = (record: OrderRecord, until: number, onVersion: OnVersion = () => undefined): Life => {
  const { life } = record;
  const agenda = createAgenda();
  let spec: ClusterOrderSpec = record.spec;
  let specVersion = record.configVersion;
  let generation = 1;
  let annotations = record.annotations;
  let finalizers: readonly string[] = [];
  let deletionAt: number | undefined;
  let goneAt: number | undefined;
  let status: OrderStatus = { conditions: [], jobs: [] };
  /** What is written into the object; stays behind `status` while the operator waits for hosts. */
  let shown = status;
  let lastAt = record.createdAt;
  let versionsInMs = 0;
  /** The provision or deprovision job that counts; every other one was cancelled or has ended. */
  let current: { readonly number: number; readonly launchedAt: number; active: boolean } | undefined;
  let launches = 0;
  let lastGap = 0;
  let flipsPlanned = false;
  let frozenUntil: Span | undefined;

  const view = (): ObservedClusterOrder => ({
    name: record.name,
    uid: record.uid,
    ...(record.clusterId === undefined ? {} : { clusterId: record.clusterId }),
    resourceVersion: String(lastAt * VERSIONS_PER_MS + versionsInMs),
    generation,
    creationTimestamp: kubernetesTime(record.createdAt),
    ...(deletionAt === undefined ? {} : { deletionTimestamp: kubernetesTime(deletionAt) }),
    finalizers,
    annotations,
    spec,
    ...shown,
  });

  const changed = (): void => {
    const at = agenda.now();
    versionsInMs = at === lastAt ? versionsInMs + 1 : 0;
    lastAt = at;
    onVersion({ at, resourceVersion: at * VERSIONS_PER_MS + versionsInMs, gone: goneAt !== undefined }, view);
  };

  /** Work that a removed order no longer does. */
  const later = (ms: number, run: () => void): void =>
    agenda.at(agenda.now() + ms, () => {
      if (goneAt === undefined) run();
    });

  const setStatus = (change: Partial<OrderStatus>): void => {
    status = { ...status, ...change };
    if (isFrozen()) return;
    shown = status;
    changed();
  };

  const isFrozen = (): boolean =>
    deletionAt === undefined &&
    frozenUntil !== undefined &&
    (frozenUntil === 'forever' || agenda.now() < frozenUntil);

  const condition = (type: string, value: 'True' | 'False', reason: string, message = ''): void => {
    status = {
      ...status,
      conditions: withCondition(status.conditions, agenda.now(), type, value, reason, message),
    };
  };

  const hosted: HostedLife = createHostedLife(record, agenda, {
    created: () => {
      condition('ControlPlaneCreated', 'True', 'AsExpected');
      setStatus({ clusterReference: { namespace: hostedNamespace(record), hostedClusterName: record.name } });
    },
    endpoints: (api, ingress) => {
      annotations = {
        ...annotations,
        'osac.openshift.io/api-endpoint': api,
        'osac.openshift.io/ingress-endpoint': ingress,
      };
      setStatus({ apiEndpoint: api, ingressEndpoint: ingress });
    },
    available: () => {
      condition('ControlPlaneAvailable', 'True', 'AsExpected');
      setStatus({});
    },
    complete: () => {
      condition('ClusterAvailable', 'True', 'AsExpected');
      setStatus({});
    },
    // The operator copies the count into status.nodeRequests, but only of a single request (operator-run.md §2 d).
    nodes: () => {
      if (spec.nodeRequests.length === 1) setStatus({});
    },
  });

  const remove = (): void => {
    goneAt = agenda.now();
    hosted.remove();
    changed();
  };

  const removeFinalizer = (finalizer: string): void => {
    if (!finalizers.includes(finalizer)) return;
    finalizers = finalizers.filter((one) => one !== finalizer);
    if (deletionAt !== undefined && finalizers.length === 0) remove();
    else changed();
  };

  // Jobs -------------------------------------------------------------------------------------------------------

  const launch = (type: Job['type']): { number: number; later: (ms: number, run: () => void) => void } => {
    launches += 1;
    const started = { number: launches, launchedAt: agenda.now(), active: true };
    current = started;
    const job: Job = {
      jobId: String(record.sequence * JOBS_PER_ORDER + launches),
      type,
      state: 'Pending',
      timestamp: kubernetesTime(agenda.now()),
      message: type === 'provision' ? 'Provisioning job triggered' : 'Deprovisioning job triggered',
      ...(type === 'provision' ? { configVersion: specVersion } : {}),
    };
    status = { ...status, jobs: [...status.jobs, job].slice(-KEPT_JOBS) };
    return {
      number: launches,
      later: (ms, run) =>
        later(ms, () => {
          if (current === started) run();
        }),
    };
  };

  /** Changes the latest job; a terminal state ends it. */
  const setJob = (state: Job['state'], message: string): void => {
    status = {
      ...status,
      jobs: status.jobs.map((job, index) =>
        index === status.jobs.length - 1 ? { ...job, state, message } : job,
      ),
    };
    if (current !== undefined && ['Succeeded', 'Failed', 'Canceled'].includes(state)) current.active = false;
  };

  /** The operator launches again by itself; the pause counts from the launch. */
  const retryDelay = (failed: boolean): number => {
    const wanted = failed
      ? Math.min(Math.max(life.retry, 2 * lastGap), LONGEST_RETRY * life.retry)
      : life.retry;
    lastGap = wanted;
    return Math.max(REACTION_MS, wanted - (agenda.now() - (current?.launchedAt ?? agenda.now())));
  };

  const failProvision = (retry: (ms: number, run: () => void) => void): void => {
    setJob('Failed', `failed: ${life.failText}`);
    if (hosted.current() === undefined) {
      condition('Progressing', 'False', 'ProvisioningFailed', `failed: ${life.failText}`);
      setStatus({ phase: 'Failed' });
    } else setStatus({});
    retry(retryDelay(true), provision);
  };

  const provision = (): void => {
    const job = launch('provision');
    const jobSpec = spec;
    const jobVersion = specVersion;
    setStatus({ desiredConfigVersion: jobVersion });
    job.later(Math.round(life.accept / 3) + REACTION_MS, () => {
      if (!finalizers.includes(INFRASTRUCTURE_FINALIZER)) {
        finalizers = [...finalizers, INFRASTRUCTURE_FINALIZER];
      }
      setJob('Running', 'running');
      setStatus({});
      freeze();
      const work = Math.round(life.controlPlane / 20);
      if (isAmong(life.cancelJob, job.number, record.uid)) {
        job.later(work, () => {
          setJob('Canceled', 'canceled');
          setStatus({});
          job.later(retryDelay(false), provision);
        });
      } else if (life.failWhen === 'early' && isAmong(life.failInstall, job.number, record.uid)) {
        job.later(work, () => failProvision(job.later));
      } else job.later(work, () => install(job, jobSpec, jobVersion));
    });
  };

  const install = (job: ReturnType<typeof launch>, jobSpec: ClusterOrderSpec, jobVersion: string): void => {
    const endsAt = hosted.converge(jobSpec);
    job.later(endsAt - agenda.now() + life.finish, () => {
      const short = [...(hosted.current()?.pools.values() ?? [])].some((pool) => pool.ready < pool.desired);
      if (short || isAmong(life.failInstall, job.number, record.uid)) return failProvision(job.later);
      setJob('Succeeded', 'successful');
      condition('Progressing', 'False', 'AsExpected');
      setStatus({ phase: 'Ready' });
      lastGap = 0;
      planFlips();
      // A spec changed meanwhile: Ready is written for the old one first, the next launch follows (§2 d).
      if (jobVersion !== specVersion) job.later(REACTION_MS, provision);
    });
  };

  /** Degraded comes and goes on the HostedCluster only: the order does not change (operator-run.md §2 e). */
  const planFlips = (): void => {
    if (flipsPlanned) return;
    flipsPlanned = true;
    for (let flip = 0; flip < life.degraded; flip += 1) {
      const start = life.degradedAfter + flip * (life.degradedAfter + life.degradedFor);
      later(start, () => hosted.degraded(true));
      later(start + life.degradedFor, () => hosted.degraded(false));
    }
  };

  const freeze = (): void => {
    if (frozenUntil !== undefined || life.noHosts === 0) return;
    frozenUntil = life.noHosts === 'forever' ? 'forever' : record.createdAt + life.noHosts;
    if (frozenUntil !== 'forever') later(frozenUntil - agenda.now(), () => setStatus({}));
  };

  // Acceptance ---------------------------------------------------------------------------------------------------

  /** Accepted by the API server, but the operator fails on it for ever (operator-run.md §2 h, j). */
  const namespaceIsImpossible = hostedNamespace(record).length > 63 || record.name.includes('.');
  const nodesAreImpossible = (): boolean => spec.nodeRequests.some(({ numberOfNodes }) => numberOfNodes < 0);

  const accept = (): void => {
    if (namespaceIsImpossible || deletionAt !== undefined) return;
    condition('NamespaceCreated', 'True', 'AsExpected');
    status = {
      ...status,
      clusterReference: { namespace: hostedNamespace(record), hostedClusterName: '' },
    };
    if (nodesAreImpossible()) {
      launch('provision');
      setStatus({ desiredConfigVersion: specVersion });
      return;
    }
    provision();
    later(Math.round(life.accept / 3), () => {
      if (deletionAt !== undefined) return;
      condition('Accepted', 'True', 'Initialized');
      condition('Deleting', 'False', 'Initialized');
      condition('Progressing', 'True', 'Progressing');
      condition('ControlPlaneCreated', 'False', 'Initialized');
      condition('ControlPlaneAvailable', 'False', 'Initialized');
      setStatus({ phase: 'Progressing' });
    });
  };

  /** The finalizer comes first, the first status after two thirds, the phase at the end. */
  const acceptDelay = Math.max(Math.min(REACTION_MS, life.accept), Math.round((life.accept * 2) / 3));
  const operatorStartsAt: Span = life.noPhase === 'forever' ? 'forever' : record.createdAt + life.noPhase;

  const born = (): void => {
    changed();
    later(Math.min(REACTION_MS, life.accept), () => {
      finalizers = [OPERATOR_FINALIZER];
      // The operator rewrites the object through its own types and drops an empty list (§2 i).
      if (spec.nodeRequests.length === 0) generation += 1;
      changed();
    });
    if (operatorStartsAt !== 'forever')
      later(life.noPhase === 'forever' ? 0 : life.noPhase + acceptDelay, accept);
    if (life.vanishOrder > 0) later(life.vanishOrder, remove);
    if (life.vanishHostedCluster > 0) later(life.vanishHostedCluster, () => hosted.remove());
  };

  // Deletion -----------------------------------------------------------------------------------------------------

  const stuckUntil = (): Span =>
    life.stuckDeletion === 'forever' ? 'forever' : (deletionAt ?? 0) + life.stuckDeletion;
  /** Milliseconds that deletion still hangs at this place; undefined: for ever. */
  const stuckFor = (place: typeof life.stuckAt): number | undefined => {
    if (life.stuckAt !== place) return 0;
    const end = stuckUntil();
    return end === 'forever' ? undefined : Math.max(0, end - agenda.now());
  };

  const requestDeletion = (): void => {
    if (deletionAt !== undefined) return;
    deletionAt = agenda.now();
    generation += 1;
    if (finalizers.length === 0) return remove();
    changed();
    // While the operator does not work nothing but deletionTimestamp is to be seen (§2 k4, `00-noaap`).
    if (operatorStartsAt === 'forever') return;
    later(Math.max(0, operatorStartsAt - agenda.now()) + 2 * REACTION_MS, () => {
      if (namespaceIsImpossible) return removeFinalizer(OPERATOR_FINALIZER);
      if (current?.active === true) setJob('Canceled', 'canceled');
      deprovision();
    });
  };

  const deprovision = (): void => {
    const job = launch('deprovision');
    setStatus({ phase: 'Deleting' });
    job.later(Math.round(life.delete / 10), () => {
      setJob('Running', 'running');
      setStatus({});
    });
    const stuck = stuckFor('job');
    if (stuck !== 0) {
      job.later(Math.round(life.delete / 2), () => {
        setJob('Failed', `failed: ${life.failText}`);
        setStatus({});
        job.later(retryDelay(true), deprovision);
      });
      return;
    }
    job.later(Math.round(life.delete * 0.8), () => hosted.remove());
    job.later(life.delete, () => {
      setJob('Succeeded', 'successful');
      setStatus({});
      const infrastructure = stuckFor('infrastructure');
      if (infrastructure !== undefined) {
        later(infrastructure, () => removeFinalizer(INFRASTRUCTURE_FINALIZER));
      }
      const namespace = stuckFor('namespace');
      if (namespace !== undefined) {
        later(Math.max(namespace, life.namespace), () => removeFinalizer(OPERATOR_FINALIZER));
      }
    });
  };

  // Writes from outside --------------------------------------------------------------------------------------------

  const apply = (write: Write): void => {
    if (goneAt !== undefined) return;
    switch (write.kind) {
      case 'patch': {
        spec = write.spec;
        specVersion = write.configVersion;
        generation += 1;
        changed();
        if (status.desiredConfigVersion === undefined || deletionAt !== undefined || nodesAreImpossible())
          return;
        later(REACTION_MS, () => {
          if (deletionAt !== undefined || status.desiredConfigVersion === specVersion) return;
          setStatus({ desiredConfigVersion: specVersion });
          if (current?.active !== true) provision();
        });
        return;
      }
      case 'delete':
        return requestDeletion();
      case 'remove-finalizer':
        return removeFinalizer(write.finalizer);
      case 'vanish':
        return write.what === 'order' ? remove() : hosted.remove();
    }
  };

  agenda.at(record.createdAt, born);
  for (const write of record.writes) agenda.write(write.at, () => apply(write));
  agenda.run(until);
  return {
    order: goneAt === undefined ? view() : undefined,
    hosted: hosted.current(),
    goneAt,
    nextAt: goneAt === undefined ? agenda.nextAt() : undefined,
  };
};
