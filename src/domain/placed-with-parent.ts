import type { OwnedObject } from './hubs/hub-object.ts';
import type { JsonObject } from './json.ts';
import { valueAtPlace } from './document-places.ts';
import { isObject, stringAt } from './json-tools.ts';
import { placeIn, type PlacedCommand, type PlacedState } from './placed-document.ts';
import { asking, documentOf, type PlacedRun, type PlacedStep } from './placed-run.ts';
import type { Call } from './process/declaration.ts';
import { OWN_BACKOFF } from './process/effects.ts';
import type { ResourceKind } from './resource.ts';

/** Whose hub an object follows: a child is on the hub of its parent, once that is ready there. */
export type Parent = {
  readonly kind: string;
  /** Path of the reference to it. */
  readonly path: string;
  readonly words: string;
  /** Its state once children may be made. */
  readonly ready: string;
  /** What its events begin with, and the one that says that it is ready. */
  readonly message: string;
  readonly done: string;
};

const PORT = 'parents';
/** Children of one parent that one event of it wakes. */
const MOST_CHILDREN = 1_000;

const parentId = ({ path }: Parent, run: PlacedRun): string =>
  stringAt(valueAtPlace(documentOf(run), path.split('.')), 'id');

const toParent = (parent: Parent, run: PlacedRun, operation: string, more: JsonObject = {}): Call => ({
  port: PORT,
  operation,
  lane: PORT,
  args: { parent: { kind: parent.kind, id: parentId(parent, run) }, ...more },
});

export const wokenByParent = (parent: Parent) => ({
  types: ['Placed', parent.done, 'StatusReported'].map((word) => parent.message + word),
  of: (run: PlacedRun) => parentId(parent, run),
  most: MOST_CHILDREN,
});

/**
 * Its first step, or the one after what it claims (`claimFromParent`). `near`: what else it needs on the hub of its parent,
 * and where that is, if it is known.
 */
export const placeWithParent = <State extends PlacedState>(
  parent: Parent,
  object: OwnedObject,
  after: readonly string[] = [],
  near?: { readonly words: string; readonly hub: (run: PlacedRun) => string },
): PlacedStep<State, PlacedCommand> => {
  const isApart = (run: PlacedRun, place: JsonObject): boolean => {
    const hub = near?.hub(run) ?? '';
    return hub !== '' && hub !== stringAt(place, 'hub');
  };
  return asking<State, PlacedCommand>('place', (run) => toParent(parent, run, 'place'), {
    after,
    done: ({ subject }) => subject.place !== undefined,
    record: (run, { place, state }, at) =>
      isObject(place) && state === parent.ready && !isApart(run, place)
        ? { type: 'PlaceOnHub', at, ...placeIn(place, object.nameOf(run.id)) }
        : undefined,
    keep: (run, { place, state }) => {
      const its = `its ${parent.words}`;
      if (!isObject(place)) return { waiting: `${its} is on no hub yet` };
      return state !== parent.ready || near === undefined
        ? { waiting: `${its} is not ready` }
        : { waiting: `${its} and its ${near.words} are on different hubs` };
    },
  });
};

/**
 * Makes sure of what was claimed for it before its first event, so that it is given back at the end. It comes before the
 * place: what has none is deleted at once, and its claim with it.
 */
export const claimFromParent = <State extends PlacedState>(
  { kind, takes }: Pick<ResourceKind, 'kind' | 'takes'>,
  parent: Parent,
): PlacedStep<State, PlacedCommand> => {
  const holder = ({ id }: PlacedRun): JsonObject => ({ kind, id });
  return asking<State, PlacedCommand>(
    'claim',
    (run) => {
      const wanted = takes?.(documentOf(run)).find((one) => one.kind === parent.kind)?.wanted ?? {};
      return toParent(parent, run, 'claim', { holder: holder(run), wanted });
    },
    {
      undo: {
        call: (run) =>
          toParent(parent, run, 'release', { holder: holder(run), ...run.done['claim']?.result }),
        look: (run) => toParent(parent, run, 'look', { holder: holder(run) }),
        absent: (_run, answer) => answer['generation'] === undefined,
        rules: { backoff: OWN_BACKOFF },
      },
    },
  );
};
