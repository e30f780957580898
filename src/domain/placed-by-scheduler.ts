import type { JsonObject } from './json.ts';
import { objectAt, stringAt } from './json-tools.ts';
import { filled } from './hubs/hub-codecs.ts';
import type { OwnedObject } from './hubs/hub-object.ts';
import { ZONE_ANNOTATION } from './hubs/placement.ts';
import { placeIn, type PlacedCommand, type PlacedState } from './placed-document.ts';
import { annotationOf, asking, type PlacedRun, type PlacedStep } from './placed-run.ts';
import type { Call } from './process/declaration.ts';
import { OWN_BACKOFF } from './process/effects.ts';

const NO_HUB = 'no hub can take it at the moment';

type SchedulerChoice<State extends PlacedState> = {
  /** Annotation of the object that names the only hub possible; for objects of providers, or those that `mayName` lets. */
  readonly hubAnnotation?: string;
  readonly mayName?: (run: PlacedRun<State>) => boolean;
  /** Kinds of objects that lie in it and follow it to its hub. */
  readonly followers?: readonly string[];
  /** Of the step. */
  readonly name?: string;
};

/**
 * The first step of a kind whose hub the scheduler chooses. `objects`: kinds of objects that the hub must know; by default
 * its own.
 */
export const placeByScheduler = <State extends PlacedState>(
  kind: string,
  object: OwnedObject,
  objects: readonly string[] = [object.kind],
  choice: SchedulerChoice<State> = {},
): PlacedStep<State, PlacedCommand> => {
  const { hubAnnotation, mayName = () => true, followers = [], name = 'place' } = choice;
  const toScheduler = (run: PlacedRun, operation: string, more: JsonObject): Call => ({
    port: 'scheduler',
    operation,
    lane: 'scheduler',
    args: { holder: { kind, id: run.id }, ...more },
  });
  const place = (run: PlacedRun<State>): Call => {
    const zone = annotationOf(run, ZONE_ANNOTATION) ?? '';
    const hub = (hubAnnotation && mayName(run) && annotationOf(run, hubAnnotation)) || '';
    return toScheduler(run, 'place', {
      tenant: run.tenant,
      // We post webhooks and launch jobs for clusters alone.
      withoutAutomation: true,
      objects: [...objects],
      ...(followers.length === 0 ? {} : { followers: [...followers] }),
      ...(zone === '' ? {} : { zone }),
      ...(hub === '' ? {} : { hub }),
    });
  };
  const release = (run: PlacedRun): Call => {
    const hub = run.subject.place?.hub ?? stringAt(run.done[name]?.result, 'hub');
    return toScheduler(run, 'release', hub === '' ? {} : { hub });
  };
  return asking<State, PlacedCommand>(name, place, {
    done: ({ subject }) => subject.place !== undefined,
    record: ({ id }, answer, at) =>
      answer['placed'] === true
        ? {
            type: 'PlaceOnHub',
            at,
            ...placeIn(answer, object.nameOf(id)),
            decision: objectAt(answer, 'decision'),
          }
        : undefined,
    // A place that was found too late to be recorded is given back by its hub.
    keep: (_run, answer) => ({
      waiting: stringAt(answer, 'message') || NO_HUB,
      ...filled({ detail: stringAt(answer, 'detail') }),
      ...(answer['placed'] === true ? { hub: stringAt(answer, 'hub') } : {}),
    }),
    // A look that gives back whatever was reserved leaves no doubt either.
    undo: {
      call: release,
      look: release,
      absent: (_run, answer) => answer['placed'] !== true,
      rules: { backoff: OWN_BACKOFF },
    },
  });
};
