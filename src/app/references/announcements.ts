import { streamName } from '../../domain/stream-name.ts';
import { DELETION_ANNOUNCED, REFERENCES_ANNOUNCED, type Announcement } from '../../domain/announcements.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import type { Aggregate, CommandContext, CommandRunner, Loaded, Withheld } from '../commands/command.ts';
import type { ExpectedRevision, Position } from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext } from '../log/metadata.ts';
import { deciding } from '../names/names.ts';
import type { Clock } from '../ports.ts';
import { defined } from '../../domain/json-tools.ts';

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
