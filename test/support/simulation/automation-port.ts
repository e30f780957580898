import { AutomationError, type Automation } from '../../../src/app/automation/automation.ts';
import { createCaller, type HubWitness, type NetworkFaults } from './caller.ts';
import type { Life } from './life.ts';

/** A hub's automation as one incarnation reaches it. */
export const createAutomationPort = (options: {
  readonly hub: string;
  readonly automation: Automation;
  readonly life: Life;
  readonly faults: () => NetworkFaults;
  readonly witness: HubWitness;
}): Automation => {
  const { automation, life, witness } = options;
  const call = createCaller({
    life,
    // A webhook or a launch is sent once: connections are not repeated by what is between.
    faults: () => ({ ...options.faults(), twice: 0 }),
    witness,
    where: `automation of ${options.hub}`,
    failure: (kind, why) => new AutomationError(kind, why),
    describe: (outcome) => ('error' in outcome ? String(outcome.error) : 'done'),
  });
  const { findJobs, job, cancel } = automation;
  return {
    trigger: (request, by) =>
      call(
        `${findJobs === undefined ? 'post' : 'launch'} ${request.purpose} ${request.orderName}`,
        true,
        (to) => automation.trigger(request, to),
        by,
      ),
    check: (by) => call('check', false, (to) => automation.check(to), by),
    ...(findJobs === undefined
      ? {}
      : { findJobs: (search, by) => call('find jobs', false, (to) => findJobs(search, to), by) }),
    ...(job === undefined
      ? {}
      : { job: (which, by) => call(`job ${which.id}`, false, (to) => job(which, to), by) }),
    ...(cancel === undefined
      ? {}
      : { cancel: (which, by) => call(`cancel ${which.id}`, true, (to) => cancel(which, to), by) }),
  };
};
