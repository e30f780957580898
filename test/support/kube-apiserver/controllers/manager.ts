import type { Identities } from '../access/identities.ts';
import type { Store } from '../store.ts';
import type { Kind } from '../types.ts';
import type { Objects } from '../write/objects.ts';
import { accountsController } from './accounts.ts';
import { definitionsController, isDefinition } from './definitions.ts';
import { garbageCollector } from './garbage.ts';
import { namespacesController } from './namespaces.ts';

export type ControllerSettings = {
  /** Without them terminating namespaces stay, as beside a real server without its controller manager. */
  readonly enabled: boolean;
  /** How long a namespace is Terminating at least, milliseconds. */
  readonly namespaceDelayMs: number;
};

/** What the real controller manager does around the API server: namespaces, accounts, tokens, owner references. */
export const startControllers = (
  store: Store,
  objects: Objects,
  identities: Identities,
  ca: string,
  now: () => Date,
  settings: ControllerSettings,
) => {
  const definitions = definitionsController(store, objects);
  const namespaces = namespacesController(store, objects, settings.namespaceDelayMs, now);
  const garbage = garbageCollector(store, objects);
  const accounts = accountsController(store, objects, identities, ca);
  let scheduled = false;
  let stopped = false;
  const timers = new Set<NodeJS.Timeout>();

  const served = (group: string, plural: string): Kind => {
    const found = store.find(group, plural);
    if (found === undefined) throw new Error(`${plural} is not served`);
    return found;
  };

  const pass = (): void => {
    scheduled = false;
    if (stopped) return;
    definitions.clean(served('apiextensions.k8s.io', 'customresourcedefinitions'));
    if (!settings.enabled) return;
    accounts.serve();
    garbage.collect();
    const wait = namespaces.clean(served('', 'namespaces'));
    if (wait === undefined) return;
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        schedule();
      },
      Math.min(wait, 50),
    );
    timers.add(timer);
  };

  const schedule = (): void => {
    if (scheduled || stopped) return;
    scheduled = true;
    setImmediate(pass);
  };

  const leave = store.observe((kind, change) => {
    if (isDefinition(kind) && change.type !== 'DELETED') definitions.changed(change.object);
    garbage.changed(kind, change);
    accounts.changed(kind, change);
    schedule();
  });

  return {
    /** Resolves when nothing is left to do at once. */
    settled: async (): Promise<void> => {
      do await new Promise((resolve) => setImmediate(resolve));
      while (scheduled);
    },
    stop: (): void => {
      stopped = true;
      leave();
      for (const timer of timers) clearTimeout(timer);
    },
  };
};
