import type { ClusterOrderSpec } from '../../../../../domain/clusters/hub-objects.ts';
import type { Agenda } from '../../agenda.ts';
import type { HostedLife } from './hosted-life.ts';
import { REACTION_MS } from '../../record.ts';
import type { Jobs, LaunchedJob } from './jobs.ts';
import { isAmong } from '../../../../simulation/settings.ts';
import {
  hostedNamespace,
  INFRASTRUCTURE_FINALIZER,
  type OrderObject,
  type OrderRecord,
} from './status-view.ts';

export type Provisioning = {
  /** The operator's first reconcile: status, then the first job, then the phase. */
  accept(): void;
  /** The spec has changed; a running job ends first (OSAC's operator). */
  respec(): void;
};

/** What operator and automation do to bring a cluster up and to the size that is asked for. */
export const createProvisioning = (
  record: OrderRecord,
  agenda: Agenda,
  order: OrderObject,
  jobs: Jobs,
  hosted: HostedLife,
): Provisioning => {
  const { life } = record;
  let wasReady = false;

  const isDeleting = (): boolean => order.deletionAt() !== undefined;
  /** The CRD lets it pass, the operator panics on it for ever after the launch. */
  const isNonsense = (): boolean => order.spec().nodeRequests.some(({ numberOfNodes }) => numberOfNodes < 0);

  const fail = (job: LaunchedJob): void => {
    const text = `failed: ${life.failText}`;
    jobs.note('Failed', text);
    if (hosted.current() === undefined) {
      order.noteCondition('Progressing', 'False', 'ProvisioningFailed', text);
      order.writeStatus({ phase: 'Failed' });
    } else order.writeStatus();
    job.later(jobs.retryDelay(true), provision);
  };

  const cancel = (job: LaunchedJob): void => {
    jobs.note('Canceled', 'canceled');
    order.writeStatus();
    job.later(jobs.retryDelay(false), provision);
  };

  const provision = (): void => {
    const job = jobs.launch('provision');
    const [spec, version] = [order.spec(), order.specVersion()];
    order.writeStatus({ desiredConfigVersion: version });
    job.later(Math.round(life.accept / 3) + REACTION_MS, () => {
      order.addFinalizer(INFRASTRUCTURE_FINALIZER);
      jobs.note('Running', 'running');
      if (life.noHosts === 0) takeHosts();
      order.writeStatus();
      waitForHosts();
      job.later(Math.round(life.controlPlane / 20), () => {
        if (isAmong(life.cancelJob, job.number, record.uid)) cancel(job);
        else if (life.failWhen === 'early' && isAmong(life.failInstall, job.number, record.uid)) fail(job);
        else install(job, spec, version);
      });
    });
  };

  const install = (job: LaunchedJob, spec: ClusterOrderSpec, version: string): void => {
    const endsAt = hosted.converge(spec);
    job.later(endsAt - agenda.now() + life.finish, () => {
      const pools = [...(hosted.current()?.pools.values() ?? [])];
      const isShort = pools.some(({ ready, desired }) => ready < desired);
      if (isShort || isAmong(life.failInstall, job.number, record.uid)) return fail(job);
      jobs.note('Succeeded', 'successful');
      jobs.succeeded();
      order.noteCondition('Progressing', 'False', 'AsExpected');
      order.writeStatus({ phase: 'Ready' });
      if (!wasReady) planDegradations();
      wasReady = true;
      // A spec changed meanwhile: Ready is written for the old one first, the next launch follows.
      if (version !== order.specVersion()) job.later(REACTION_MS, provision);
    });
  };

  /** Degraded comes and goes on the HostedCluster only: the order does not change (OSAC's operator). */
  const planDegradations = (): void => {
    for (let flip = 0; flip < (life.degraded ?? 0); flip += 1) {
      const start = life.degradedAfter + flip * (life.degradedAfter + life.degradedFor);
      order.later(start, () => hosted.degraded(true));
      order.later(start + life.degradedFor, () => hosted.degraded(false));
    }
  };

  /** Without hosts the operator writes no status, whatever happens meanwhile. */
  const waitForHosts = (): void => {
    if (life.noHosts === 0) return;
    if (life.noHosts === 'forever') return order.freeze('forever');
    const until = record.createdAt + life.noHosts;
    order.freeze(until);
    if (until <= agenda.now()) return;
    order.later(until - agenda.now(), () => {
      takeHosts();
      order.writeStatus();
    });
  };

  /** Noted once: later sizes change nothing of it (OSAC's operator). */
  const takeHosts = (): void => {
    const { nodeRequests } = order.spec();
    if (order.status().nodeSets !== undefined || nodeRequests.length === 0) return;
    order.note({
      nodeSets: nodeRequests.map(({ resourceClass, numberOfNodes: hosts }) => ({ resourceClass, hosts })),
    });
  };

  const showPhase = (): void => {
    if (isDeleting()) return;
    order.noteCondition('Accepted', 'True', 'Initialized');
    order.noteCondition('Deleting', 'False', 'Initialized');
    order.noteCondition('Progressing', 'True', 'Progressing');
    order.noteCondition('ControlPlaneCreated', 'False', 'Initialized');
    order.noteCondition('ControlPlaneAvailable', 'False', 'Initialized');
    order.writeStatus({ phase: 'Progressing' });
  };

  return {
    accept: () => {
      if (isDeleting()) return;
      order.noteCondition('NamespaceCreated', 'True', 'AsExpected');
      order.note({ clusterReference: { namespace: hostedNamespace(record), hostedClusterName: '' } });
      if (isNonsense()) {
        jobs.launch('provision');
        jobs.abandon();
        return order.writeStatus({ desiredConfigVersion: order.specVersion() });
      }
      provision();
      order.later(Math.round(life.accept / 3), showPhase);
    },
    respec: () => {
      if (order.status().desiredConfigVersion === undefined) return;
      order.later(REACTION_MS, () => {
        const version = order.specVersion();
        if (isDeleting() || isNonsense() || order.status().desiredConfigVersion === version) return;
        order.writeStatus({ desiredConfigVersion: version });
        if (!jobs.isActive()) provision();
      });
    },
  };
};
