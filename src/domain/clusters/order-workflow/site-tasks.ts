import { stringAt } from '../../json-tools.ts';
import { doubled, later, type Backoff } from '../../process/effects.ts';
import { onItsHub, type OrderRun } from './run.ts';
import { does, isLeft, ownerOf, siteOf, waitOf } from './site-run.ts';
import { failing } from './site-steps.ts';
import type { Step } from './work.ts';

/** What the ledger does on a cluster that runs. Each task converges: one that does not pass is repeated. */
const TASKS = {
  'post-install': {
    names: ['certificates', 'operators', 'authentication'],
    attempts: 3,
    failure: 'PostInstallFailed',
  },
  validation: {
    names: ['nodes', 'operators', 'clusterversion', 'applications'],
    attempts: 2,
    failure: 'ValidationFailed',
  },
} as const;
type Phase = keyof typeof TASKS;

const BETWEEN: Backoff = { firstMs: 30_000, maxMs: 5 * 60_000 };

/** Of its present cycle: how often it was carried out, and what came of it last. */
const triesOf = ({ done, cycle }: OrderRun, kind: string) => {
  const last = done[kind];
  const [of, number] = last?.instance.split('.') ?? [];
  if (last === undefined || of !== String(cycle))
    return { tries: 0, passed: false, at: undefined, message: '' };
  // One that runs on is asked for again, and is no further try.
  const isOver = stringAt(last.result, 'waiting') === '';
  return {
    tries: Number(number) + (isOver ? 1 : 0),
    passed: last.result?.['passed'] === true,
    at: isOver ? last.at : undefined,
    message: stringAt(last.result, 'message'),
  };
};

const nameOf = (phase: Phase, task: string): string => `${phase}-${task}`;

const taskSteps = (phase: Phase, after: readonly string[]): readonly Step[] => {
  const { names, attempts } = TASKS[phase];
  return names.map((task): Step => {
    const name = nameOf(phase, task);
    return {
      name,
      rule: phase,
      after,
      mayBeSkipped: true,
      needed: (run) => does(phase)(run) && onItsHub(run)?.built === undefined,
      rules: { backoff: BETWEEN, attempts },
      done: (run) => triesOf(run, name).passed,
      work: (run) => {
        const { tries, at } = triesOf(run, name);
        const { hub = '', zone = '' } = siteOf(run) ?? {};
        if (tries >= attempts || waitOf(run, name)?.isOver === false) return undefined;
        return {
          call: {
            port: 'site',
            lane: `site:${zone}`,
            operation: 'task',
            args: {
              zone,
              hub,
              task: { name: task, phase, cluster: run.id, hub },
              owner: ownerOf(run, 'prefix'),
            },
          },
          instance: `${run.cycle}.${tries}.${run.done[name]?.times ?? 0}`,
          ...(at === undefined ? {} : { notBefore: later(at, doubled(BETWEEN, tries - 1)) }),
        };
      },
    };
  });
};

/** A task that was repeated as often as it may be and did not pass. */
const failedTask = (run: OrderRun) =>
  (Object.keys(TASKS) as Phase[])
    .flatMap((phase) =>
      TASKS[phase].names.map((task) => ({ phase, task, ...triesOf(run, nameOf(phase, task)) })),
    )
    .find(({ phase, task, tries, passed }) => {
      const isActive = run.since[nameOf(phase, task)] !== undefined;
      return isActive && !passed && tries >= TASKS[phase].attempts;
    });

const ends = (phase: Phase): readonly string[] => TASKS[phase].names.map((task) => nameOf(phase, task));

export const SITE_TASKS: readonly Step[] = [
  {
    // Only waited for: what the hub does by itself.
    name: 'installed',
    after: ['nodes'],
    needed: (run) => does('post-install')(run) || does('validation')(run),
    done: (run) => onItsHub(run)?.installed === true || onItsHub(run)?.built !== undefined,
  },
  ...taskSteps('post-install', ['installed']),
  ...taskSteps('validation', ['installed', ...ends('post-install')]),
  {
    name: 'become-ready',
    after: ['installed', ...ends('post-install'), ...ends('validation')],
    needed: (run) => onItsHub(run)?.installed === true,
    tell: (_run, at) => ({ type: 'RecordValidated', at }),
  },
  {
    name: 'report-failed-task',
    phase: 'live',
    needed: (run) => !isLeft(run) && failedTask(run) !== undefined,
    tell: (run, at) => {
      const failed = failedTask(run);
      if (failed === undefined) return undefined;
      const message = `task ${failed.task} did not pass: ${failed.message}`;
      return failing(run, at, TASKS[failed.phase].failure, message);
    },
  },
];
