import type { ActingKind } from '../../domain/acting-kind.ts';
import { own } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { because, from, textOf } from '../../domain/sentences.ts';

/** The kinds whose objects have a timeline: their declarations hold what it says of their own events. */
export type ToldKind = Pick<ActingKind, 'kind' | 'workflow' | 'timeline'>;
type Words = Pick<ToldKind['timeline'], 'deeds' | 'timers'>;

/** Of the events that the runs of all workflows have in common. */
const OF_RUNS: { readonly [type: string]: string | ((data: JsonObject, words: Words) => string) } = {
  EffectStarted: (data, words) => `${stepOf(data, words)} was started, attempt ${textOf(data['attempt'])}.`,
  EffectSucceeded: (data, words) => `${stepOf(data, words)} is done.`,
  EffectFailed: (data, words) => `${stepOf(data, words)} failed${because(data)}; it will be retried.`,
  EffectRefused: (data, words) => `${stepOf(data, words)} was refused${because(data)}.`,
  EffectOutcomeUnknown: (data, words) =>
    `${stepOf(data, words)} has an unknown outcome${because(data)}; the ledger asks the hub.`,
  EffectStalled: (data, words) =>
    `${stepOf(data, words)} has not succeeded after ${textOf(data['attempts'])} attempts${because(data)}; retries go on at the longest interval.`,
  // What follows a colon says of what it is the timer.
  TimerFired: ({ timerId }, { timers }) =>
    own(timers, textOf(timerId).split(':')[0] ?? '') ?? `Timer ${textOf(timerId)} fired.`,
  CommandRefused: (data) =>
    `${textOf(data['key']) || 'A command'} was refused${because({ ...data, reason: data['code'] ?? '' })}.`,
  EffectSettled: (data, words) =>
    `${stepOf(data, words)} ${data['found'] === true ? 'took effect' : 'did not take effect'}, as a look showed.`,
  RunRetried: (data) => `An operator requested a retry${from(textOf(data['reason']), ': ')}.`,
  RunAborted: (data) => `An operator aborted the work${from(textOf(data['reason']), ': ')}.`,
  StepSkipped: (data) => `Step ${textOf(data['step'])} was skipped${from(textOf(data['reason']), ': ')}.`,
  StepResumed: (data) => `Step ${textOf(data['step'])} was resumed${from(textOf(data['reason']), ': ')}.`,
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

const stepOf = (data: JsonObject, { deeds }: Words): string => {
  const id = textOf(data['effectId']);
  const deed = own(deeds, id.split(':')[0] ?? '');
  return `Step ${id}${deed === undefined ? '' : ` (to ${deed})`}`.trimEnd();
};
