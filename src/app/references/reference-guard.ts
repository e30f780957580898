import { DELETION_ANNOUNCED, REFERENCES_ANNOUNCED, type Announcement } from '../../domain/announcements.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { defined } from '../../domain/json-tools.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { Aggregate, CommandContext, CommandRunner, Loaded, Withheld } from '../commands/command.ts';
import type { ExpectedRevision, Position } from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext } from '../log/metadata.ts';
import { deciding } from '../names/names.ts';
import type { Timers, Clock } from '../ports.ts';

/**
 * Who refers to an object and who deletes it, within one instance: many may share a key, one may close it. Nothing is
 * stored, so that a crash leaves nothing behind. A share is taken of all keys at once or of none: whoever waits holds
 * nothing, so nobody waits in a circle. A key that somebody is about to close lets no more in, so that a stream of
 * creations keeps no deletion from its turn.
 */
export type ReferenceGuard = {
  /**
   * Waits until nobody closes any of the keys, and shares them until the returned function is called (once).
   * Throws ReferencesBusy when that takes too long, and the signal's reason.
   */
  share(keys: readonly string[], signal?: AbortSignal): Promise<() => void>;
  /** The same where nobody can wait: undefined when somebody closes one of the keys, or waits to. */
  shareNow(keys: readonly string[]): (() => void) | undefined;
  /** The same for one key alone: waits until all who share it have left. Those who come later wait. */
  close(key: string, signal?: AbortSignal): Promise<() => void>;
  /** Keys that somebody shares, closes or waits for; 0 when nothing is under way. */
  size(): number;
};

/** Nothing was stored: what refers to an object and its deletion kept each other waiting. Later it may succeed. */
export class ReferencesBusy extends Error {
  override readonly name = 'ReferencesBusy';
  constructor(
    message = 'references to an object and its deletion wait for each other',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

type Key = {
  shared: number;
  closed: boolean;
  /** How many wait to close it. */
  closing: number;
  /** Everybody who waits for a change of this key. */
  waiting: Set<() => void>;
};

/** Milliseconds that a creation waits for deletions, and a deletion for creations and other deletions. */
const SHARE_WAIT_MS = 10_000;
const CLOSE_WAIT_MS = 4_000;

export const createReferenceGuard = ({ timers }: { readonly timers: Timers }): ReferenceGuard => {
  const keys = new Map<string, Key>();
  const keyOf = (name: string): Key => {
    const known = keys.get(name);
    if (known !== undefined) return known;
    const key: Key = { shared: 0, closed: false, closing: 0, waiting: new Set() };
    keys.set(name, key);
    return key;
  };
  const changed = (name: string, key: Key): void => {
    const { waiting } = key;
    key.waiting = new Set();
    for (const wake of waiting) wake();
    if (key.shared === 0 && !key.closed && key.closing === 0 && keys.get(name) === key) keys.delete(name);
  };
  const isBarred = (name: string): boolean => {
    const key = keys.get(name);
    return key !== undefined && (key.closed || key.closing > 0);
  };
  /** Resolves at the next change of the key. */
  const change = (name: string, { signal, late }: Patience): Promise<void> => {
    const key = keyOf(name);
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => (): void => {
        key.waiting.delete(woken);
        signal.removeEventListener('abort', given);
        settle();
      };
      const woken = end(resolve);
      const given = end(() => reject(late()));
      key.waiting.add(woken);
      signal.addEventListener('abort', given, { once: true });
      if (signal.aborted) given();
    });
  };
  /** Runs with a signal that fires when the time is up or the caller's own one has fired. */
  const patiently = async <T>(
    ms: number,
    callers: AbortSignal | undefined,
    run: (patience: Patience) => Promise<T>,
  ): Promise<T> => {
    const ended = new AbortController();
    const gone = (): void => ended.abort();
    const cancel = timers.after(ms, gone);
    callers?.addEventListener('abort', gone, { once: true });
    if (callers?.aborted === true) gone();
    const late = (): unknown => (callers?.aborted === true ? callers.reason : new ReferencesBusy());
    try {
      return await run({ signal: ended.signal, late });
    } finally {
      cancel();
      callers?.removeEventListener('abort', gone);
    }
  };
  const enter = (names: readonly string[]): (() => void) | undefined => {
    if (names.some(isBarred)) return undefined;
    const entered = names.map((name) => [name, keyOf(name)] as const);
    for (const [, key] of entered) key.shared += 1;
    return () => {
      for (const [name, key] of entered) {
        key.shared -= 1;
        if (key.shared === 0) changed(name, key);
      }
    };
  };

  return {
    share: async (wanted, signal) => {
      const names = [...new Set(wanted)];
      const entered = enter(names);
      if (entered !== undefined) return entered;
      return patiently(SHARE_WAIT_MS, signal, async (patience) => {
        for (;;) {
          const leave = enter(names);
          if (leave !== undefined) return leave;
          await change(names.find(isBarred) ?? '', patience);
        }
      });
    },
    shareNow: (wanted) => enter([...new Set(wanted)]),
    close: (name, signal) =>
      patiently(CLOSE_WAIT_MS, signal, async (patience) => {
        const key = keyOf(name);
        key.closing += 1;
        try {
          while (key.closed || key.shared > 0) await change(name, patience);
          key.closed = true;
        } finally {
          key.closing -= 1;
          if (!key.closed) changed(name, key);
        }
        return () => {
          key.closed = false;
          changed(name, key);
        };
      }),
    size: () => keys.size,
  };
};

/** `late`: what is thrown once the signal has fired. */
type Patience = { readonly signal: AbortSignal; readonly late: () => unknown };

/** An object by kind and id. */
export type Pointer = { readonly kind: string; readonly id: string };

/** References that are announced and neither made nor withdrawn: the last event of the object's stream, at `revision`. */
export type Announced = Pointer & { readonly revision: number };

/** Where an announcement is stored. */
type Place = { readonly revision: number; readonly position: Position };

/**
 * The appends that make references and deletions of several writers see each other (`referrals.ts` says how). Each is one
 * event in the stream of the object itself, at exactly one revision. All throw what the command runner throws.
 */
export type Announcements = {
  /** Undefined: the object's stream no longer stands at `revision`. */
  references(
    object: { readonly kind: AnyKind; readonly id: string; readonly revision: ExpectedRevision },
    targets: readonly Pointer[],
    context: CommandContext,
  ): Promise<Place | undefined>;
  /** Undefined: nothing to delete, being deleted already, or not as the context wants it. */
  deletion(kind: AnyKind, id: string, context: CommandContext): Promise<Place | undefined>;
  /** Ends an announcement, so that nothing that relied on it is stored any more; nothing when something followed it. */
  withdraw(kind: AnyKind, id: string, revision: number): Promise<void>;
  /** Moves a stream on wherever it stands: an append to it of unknown outcome is stored now or never. */
  settle(kind: AnyKind, id: string): Promise<void>;
};

/** True while the object's deletion is announced and may come with the next event. */
export const isAboutToGo = ({ lastType }: Pick<Loaded<unknown>, 'lastType'>): boolean =>
  lastType === DELETION_ANNOUNCED;

/** True of the last event of a stream whose writer is about to refer to something, or to delete the object. */
export const isAnnounced = (lastType: string | undefined): boolean =>
  lastType === REFERENCES_ANNOUNCED || lastType === DELETION_ANNOUNCED;

type Announce = { readonly type: 'Announce'; readonly event: (state: unknown) => Announcement | undefined };

/** The stream stands elsewhere than the announcement is meant for; `isBehind`: in front of it. */
type Elsewhere = Withheld & { readonly isBehind: boolean };

export const createAnnouncements = ({
  runner,
  clock,
  step,
}: {
  readonly runner: CommandRunner;
  readonly clock: Clock;
  /** `Names.step`: an announcement is a step of a command, with an id of its own. */
  readonly step: (context: CommandContext) => CommandContext;
}): Announcements => {
  const announce = async (
    kind: AnyKind,
    id: string,
    at: ExpectedRevision | undefined,
    event: Announce['event'],
    context: CommandContext,
  ): Promise<Place | undefined> => {
    const aggregate = announcing(kind);
    const attempt = () =>
      runner.execute(aggregate, id, { type: 'Announce', event }, context, {
        step: true,
        // An object that is about to be made: nothing to read.
        likelyNew: at === 'no_stream',
        beforeAppend: async ({ revision }): Promise<Elsewhere | undefined> => {
          if (at === undefined || revision === at) return undefined;
          const isBehind = at !== 'no_stream' && (revision === 'no_stream' || revision < at);
          return { outcome: 'withheld', isBehind };
        },
      });
    let outcome = await attempt();
    if (outcome.outcome === 'withheld' && outcome.isBehind) {
      await runner.load(aggregate, id);
      outcome = await attempt();
    }
    if (outcome.outcome !== 'accepted' || outcome.events.length === 0) return undefined;
    const { revision, position } = outcome.loaded;
    return revision !== 'no_stream' && position !== undefined ? { revision, position } : undefined;
  };
  const moveOn = (
    kind: AnyKind,
    id: string,
    revision: number | undefined,
    context: CommandContext,
  ): Promise<unknown> => {
    const data = { at: clock.now() };
    return announce(kind, id, revision, () => ({ type: 'AnnouncementWithdrawn', data }), context);
  };

  return {
    references: ({ kind, id, revision }, targets, context) => {
      const data = { at: clock.now(), targets: targets.map((to) => ({ kind: to.kind, id: to.id })) };
      const event = (): Announcement => ({ type: REFERENCES_ANNOUNCED, data });
      return announce(kind, id, revision, event, step(context));
    },
    deletion: (kind, id, context) => {
      const at = clock.now();
      const event = (state: unknown): Announcement | undefined => {
        const view = kind.view(state);
        const lives = view.exists && !view.archived && view.deletionTimestamp === undefined;
        return lives ? { type: DELETION_ANNOUNCED, data: { at } } : undefined;
      };
      const { ifRevision, ifVersion } = context;
      return announce(kind, id, undefined, event, {
        ...step(context),
        ...defined({ ifRevision, ifVersion }),
      });
    },
    withdraw: async (kind, id, revision) => {
      // Whoever withdraws it does the same.
      const commandId = derivedCommandId(streamName(kind.kind, id), 'withdraw', revision);
      await moveOn(kind, id, revision, systemContext(commandId, 'references'));
    },
    settle: async (kind, id) => {
      await moveOn(kind, id, undefined, step(systemContext(streamName(kind.kind, id), 'references')));
    },
  };
};

const announcing = (kind: AnyKind): Aggregate<unknown, Announce, DomainEvent> =>
  deciding(kind, (state, { event }) => {
    const announcement = event(state);
    return announcement === undefined ? [] : [announcement];
  });
