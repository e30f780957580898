import type { OwnedShown } from '../../../domain/hubs/hub-object.ts';
import type { Condition } from '../../../domain/hubs/hub-codecs.ts';
import type { Agenda } from './agenda.ts';
import { kubernetesTime, withCondition, type ObjectRecord } from './record.ts';
import type { Span } from '../../simulation/settings.ts';

/** One state of an object that a watcher could have seen. `gone`: this is its last one. */
export type Version = { readonly at: number; readonly resourceVersion: number; readonly gone: boolean };
export type OnVersion<Shown extends OwnedShown = OwnedShown> = (version: Version, shown: () => Shown) => void;

/** Resource versions are `<hub time in ms><3 digits>`: they grow with every change of an object. */
const VERSIONS_PER_MS = 1000;

type ConditionedStatus = { readonly conditions: readonly Condition[] };

export type StoredObject<Spec extends object, Status extends ConditionedStatus> = ReturnType<
  typeof createStoredObject<Spec, Status>
>;

/** An object as the API server holds it during a replay: every change makes a version. */
export const createStoredObject = <Spec extends object, Status extends ConditionedStatus>(
  record: ObjectRecord<Spec>,
  agenda: Agenda,
  initially: Status,
  onVersion: OnVersion<OwnedShown<Spec> & Status>,
) => {
  let spec = record.spec;
  let specVersion = record.configVersion;
  let generation = 1;
  let annotations = record.annotations;
  let finalizers: readonly string[] = [];
  let deletionAt: number | undefined;
  let goneAt: number | undefined;
  /** What the operator knows, and what it has written: it writes nothing while it waits for hosts. */
  let status = initially;
  let shown = status;
  let frozenUntil: Span | undefined;
  let lastAt = record.createdAt;
  let versionsInMs = 0;

  const view = (): OwnedShown<Spec> & Status => ({
    name: record.name,
    namespace: record.namespace,
    uid: record.uid,
    ...(record.id === undefined ? {} : { id: record.id }),
    resourceVersion: String(lastAt * VERSIONS_PER_MS + versionsInMs),
    generation,
    creationTimestamp: kubernetesTime(record.createdAt),
    ...(deletionAt === undefined ? {} : { deletionTimestamp: kubernetesTime(deletionAt) }),
    finalizers,
    annotations,
    spec,
    ...shown,
  });

  const changed = (): void => {
    const at = agenda.now();
    versionsInMs = at === lastAt ? versionsInMs + 1 : 0;
    lastAt = at;
    onVersion({ at, resourceVersion: at * VERSIONS_PER_MS + versionsInMs, gone: goneAt !== undefined }, view);
  };

  const isFrozen = (): boolean =>
    deletionAt === undefined &&
    frozenUntil !== undefined &&
    (frozenUntil === 'forever' || agenda.now() < frozenUntil);

  const writeStatus = (change: Partial<Status> = {}): void => {
    status = { ...status, ...change };
    if (isFrozen() || goneAt !== undefined) return;
    shown = status;
    changed();
  };

  const remove = (): void => {
    goneAt = agenda.now();
    changed();
  };

  return {
    view,
    spec: () => spec,
    specVersion: () => specVersion,
    status: () => status,
    deletionAt: () => deletionAt,
    goneAt: () => goneAt,
    /** After this many milliseconds, unless the object is gone by then. */
    later: (ms: number, run: () => void): void =>
      agenda.at(agenda.now() + ms, () => {
        if (goneAt === undefined) run();
      }),
    created: changed,
    writeStatus,
    /** Noted only; the next `writeStatus` writes it. */
    note: (change: Partial<Status>): void => {
      status = { ...status, ...change };
    },
    /** Noted only, as `note`. */
    noteCondition: (type: string, value: 'True' | 'False', reason: string, message = ''): void => {
      const conditions = withCondition(status.conditions, agenda.now(), type, value, reason, message);
      status = { ...status, conditions };
    },
    /** Freezes the written status until then (hub time); only the first call counts. */
    freeze: (until: Span): void => {
      frozenUntil ??= until;
    },
    annotate: (more: { readonly [key: string]: string }): void => {
      annotations = { ...annotations, ...more };
    },
    setSpec: (next: Spec, version: string): void => {
      spec = next;
      specVersion = version;
      generation += 1;
      changed();
    },
    /** The operator's first write. `rewrites`: its types change the spec by that. */
    adopt: (finalizer: string, rewrites = false): void => {
      finalizers = [...finalizers, finalizer];
      if (rewrites) generation += 1;
      changed();
    },
    /** With the next write of the status. */
    addFinalizer: (finalizer: string): void => {
      if (!finalizers.includes(finalizer)) finalizers = [...finalizers, finalizer];
    },
    /** The last one lets a deleted object go. */
    removeFinalizer: (finalizer: string): void => {
      if (!finalizers.includes(finalizer)) return;
      finalizers = finalizers.filter((one) => one !== finalizer);
      if (deletionAt !== undefined && finalizers.length === 0) remove();
      else changed();
    },
    /** Returns whether somebody still has to clean up. */
    requestDeletion: (): boolean => {
      deletionAt = agenda.now();
      generation += 1;
      if (finalizers.length === 0) remove();
      else changed();
      return finalizers.length > 0;
    },
    remove,
  };
};
