import { parseStreamName } from '../../domain/stream-name.ts';
import { LRUCache } from 'lru-cache';
import { reject, type DomainEvent, type Rejection } from '../../domain/decider.ts';
import { aggregateOf, kindOf, nameAggregate, project, type AnyKind } from '../../domain/kinds.ts';
import type { Aggregate, CommandContext, CommandRunner } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext } from '../log/metadata.ts';
import { deciding, nameStreamId, type Names } from '../names/names.ts';
import type { Clock } from '../ports.ts';

/**
 * How no project is deleted with an object inside, without transactions over several streams:
 * 1. Every attempt to create an object in a named project first reads the object's stream, then enters the project's
 *    stream, then appends to the object's at exactly the revision that it read.
 * 2. A deletion reads the project's stream, looks at every object that entered and has not left, moves the streams of
 *    those on that are not written yet (`CreationAbandoned`, so that the append of step 1 fails), checks that nothing
 *    is inside, and closes the project at exactly the revision that it read.
 * An attempt that enters before step 2 reads is seen or fenced off; one that enters later makes the deletion start over;
 * one that comes after it is refused.
 */
export type ProjectEntries = {
  /** Undefined: entered. Else why nothing can be created there. */
  enter(
    object: { readonly kind: string; readonly stream: string },
    where: { readonly tenant: string; readonly project: string },
    context: CommandContext,
  ): Promise<Rejection | undefined>;
  /**
   * The object exists: the next one that enters says so, and the project forgets about it. Not for a refused creation,
   * since another attempt at the same object may still be under way; those are few and stay until a deletion looks.
   */
  leave(stream: string): void;
};

/** Creations and projects that are remembered; what is forgotten costs a deletion one look per entry. */
const REMEMBERED = 10_000;

export const createProjectEntries = ({
  runner,
  names,
  clock,
}: {
  readonly runner: CommandRunner;
  readonly names: Names;
  readonly clock: Clock;
}): ProjectEntries => {
  // Counted by size: `max` would take the room for all of them at once.
  const bound = { maxSize: REMEMBERED, sizeCalculation: () => 1 } as const;
  /** Project id by the stream of an object that entered it. */
  const inside = new LRUCache<string, string>(bound);
  /** Who has left a project, until the next one that enters says so. */
  const leaving = new LRUCache<string, Set<string>>(bound);

  const enterById = async (
    id: string,
    { stream, ...where }: { readonly stream: string; readonly tenant: string; readonly path: string },
    context: CommandContext,
  ): Promise<boolean> => {
    const left = [...(leaving.get(id) ?? [])].filter((one) => one !== stream);
    const command = { type: 'EnterProject', at: clock.now(), ...where, stream, left } as const;
    const outcome = await runner.execute(aggregateOf(project), id, command, names.step(context), {
      step: true,
    });
    if (outcome.outcome === 'rejected') return false;
    const rest = leaving.get(id);
    for (const one of [...left, stream]) rest?.delete(one);
    inside.set(stream, id);
    return true;
  };

  return {
    enter: async ({ kind, stream }, { tenant, project: path }, context) => {
      // Who holds the path is known to its own stream, whatever the read models show. What is remembered of it
      // may be old, but a project that was deleted since lets nobody in.
      for (const remembered of [true, false]) {
        const name = nameStreamId(project.kind, tenant, '', path);
        const { state } = await runner.peek(nameAggregate, name, { remembered });
        const id = state.status === 'held' ? parseStreamName(state.stream).id : undefined;
        if (id !== undefined && (await enterById(id, { stream, tenant, path }, context))) return undefined;
      }
      return noSuchProject(kind, path);
    },
    leave: (stream) => {
      const id = inside.get(stream);
      if (id === undefined) return;
      inside.delete(stream);
      const left = leaving.get(id) ?? new Set<string>();
      left.add(stream);
      leaving.set(id, left);
    },
  };
};

/** `kind`: of the object that names the project. */
export const noSuchProject = (kind: string, path: string): Rejection =>
  reject(
    'invalid',
    'PROJECT_NOT_FOUND',
    `${kind === project.kind ? 'parent project' : 'project'} '${path.slice(0, 255)}' doesn't exist`,
    // The parent of a project follows from its name.
    { field: kind === project.kind ? 'metadata.name' : 'metadata.project' },
  );

/**
 * Step 2 up to the look at what is inside: kinds of the objects that entered and exist now. Those that are not written
 * yet cannot be written any more by the attempt that entered. Valid for the revision that the project had before.
 */
export const settleEntries = async (
  { runner, clock }: { readonly runner: CommandRunner; readonly clock: Clock },
  projectId: string,
  causationId: string,
): Promise<readonly string[]> => {
  const { state, revision } = await runner.load(aggregateOf(project), projectId);
  const found: string[] = [];
  for (const stream of state.entering ?? []) {
    const { category: name, id } = parseStreamName(stream);
    const kind = kindOf(name);
    if (kind === undefined) continue;
    const fence: Fence = { type: 'FenceEntry', at: clock.now(), commandId: causationId };
    // With the revision: whoever was fenced off and entered again moved it on, and has to be fenced off again.
    const commandId = derivedCommandId(causationId, 'fence', stream, revision);
    const context = systemContext(commandId, 'tenancy', { causationId });
    const { loaded } = await runner.execute(fenceOf(kind), id, fence, context, { step: true });
    const view = kind.view(loaded.state);
    if (view.exists && !view.archived) found.push(name);
  }
  return found;
};

type Fence = { readonly type: 'FenceEntry'; readonly at: string; readonly commandId: string };

/** The stream of what does not exist (any more) is moved on: an attempt to write it from before then fails. */
export const fenceOf = (kind: AnyKind): Aggregate<unknown, Fence, DomainEvent> =>
  deciding(kind, (state, { at, commandId }) => {
    const view = kind.view(state);
    const final = view.exists && (!view.archived || kind.idOnce === true);
    return final ? [] : [{ type: 'CreationAbandoned', data: { at, commandId } }];
  });
