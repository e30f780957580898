import type { Agenda } from '../../agenda.ts';
import type { HostedLife } from './hosted-life.ts';
import type { Jobs } from './jobs.ts';
import {
  INFRASTRUCTURE_FINALIZER,
  OPERATOR_FINALIZER,
  type OrderObject,
  type OrderRecord,
} from './status-view.ts';

/**
 * What operator and automation do with a deleted order: cancel what runs, deprovision, lose
 * the HostedCluster, then `infrastructure`, then the namespace and with it the operator's own finalizer.
 */
export const createDeletion = (
  record: OrderRecord,
  agenda: Agenda,
  order: OrderObject,
  jobs: Jobs,
  hosted: HostedLife,
): { start(): void } => {
  const { life } = record;

  /** Milliseconds that deletion still hangs at this place; undefined: for ever. */
  const stuckFor = (place: typeof life.stuckAt): number | undefined => {
    if (life.stuckAt !== place) return 0;
    if (life.stuckDeletion === 'forever') return undefined;
    return Math.max(0, (order.deletionAt() ?? 0) + life.stuckDeletion - agenda.now());
  };

  const removeLater = (finalizer: string, ms: number | undefined): void => {
    if (ms !== undefined) order.later(ms, () => order.removeFinalizer(finalizer));
  };

  const deprovision = (): void => {
    const job = jobs.launch('deprovision');
    order.writeStatus({ phase: 'Deleting' });
    job.later(Math.round(life.delete / 10), () => {
      jobs.note('Running', 'running');
      order.writeStatus();
    });
    if (stuckFor('job') !== 0) {
      job.later(Math.round(life.delete / 2), () => {
        jobs.note('Failed', `failed: ${life.failText}`);
        order.writeStatus();
        job.later(jobs.retryDelay(true), deprovision);
      });
      return;
    }
    job.later(Math.round(life.delete * 0.8), () => hosted.remove());
    job.later(life.delete, () => {
      jobs.note('Succeeded', 'successful');
      order.writeStatus();
      removeLater(INFRASTRUCTURE_FINALIZER, stuckFor('infrastructure'));
      const namespace = stuckFor('namespace');
      removeLater(
        OPERATOR_FINALIZER,
        namespace === undefined ? undefined : Math.max(namespace, life.namespace),
      );
    });
  };

  return {
    start: () => {
      if (jobs.isActive()) jobs.note('Canceled', 'canceled');
      deprovision();
    },
  };
};
