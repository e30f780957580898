import { actingKindOf } from '../../domain/acting-kinds.ts';
import { timesAbandoned } from '../../domain/catalog/document.ts';
import { holderKey, type Holder } from '../../domain/holder.ts';
import { objectAt, textOf, valueAt } from '../../domain/json-tools.ts';
import { aggregateOf, kindOf, type AnyKind } from '../../domain/kinds.ts';
import type { MadeObject } from '../../domain/made-objects.ts';
import type { ResourceView } from '../../domain/resource.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandOutcome, CommandRunner } from '../commands/command.ts';
import type { ResourceCommands } from '../commands/resource-commands.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import { done, effectPort, failed, refused } from './hub-effects.ts';

type Command = { readonly type: string };

const CREATOR = 'system';

/**
 * Effect port `made-objects`: what the service makes for an object, and what it removes before it. Both may be repeated.
 * Ids are chosen by clients as well: what others made under these ids is neither taken for ours nor removed.
 *
 * - `make` {owner, objects} → {}: all of them are there, or were. Nothing is made once the owner's deletion is requested.
 * - `remove` {owner, groups} → {}: nothing is left of any; each group is deleted once nothing is left of the one before.
 *   Until then it fails, and says what is waited for. What somebody else uses by now, as a gateway does, stays theirs.
 * - `values` {objects, path} → {values} by id, or {waiting}: what each of them shows there.
 */
export const createMadeObjectEffects = ({
  commandRunner,
  commands,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly commands: Pick<ResourceCommands, 'execute'>;
  readonly clock: Clock;
}): EffectPort => {
  const viewOf = async ({ kind: name, id }: Holder, call: EffectCall) => {
    const kind = kindOf(name);
    if (kind === undefined) throw new TypeError(`no objects of kind ${name} exist`);
    const { state, revision } = await commandRunner.load(aggregateOf(kind), id, { signal: call.signal });
    const users = (kind.lends?.held(state) ?? []).map(({ holder }) => holderKey(holder));
    return { kind, view: kind.view(state), revision, users, abandoned: timesAbandoned(state) };
  };
  const isOurs = ({ tenant, document }: Extract<ResourceView, { exists: true }>, call: EffectCall): boolean =>
    tenant === call.tenant && objectAt(document, 'metadata')['creator'] === CREATOR;
  /** `step`: the same step is the same command, however often it is tried. */
  const give = (kind: AnyKind, id: string, command: Command, call: EffectCall, step: string) => {
    const commandId = derivedCommandId(kind.kind, id, step, command.type);
    return commands.execute(kind, id, command, contextOf(call, commandId));
  };

  const make = async (
    { owner, objects }: { readonly owner: Holder; readonly objects: readonly MadeObject[] },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    let obstacle: EffectOutcome | undefined;
    const lacking = new Set<string>();
    for (const object of objects) {
      const { kind, view, abandoned: abandonedBefore } = await viewOf(object, call);
      const { id, name, document } = object;
      if (view.exists && isOurs(view, call)) continue;
      const lacks = kind.takes?.(document).some((of) => lacking.has(holderKey(of)));
      if (lacks === true) continue;
      // After the object: a removal that comes later than this look fences it off once more than was counted there.
      const { kind: of, view: ownerView } = await viewOf(owner, call);
      if (!ownerView.exists || ownerView.archived || ownerView.deletionTimestamp !== undefined)
        return refused('DELETION_REQUESTED', `${of.words} '${owner.id}' is being deleted`);
      const { tenant, project } = call;
      const facts = { at: clock.now(), id, tenant, project, name, creator: CREATOR, document };
      const command = { type: 'CreateDocument', ...facts, abandonedBefore };
      const outcome = await give(kind, id, command, call, 'make');
      if (outcome.outcome === 'accepted') continue;
      const { kind: why, code, message } = outcome.rejection;
      lacking.add(holderKey(object));
      obstacle ??= (why === 'conflict' ? failed : refused)(code, `${kind.words} '${name}': ${message}`);
    }
    return obstacle ?? done({});
  };

  /** One that cannot be deleted as it is, is given up first. */
  const remove = async (
    kind: AnyKind,
    id: string,
    revision: string,
    call: EffectCall,
  ): Promise<CommandOutcome<unknown>> => {
    const at = clock.now();
    const deletion = { type: 'DeleteDocument', at };
    const outcome = await give(kind, id, deletion, call, `remove ${revision}`);
    const abort = actingKindOf(kind.kind)?.order.abort;
    if (outcome.outcome === 'accepted' || typeof abort !== 'function') return outcome;
    const aborted = await give(kind, id, abort(at, 'what it was made for is deleted'), call, revision);
    return aborted.outcome === 'accepted' ? give(kind, id, deletion, call, `end ${revision}`) : outcome;
  };

  /** Why it is not gone yet. `bound`: all that goes with the owner; who else uses it by now keeps it. */
  const waitingFor = async (
    object: Holder,
    owner: Holder,
    bound: ReadonlySet<string>,
    call: EffectCall,
  ): Promise<string | undefined> => {
    const { kind, view, revision, users } = await viewOf(object, call);
    const { id } = object;
    if (!view.exists) {
      // A creation that is still under way must not come after this.
      const commandId = derivedCommandId(call.effectId, 'fence', id);
      const fence = { type: 'AbandonCreation', at: clock.now(), commandId };
      const fenced = await give(kind, id, fence, call, `fence ${String(revision)}`);
      return fenced.outcome === 'accepted' ? undefined : `${kind.words} '${id}' was just made`;
    }
    const holdsOwner = kind.takes?.(view.document).some((of) => of.kind === owner.kind && of.id === owner.id);
    if (view.archived || (holdsOwner !== true && !isOurs(view, call))) return undefined;
    if (view.deletionTimestamp === undefined) {
      if (users.some((user) => !bound.has(user))) return undefined;
      const outcome = await remove(kind, id, String(revision), call);
      if (outcome.outcome === 'rejected') return outcome.rejection.message;
      const after = kind.view(outcome.loaded.state);
      if (after.exists && after.archived) return undefined;
    }
    return `${kind.words} '${view.name}' is not gone yet`;
  };

  const removeAll = async (
    { owner, groups }: { readonly owner: Holder; readonly groups: readonly (readonly Holder[])[] },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const bound = new Set(groups.flat().map(holderKey));
    for (const group of groups) {
      const waited = await Promise.all(group.map((object) => waitingFor(object, owner, bound, call)));
      const left = waited.filter((why) => why !== undefined);
      if (left.length > 0) return failed('StillThere', left.join('; '));
    }
    return done({});
  };

  const values = async (
    { objects, path }: { readonly objects: readonly Holder[]; readonly path: string },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const shown: { [id: string]: string } = {};
    for (const object of objects) {
      const { kind, view } = await viewOf(object, call);
      const value = view.exists ? textOf(valueAt(view.document, path)) : '';
      if (value === '') return done({ waiting: `${kind.words} '${object.id}' has no ${path} yet` });
      shown[object.id] = value;
    }
    return done({ values: shown });
  };

  return effectPort({ make, remove: removeAll, values }, storeOutcome);
};
