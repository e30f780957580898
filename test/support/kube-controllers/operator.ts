import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, sameJson, stringAt } from '../../../src/domain/json-tools.ts';
import type { Automation } from './aap.ts';
import { pickAgents, releaseAgents } from './agents.ts';
import { requestsOf } from './ansible.ts';
import {
  KubeRefusal,
  ORDER_LABEL,
  OWN_FINALIZER,
  PREFIX,
  annotationsOf,
  condition,
  finalizersOf,
  isDeleting,
  labelsOf,
  nameOf,
  namespaceOf,
  versionOf,
  type KubeApi,
  type Plural,
} from './api.ts';
import { timestamp, type PlayClock } from './clock.ts';
import { playedConfigVersion } from './config-version.ts';
import { isTerminal, jobState, jobsOf, latestJob, retryAt, withJob, type JobType } from './jobs.ts';

export type OperatorSettings = {
  /** Namespace of the ClusterOrders. */
  readonly namespace: string;
  readonly agentNamespace: string;
};

type Draft = { -readonly [field in 'phase' | 'desiredConfigVersion']?: string } & {
  conditions: JsonObject[];
  jobs: JsonObject[];
  rest: JsonObject;
};

/**
 * Plays osac-operator's ClusterOrder controller as it was recorded: one pass is one reconcile.
 * Anything thrown ends a reconcile before its status is written, which is why a stuck order shows nothing.
 */
export const playOperator = (
  api: KubeApi,
  automation: Automation,
  clock: PlayClock,
  { namespace, agentNamespace }: OperatorSettings,
) => {
  const problems = new Map<string, string>();
  const atRest = new Map<string, string>();

  const reconcile = async (seen: JsonObject): Promise<void> => {
    const name = nameOf(seen);
    const state = annotationsOf(seen)[`${PREFIX}management-state`];
    if (isDeleting(seen)) return await tearDown(seen, state === 'manual');
    if (state === 'unmanaged') return;
    const order = await claimed(seen);
    const fresh = draftOf(order);
    const first = fresh.conditions.length === 0;
    await namespaceFor(order);
    setCondition(fresh, 'NamespaceCreated', 'True', 'AsExpected');
    fresh.rest['clusterReference'] ??= {
      hostedClusterName: '',
      namespace: `${namespace}-${name}`,
      roleBindingName: 'osac',
      serviceAccountName: 'osac',
    };
    fresh.desiredConfigVersion = playedConfigVersion(objectAt(order, 'spec'));
    if (!first) initialise(fresh);
    if (state !== 'manual') await provision(order, fresh);
    // What the launch left must not be lost, so it is written before the hosts are looked at.
    if (first && state !== 'manual') await flush(order, fresh);
    checkRequests(order);
    const short = await selectAgents(order, fresh);
    if (!short) await follow(order, fresh);
    if (first) {
      const { phase: _phase, ...bare } = fresh;
      await flush(order, bare);
    } else await flush(order, fresh);
  };

  /** The operator's own types write the whole object: an empty list of node requests is gone afterwards. */
  const claimed = async (order: JsonObject): Promise<JsonObject> => {
    if (finalizersOf(order).includes(OWN_FINALIZER)) return order;
    const spec = { templateID: '', ...objectAt(order, 'spec') } as JsonObject;
    if (Array.isArray(spec['nodeRequests']) && spec['nodeRequests'].length === 0) delete spec['nodeRequests'];
    const metadata = { ...objectAt(order, 'metadata'), finalizers: [...finalizersOf(order), OWN_FINALIZER] };
    return await api.update('clusterorders', { ...order, metadata, spec });
  };

  const namespaceFor = async (order: JsonObject): Promise<void> => {
    const name = nameOf(order);
    const place = `${namespace}-${name}`;
    const labels = { 'app.kubernetes.io/name': 'osac-operator', [ORDER_LABEL]: name };
    const found = await ownNamespaces(name);
    if (found.length === 0) {
      const existing = await api.get('namespaces', '', place);
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: place, labels } };
      if (existing === undefined) await api.create('namespaces', '', body);
      else await api.merge('namespaces', '', place, { metadata: { labels } });
    }
    const ensure = async (plural: Plural, object: string, body: JsonObject): Promise<void> => {
      if ((await api.get(plural, place, object)) !== undefined) return;
      await api.create(plural, place, { ...body, metadata: { name: object, namespace: place, labels } });
    };
    await ensure('serviceaccounts', 'osac', { apiVersion: 'v1', kind: 'ServiceAccount' });
    await ensure('rolebindings', 'osac', roleBinding('admin', 'osac', place));
    const access = `${namespace}-hub-access-hosted-clusters`;
    await ensure('rolebindings', 'hub-access', roleBinding(access, 'hub-access', namespace));
  };

  const ownNamespaces = async (name: string): Promise<JsonObject[]> => {
    const found = await api.list('namespaces', '', `${ORDER_LABEL}=${name}`);
    if (found.length > 1) throw new Error('found multiple matching namespaces');
    return found;
  };

  const launch = async (order: JsonObject, draft: Draft, type: JobType): Promise<void> => {
    const shown = (await api.get('clusterorders', namespaceOf(order), nameOf(order))) ?? order;
    const jobID = await automation.launch(type === 'provision' ? 'create' : 'delete', shown);
    const provision = type === 'provision';
    draft.jobs = withJob(draft.jobs, {
      jobID,
      type,
      state: 'Pending',
      timestamp: timestamp(clock.now()),
      message: provision ? 'Provisioning job triggered' : 'Deprovisioning job triggered',
      ...(provision ? { configVersion: draft.desiredConfigVersion ?? '' } : { blockDeletionOnFailure: true }),
    });
  };

  const poll = async (draft: Draft, job: JsonObject): Promise<JsonObject> => {
    const id = stringAt(job, 'jobID');
    const why = { told: `resource not found: /api/v2/jobs/${id}/` };
    const answer = await automation.poll(id).catch((error: Error) => void (why.told = error.message));
    const seen: JsonObject =
      answer === undefined
        ? { ...job, message: `Failed to get job status: failed to get job: ${why.told}` }
        : {
            ...job,
            state: jobState(answer.status),
            message: answer.traceback === '' ? answer.status : `${answer.status}: ${answer.traceback}`,
          };
    draft.jobs = withJob(draft.jobs, seen);
    return seen;
  };

  const provision = async (order: JsonObject, draft: Draft): Promise<void> => {
    const version = draft.desiredConfigVersion ?? '';
    const last = latestJob(draft.jobs, 'provision');
    if (last === undefined) return await launch(order, draft, 'provision');
    const job = isTerminal(last) ? last : await poll(draft, last);
    await showJob(order, draft, job);
    if (!isTerminal(job)) return;
    const same = job['configVersion'] === version;
    if (same && job['state'] === 'Succeeded') return;
    if (same && clock.now() < retryAt(draft.jobs, 'provision', version)) return;
    await launch(order, draft, 'provision');
  };

  /** Ready and Failed follow the job, not the cluster; Canceled shows nowhere but in the job. */
  const showJob = async (order: JsonObject, draft: Draft, job: JsonObject): Promise<void> => {
    if (job['state'] === 'Succeeded') {
      draft.phase = 'Ready';
      setCondition(draft, 'Progressing', 'False', 'AsExpected');
    } else if (
      job['state'] === 'Failed' &&
      draft.phase !== 'Ready' &&
      (await hostedOf(order)) === undefined
    ) {
      draft.phase = 'Failed';
      setCondition(draft, 'Progressing', 'False', 'ProvisioningFailed', stringAt(job, 'message'));
    }
  };

  const hostedOf = async (order: JsonObject): Promise<JsonObject | undefined> =>
    (await api.list('hostedclusters', `${namespace}-${nameOf(order)}`, `${ORDER_LABEL}=${nameOf(order)}`))[0];

  /** Chosen once, all or nothing per request; true: hosts are missing and nothing else is looked at. */
  const selectAgents = async (order: JsonObject, draft: Draft): Promise<boolean> => {
    const requests = requestsOf(objectAt(order, 'spec'));
    if (draft.rest['nodeSets'] !== undefined || requests.length === 0) return false;
    const sets = await pickAgents(api, agentNamespace, nameOf(order), requests);
    if (sets === undefined) return true;
    draft.rest['nodeSets'] = sets;
    return false;
  };

  /** What HyperShift shows; nothing of it ever goes back. */
  const follow = async (order: JsonObject, draft: Draft): Promise<void> => {
    const name = nameOf(order);
    const place = `${namespace}-${name}`;
    const hosted = await hostedOf(order);
    if (hosted === undefined) return;
    draft.rest['clusterReference'] = {
      ...objectAt(draft.rest, 'clusterReference'),
      hostedClusterName: nameOf(hosted),
    };
    const healthy = condition(hosted, 'Available') === 'True' && condition(hosted, 'Degraded') !== 'True';
    setCondition(draft, 'ControlPlaneCreated', 'True', 'AsExpected');
    if (healthy) setCondition(draft, 'ControlPlaneAvailable', 'True', 'AsExpected');
    if (healthy && condition(hosted, 'ClusterVersionSucceeding') === 'True') {
      setCondition(draft, 'ClusterAvailable', 'True', 'AsExpected');
    }
    const annotations = annotationsOf(order);
    const [apiEndpoint, ingressEndpoint] = ['api-endpoint', 'ingress-endpoint'].map(
      (one) => annotations[PREFIX + one],
    );
    if (apiEndpoint !== undefined) draft.rest['apiEndpoint'] = apiEndpoint;
    if (ingressEndpoint !== undefined) draft.rest['ingressEndpoint'] = ingressEndpoint;
    const requests = requestsOf(objectAt(order, 'spec'));
    const pools = await api.list('nodepools', place, `${ORDER_LABEL}=${name}`);
    const { replicas } = objectAt(pools[0] ?? {}, 'status');
    if (requests.length !== 1 || typeof replicas !== 'number') return;
    draft.rest['nodeRequests'] = [
      { numberOfNodes: replicas, resourceClass: requests[0]?.resourceClass ?? '' },
    ];
  };

  const tearDown = async (order: JsonObject, manual: boolean): Promise<void> => {
    if (!finalizersOf(order).includes(OWN_FINALIZER)) return;
    const name = nameOf(order);
    const draft = draftOf(order);
    await releaseAgents(api, agentNamespace, name);
    const places = await ownNamespaces(name);
    const mayGo = manual || (await deprovisioned(order, draft));
    draft.phase = 'Deleting';
    const gone = mayGo && (await hostedOf(order)) === undefined;
    for (const place of gone ? places : []) await api.remove('namespaces', '', nameOf(place));
    const left = (await api.list('namespaces', '', `${ORDER_LABEL}=${name}`)).length > 0;
    await flush(order, draft);
    if (!gone || left) return;
    const last = await api.get('clusterorders', namespaceOf(order), name);
    if (last === undefined) return;
    await api.finalizers(
      'clusterorders',
      last,
      finalizersOf(last).filter((one) => one !== OWN_FINALIZER),
    );
  };

  /** Cancels what provisions (again on every reconcile), then runs the delete job until one succeeds. */
  const deprovisioned = async (order: JsonObject, draft: Draft): Promise<boolean> => {
    const building = latestJob(draft.jobs, 'provision');
    if (building !== undefined && !isTerminal(building)) {
      await automation.cancel(stringAt(building, 'jobID'));
      if (!isTerminal(await poll(draft, building))) return false;
    }
    const last = latestJob(draft.jobs, 'deprovision');
    if (last === undefined) await launch(order, draft, 'deprovision');
    else {
      const job = isTerminal(last) ? last : await poll(draft, last);
      if (job['state'] === 'Succeeded') return true;
      if (isTerminal(job) && clock.now() >= retryAt(draft.jobs, 'deprovision', '')) {
        await launch(order, draft, 'deprovision');
      }
    }
    return false;
  };

  const setCondition = (draft: Draft, type: string, status: string, reason: string, message = ''): void => {
    const old = draft.conditions.find((one) => one['type'] === type);
    const kept = old?.['status'] === status ? stringAt(old, 'lastTransitionTime') : '';
    const made = { type, status, reason, message, lastTransitionTime: kept || timestamp(clock.now()) };
    draft.conditions =
      old === undefined
        ? [...draft.conditions, made]
        : draft.conditions.map((one) => (one === old ? made : one));
  };

  const initialise = (draft: Draft): void => {
    if (draft.conditions.some(({ type }) => type === 'Accepted')) return;
    draft.phase ??= 'Progressing';
    setCondition(draft, 'Accepted', 'True', 'Initialized');
    setCondition(draft, 'Deleting', 'False', 'Initialized');
    setCondition(draft, 'Progressing', 'True', 'Progressing');
    setCondition(draft, 'ControlPlaneCreated', 'False', 'Initialized');
    setCondition(draft, 'ControlPlaneAvailable', 'False', 'Initialized');
  };

  /** A merge patch that carries no version: whole lists of conditions and jobs, nothing when nothing changed. */
  const flush = async (order: JsonObject, { conditions, jobs, rest, ...texts }: Draft): Promise<void> => {
    const status: JsonObject = {
      ...rest,
      ...texts,
      conditions,
      ...(jobs.length === 0 ? {} : { provisioningJobs: jobs }),
    };
    const current = await api.get('clusterorders', namespaceOf(order), nameOf(order));
    if (current === undefined || sameJson(objectAt(current, 'status'), status)) return;
    await api.status('clusterorders', current, status);
  };

  /** What an order depends on, as versions; equal to last time: a reconcile would do nothing. */
  const signatures = async (): Promise<(order: JsonObject) => string> => {
    const around = new Map<string, string>();
    for (const plural of ['namespaces', 'hostedclusters', 'nodepools'] as const) {
      for (const one of await api.list(plural, '', ORDER_LABEL)) {
        const name = labelsOf(one)[ORDER_LABEL] ?? '';
        around.set(name, `${around.get(name) ?? ''} ${versionOf(one)}`);
      }
    }
    return (order) => `${versionOf(order)}${around.get(nameOf(order)) ?? ''}`;
  };

  return {
    /** One reconcile of every order of the namespace that is not at rest; what ends one is in `problem`. */
    step: async (): Promise<void> => {
      const signatureOf = await signatures();
      for (const order of await api.list('clusterorders', namespace)) {
        const name = nameOf(order);
        const signature = signatureOf(order);
        if (atRest.get(name) === signature) continue;
        problems.delete(name);
        atRest.delete(name);
        try {
          await reconcile(order);
          if (waitsForNothing(order)) atRest.set(name, signature);
        } catch (error) {
          if (!(error instanceof Error)) throw error;
          problems.set(name, error instanceof KubeRefusal ? `${error.code} ${error.message}` : error.message);
        }
      }
    },
    /** Why the last reconcile of an order ended early: what the operator would only log. */
    problem: (name: string): string | undefined => problems.get(name),
  };
};

export type PlayedOperator = ReturnType<typeof playOperator>;

/** Neither a job nor hosts nor a deletion: only a change of something can make work. */
const waitsForNothing = (order: JsonObject): boolean => {
  const manual = annotationsOf(order)[`${PREFIX}management-state`] === 'manual';
  const job = latestJob(jobsOf(order), 'provision');
  const hosts =
    requestsOf(objectAt(order, 'spec')).length === 0 || objectAt(order, 'status')['nodeSets'] !== undefined;
  return hosts && !isDeleting(order) && (manual || job?.['state'] === 'Succeeded');
};

/** A negative count panics the operator after the launch; its status stays as it was then. */
const checkRequests = (order: JsonObject): void => {
  const negative = requestsOf(objectAt(order, 'spec')).find(({ numberOfNodes }) => numberOfNodes < 0);
  if (negative !== undefined) throw new Error('panic: runtime error: makeslice: cap out of range');
};

const draftOf = (order: JsonObject): Draft => {
  const {
    conditions,
    provisioningJobs: _jobs,
    phase,
    desiredConfigVersion,
    ...rest
  } = objectAt(order, 'status');
  return {
    ...(typeof phase === 'string' ? { phase } : {}),
    ...(typeof desiredConfigVersion === 'string' ? { desiredConfigVersion } : {}),
    conditions: Array.isArray(conditions) ? (conditions as JsonObject[]) : [],
    jobs: jobsOf(order),
    rest: { ...rest },
  };
};

const roleBinding = (role: string, account: string, namespace: string): JsonObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
});
