import type { ActingKind } from '../../domain/acting-kind.ts';
import { isSimulatedHub } from '../../domain/hubs/hub-facts.ts';
import { own } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { because, from, objectOf, textOf } from '../../domain/sentences.ts';

/** The kinds whose objects have a timeline: their declarations hold what it says of their own events. */
export type ToldKind = Pick<ActingKind, 'kind' | 'workflow' | 'timeline'>;
type Words = Pick<ToldKind['timeline'], 'deeds' | 'timers'>;

/** Of the events that the runs of all workflows have in common. */
const OF_RUNS: { readonly [type: string]: string | ((data: JsonObject, words: Words) => string) } = {
  RunStarted: 'Work on the order began.',
  RunInputTaken: (data) => `The workflow took note of ${textOf(data['type']) || 'a change'}.`,
  EffectStarted: (data, words) => `${stepOf(data, words)} was started, attempt ${textOf(data['attempt'])}.`,
  EffectSucceeded: (data, words) => `${stepOf(data, words)} is done.`,
  EffectFailed: (data, words) => `${stepOf(data, words)} failed${because(data)}; it is tried again.`,
  EffectRefused: (data, words) => `${stepOf(data, words)} was refused${because(data)}.`,
  EffectOutcomeUnknown: (data, words) =>
    `It is not known whether ${stepOf(data, words)} happened${because(data)}; the hub is asked.`,
  EffectStalled: (data, words) =>
    `${stepOf(data, words)} does not succeed after ${textOf(data['attempts'])} attempts${because(data)}; tries go on at the longest interval.`,
  TimerScheduled: (data) => `Timer ${textOf(data['timerId'])} is set for ${textOf(data['dueAt'])}.`,
  TimerCancelled: (data) => `Timer ${textOf(data['timerId'])} was cancelled.`,
  TimerFired: (data, { timers }) =>
    own(timers, textOf(data['timerId'])) ?? `Timer ${textOf(data['timerId'])} fired.`,
  CommandAccepted: (data) => `${textOf(data['key']) || 'A command'} was recorded.`,
  CommandRefused: (data) =>
    `${textOf(data['key']) || 'A command'} was refused${because({ ...data, reason: data['code'] ?? '' })}.`,
  StepsAssigned: (data) => stepsOf(textOf(data['hub']), objectOf(data['rules'])),
  StepSkipped: (data) =>
    `Step ${textOf(data['step'])} was skipped${from(textOf(data['reason']) || textOf(data['rule']), ': ')}.`,
  ObservationTaken: 'The hub shows something new.',
  AutomationJobSeen: (data) => `The automation shows job ${textOf(data['job'])} as ${textOf(data['state'])}.`,
  RunClosed: (data) => `Work on the order ended: ${textOf(data['outcome'])}.`,
};

/** `data` as the reader may see it. A type without a sentence shows its name. */
export const summaryOf = (
  { timeline }: Pick<ToldKind, 'timeline'>,
  type: string,
  data: JsonObject,
): string => {
  const sentence = own(timeline.sentences, type) ?? own(OF_RUNS, type) ?? type;
  return typeof sentence === 'string' ? sentence : sentence(data, timeline);
};

/**
 * Who does which step by the hub's registration (design §6), and what comes of it: none of these steps is done by the
 * ledger itself yet, and a simulated hub plays all of them whatever the rule.
 */
const stepsOf = (hub: string, rules: JsonObject): string => {
  const by = (rule: string): string =>
    Object.keys(rules)
      .filter((step) => rules[step] === rule)
      .join(', ');
  if (hub === '') return 'It was recorded who does which step.';
  if (isSimulatedHub(hub))
    return `The simulated hub "${hub}" plays every step itself (${Object.keys(rules).join(', ')}): nothing real is set up.`;
  const parts = [
    from(by('hub'), `hub "${hub}" does `),
    from(by('none'), 'left out are '),
    from(by('ledger'), 'assigned to the ledger, which does not do them in this release, are '),
  ];
  return `Steps of the order: ${parts.filter((part) => part !== '').join('; ')}.`;
};

const stepOf = (data: JsonObject, { deeds }: Words): string => {
  const id = textOf(data['effectId']);
  const deed = own(deeds, id.split(':')[0] ?? '');
  return `Step ${id}${deed === undefined ? '' : ` (to ${deed})`}`.trimEnd();
};
