import { laneOf, type OwnedObject } from './hubs/hub-object.ts';
import type { JsonObject } from './json.ts';
import { objectAt, own, stringAt, textsAt } from './json-tools.ts';
import type { Placed, PlacedState } from './placed-document.ts';
import type { Call, Step } from './process/declaration.ts';
import { BACKOFF, OWN_BACKOFF, type Backoff } from './process/effects.ts';
import type { Run } from './process/run.ts';

/** A run of what is one object on a hub: its facts, and the steps that hold something there. */
export type PlacedRun<State extends PlacedState = PlacedState> = Run<State, Memo>;
export type PlacedStep<State extends PlacedState, Command> = Step<PlacedRun<State>, Command>;

export type Memo = {
  /** How many answers each of the kind's own steps had when it was last time to ask again. */
  readonly answers: { readonly [step: string]: number };
  /** The last time that a wait was told of, once it had come. */
  readonly came?: string;
  /** The last time of `due` that came. */
  readonly due?: string;
  /** The last time that came at which a console session was to be over. */
  readonly consoles?: string;
};

/** Facts of a run that has begun. */
export const documentOf = ({ subject }: PlacedRun): JsonObject => (subject as Placed).document;
export const annotationOf = (run: PlacedRun, name: string): string | undefined =>
  own(textsAt(objectAt(documentOf(run), 'metadata'), 'annotations'), name);

export const answersOf = ({ done }: PlacedRun, step: string): number => own(done, step)?.times ?? 0;
/** The last answer, if it was to wait; `isOver`: something may have changed since. */
export const waitOf = (run: PlacedRun, step: string) => {
  const { at = '', times = 0, result } = own(run.done, step) ?? {};
  const [message, until] = [stringAt(result, 'waiting'), stringAt(result, 'until')];
  const isOver = (own(run.memo.answers, step) ?? 0) >= times;
  if (message === '') return undefined;
  const isForHub = stringAt(result, 'for') === 'hub';
  return { step, at, times, message, until, detail: stringAt(result, 'detail'), isForHub, isOver };
};

/**
 * It may have to wait until its hub knows its tenant (`tenant-space.ts`). The effect is the same until it had that answer,
 * and then another one.
 */
export const APPLY = 'apply';
export const applyInstance = (run: PlacedRun, step = APPLY): string => {
  const { instance = '', times = 0 } = own(run.done, step) ?? {};
  const ofCycle = instance === String(run.cycle) || instance.startsWith(`${run.cycle}.`);
  if (waitOf(run, step) !== undefined) return `${run.cycle}.${times}`;
  return ofCycle ? instance : String(run.cycle);
};
export const isApplied = (run: PlacedRun, step = APPLY): boolean =>
  own(run.done, step)?.instance === applyInstance(run, step) && waitOf(run, step) === undefined;

/** Asks what may have to wait; once it was told to wait, not before something may have changed. */
export const asking = <State extends PlacedState, Command>(
  name: string,
  call: (run: PlacedRun<State>) => Call,
  more: Partial<PlacedStep<State, Command>>,
): PlacedStep<State, Command> => ({
  name,
  rules: { backoff: OWN_BACKOFF },
  done: (run) => run.done[name] !== undefined && waitOf(run, name) === undefined,
  work: (run) =>
    waitOf(run, name)?.isOver === false
      ? undefined
      : { call: call(run), instance: `${answersOf(run, name)}.${run.cycle}` },
  ...more,
});

export const placeOf = ({ subject: { place, left } }: PlacedRun) => place ?? left;
export const onHubOf = (
  object: OwnedObject,
  run: PlacedRun,
  operation: string,
  more: JsonObject = {},
  nameOf?: OwnedObject['nameOf'],
): Call => {
  const { hub = '', namespace = '', objectName = '' } = placeOf(run) ?? {};
  const name = nameOf?.(run.id) ?? objectName;
  const args = { object: object.kind, hub, namespace, name, id: run.id, ...more };
  return { port: 'management-cluster', operation, lane: laneOf(hub, object), args };
};
export const isGoneFrom = (
  run: PlacedRun,
  { object: left, hub = placeOf(run)?.hub }: Partial<JsonObject>,
): boolean => left === null && hub === placeOf(run)?.hub;

/** Holds an object on its hub from here on, until it is undone and seen to be absent there. */
export const onItsHub = <State extends PlacedState>(
  name: string,
  object: OwnedObject,
  wanted: (run: PlacedRun<State>) => JsonObject,
  removal: Backoff,
  nameOf?: OwnedObject['nameOf'],
) => {
  const on = (run: PlacedRun<State>, operation: string, more: JsonObject = {}): Call =>
    onHubOf(object, run, operation, more, nameOf);
  return {
    name,
    rules: { backoff: BACKOFF },
    done: (run: PlacedRun<State>) => isApplied(run, name),
    work: (run: PlacedRun<State>) =>
      waitOf(run, name)?.isOver === false
        ? undefined
        : {
            call: on(run, 'applyObject', { ...wanted(run), tenant: true }),
            instance: applyInstance(run, name),
          },
    undo: {
      call: (run: PlacedRun<State>) => on(run, 'deleteObject'),
      look: (run: PlacedRun<State>) => on(run, 'observeObject'),
      absent: (run: PlacedRun<State>, answer: JsonObject) =>
        answer['existed'] === false || isGoneFrom(run, answer),
      // Soon told of: what does not go away is rarely gone later.
      rules: { backoff: removal, attempts: 3 },
    },
  };
};
