import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { Candidate, Placement, PlacementRequest, PlaceResult } from '../../domain/hubs/placement.ts';
import { place } from '../../domain/hubs/placement.ts';
import type { CapacityClaim, HubCapacityEvent } from '../../domain/hubs/capacity-events.ts';
import {
  claimOf,
  hubCapacityDecider,
  isClosedFor,
  NOTHING,
  type HubCapacityCommand,
  type HubCapacityState,
} from '../../domain/hubs/capacity.ts';
import { namespaceOf, rulesFor, type HubFacts } from '../../domain/hubs/hub-facts.ts';
import type { Holder } from '../../domain/holder.ts';
import { defined, own, sameJson } from '../../domain/json-tools.ts';
import { aggregateOf, hubCapacityAggregate } from '../../domain/kinds.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { Aggregate, CommandOutcome, CommandRunner } from '../commands/command.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import { OutcomeUnknown, StoreUnavailable } from '../log/event-store.ts';
import { done, effectPort, failed } from './hub-effects.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';
import type { Clock, Logger } from '../ports.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import type { OfferedSite } from '../site/offered-site.ts';

/** The one stream that owns what a hub can still take. */
export const hubCapacity: Aggregate<HubCapacityState, HubCapacityCommand, HubCapacityEvent> =
  hubCapacityAggregate;

/** Choices that may be refused by the capacity stream before the order is tried again later. */
const MAX_ROUNDS = 5;

/** `fault`: why the hub is passed over, whatever its capacity is. */
type Seen = { readonly hub: RegisteredHub; readonly capacity: HubCapacityState; readonly fault?: string };

/**
 * Effect port `scheduler`: filter and score the registered hubs, then reserve
 * in the capacity stream of the chosen one, so that a burst of orders cannot all land on the emptiest hub.
 *
 * - `place` PlacementRequest → PlaceResult; whatever it takes, the holder has a place in the hub's capacity stream
 * from then
 *   on, without which a hub could be deregistered under it. A hub on which it has one already is returned again.
 * `mayStay`: also when it takes nothing new, unless another one does.
 * - `resize` {hub, holder, claim} → {resized, message?}: false when the hub has no room for it.
 * - `release` {holder, hub?} → {}: gives back what the holder has, wherever it is.
 */
export const createScheduler = (options: {
  readonly registry: HubRegistry;
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
  readonly logger: Logger;
  /** True while nothing may be placed on this hub: its lane is paused or its circuit breaker open. */
  readonly isBlocked: (hub: string, order: string) => boolean;
  /** Calls of the last hour to this hub, and how many failed. Default: nothing is known. */
  readonly callsOf?: (hub: string) => Candidate['calls'];
  /** Simulated hubs take nothing new, also those that are registered already. */
  readonly refusesSimulated?: boolean;
  /** What the site of a hub has for the steps that may be the ledger's. Default: nothing. */
  readonly siteOf?: (hub: HubFacts) => Promise<OfferedSite | undefined>;
}): EffectPort => {
  const { registry, commandRunner, clock, logger, refusesSimulated = false } = options;

  /** Waits for what is under way: an earlier attempt of the same effect may be. */
  const capacityOf = async (id: string, call: EffectCall): Promise<HubCapacityState> =>
    (await commandRunner.load(hubCapacity, id, { signal: call.signal })).state;
  /**
   * A first placement need not wait for those of others: it holds nothing anywhere, and the capacity stream decides
   * what
   * was chosen from it for good. Waiting, each order stood twice in the line of every hub, and a burst of them for
   * seconds.
   */
  const capacityForPlacement = async (id: string, call: EffectCall): Promise<HubCapacityState> =>
    call.mode === 'perform' && call.attempt === 1
      ? (await commandRunner.peek(hubCapacity, id, { signal: call.signal })).state
      : capacityOf(id, call);

  /** One hub of which nothing can be said must not keep orders from all the others. */
  const readable = async (
    id: string,
    call: EffectCall,
    read = capacityOf,
  ): Promise<HubCapacityState | undefined> => {
    try {
      return await read(id, call);
    } catch (error) {
      if (call.signal.aborted || error instanceof StoreUnavailable || error instanceof OutcomeUnknown)
        throw error;
      logger.error(
        { err: error, hub: id, tenant: call.tenant, correlationId: call.correlationId },
        'hub capacity unreadable; placing nothing on it',
      );
      return undefined;
    }
  };
  const lookForPlacement = async (hub: RegisteredHub, call: EffectCall): Promise<Seen> => {
    const capacity = await readable(hub.facts.id, call, capacityForPlacement);
    if (capacity === undefined)
      return { hub, capacity: hubCapacityDecider.initialState(), fault: 'its capacity cannot be read' };
    return refusesSimulated && hub.facts.simulated
      ? { hub, capacity, fault: 'simulated hubs are refused in production' }
      : { hub, capacity };
  };

  const execute = (
    hub: string,
    command: HubCapacityCommand,
    call: EffectCall,
    ...step: readonly (string | number)[]
  ): Promise<CommandOutcome<HubCapacityState>> => {
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type, hub, ...step);
    return commandRunner.execute(
      hubCapacity,
      hub,
      command,
      { ...contextOf(call, commandId), hub },
      { step: true, inLine: true },
    );
  };

  /** The capacity stream must know the limits of the hub's present document before anything is reserved in it. */
  const declared = async (seen: Seen, call: EffectCall): Promise<Seen> => {
    const { hub, capacity } = seen;
    if (isDeclared(capacity, hub)) return seen;
    const { id } = hub.facts;
    const command = declarationOf(hub, clock.now());
    const stated = await execute(id, command, call, hub.revision, JSON.stringify(hub.limits));
    return { hub, capacity: stated.loaded.state };
  };

  const candidateOf = ({ hub, capacity, fault }: Seen, request: PlacementRequest): Candidate => {
    const held = claimOf(capacity, request.holder);
    const count = registry.holdersOf(hub.facts.id, request.tenant, request.holder.kind);
    return {
      hub: hub.facts,
      deleting: hub.deleting || isClosedFor(capacity, hub.revision),
      adapter: hub.adapter !== undefined,
      blocked: options.isBlocked(hub.facts.id, request.holder.id),
      health: hub.health,
      ...defined({ calls: options.callsOf?.(hub.facts.id), fault }),
      limits: hub.limits,
      // What this very order holds from an earlier attempt is not in its own way.
      used: held === undefined ? capacity.used : without(capacity.used, held),
      tenantClusters: held === undefined ? count : count - 1,
    };
  };

  /** As its kind declares it, of the object as it is now. */
  const claimed = async (holder: Holder, { signal }: EffectCall): Promise<CapacityClaim> => {
    const kind = actingKindOf(holder.kind);
    if (kind?.claims === undefined) return NOTHING;
    return kind.claims((await commandRunner.load(aggregateOf(kind), holder.id, { signal })).state);
  };

  const placeOrder = async (
    { mayStay = false, ...asked }: PlacementRequest & { readonly mayStay?: boolean },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    await registry.ready(call.signal);
    const request = { ...asked, claim: asked.claim ?? (await claimed(asked.holder, call)) };
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const seen = await Promise.all(registry.hubs().map((hub) => lookForPlacement(hub, call)));
      const choice = place(
        request,
        seen.map((each) => candidateOf(each, request)),
      );
      const former = seen.find(({ capacity }) => claimOf(capacity, request.holder) !== undefined)?.hub;
      const stays = former !== undefined && (fits(choice, former) || (mayStay && !choice.placed));
      const chosen = stays ? former : choice.placed ? registry.get(choice.hub.id) : undefined;
      if (former !== undefined && former !== chosen) await give(former.facts.id, request.holder, call, round);
      if (chosen === undefined) {
        // The hub went away between the look and the choice.
        if (choice.placed) continue;
        return done(choice satisfies PlaceResult);
      }
      const reserved = await reserve(chosen, request, call, round, seen);
      if (reserved)
        return done(resultOf(chosen, choice, request.tenant, await options.siteOf?.(chosen.facts)));
    }
    return failed('Crowded', 'other orders were faster each time');
  };

  const reserve = async (
    hub: RegisteredHub,
    { holder, claim }: Required<Pick<PlacementRequest, 'holder' | 'claim'>>,
    call: EffectCall,
    round: number,
    seen: readonly Seen[],
  ): Promise<boolean> => {
    const before = seen.find((each) => each.hub.facts.id === hub.facts.id);
    if (before !== undefined) await declared(before, call);
    const command: HubCapacityCommand = { type: 'ReserveCapacity', at: clock.now(), holder, claim };
    const outcome = await execute(hub.facts.id, command, call, round);
    return outcome.outcome === 'accepted';
  };

  const give = (hub: string, holder: Holder, call: EffectCall, round: number) =>
    execute(hub, { type: 'ReleaseCapacity', at: clock.now(), holder }, call, round);

  const resize = async (
    args: { readonly hub: string; readonly holder: Holder; readonly claim: CapacityClaim },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { hub: id, holder, claim } = args;
    await registry.ready(call.signal);
    const hub = registry.get(id);
    // A hub that was deregistered meanwhile limits nothing any more.
    if (hub !== undefined) await declared({ hub, capacity: await capacityOf(id, call) }, call);
    const command: HubCapacityCommand = { type: 'ResizeReservation', at: clock.now(), holder, claim };
    const outcome = await execute(id, command, call);
    if (outcome.outcome === 'accepted') return done({ resized: true });
    const { code, message } = outcome.rejection;
    return done({ resized: false, code, message });
  };

  const release = async (args: { readonly holder: Holder; readonly hub?: string }, call: EffectCall) => {
    await registry.ready(call.signal);
    const ids = new Set(registry.hubs().map((hub) => hub.facts.id));
    const isNamed = args.hub !== undefined && args.hub !== '';
    if (isNamed) ids.add(args.hub);
    for (const id of ids) {
      // Where it may hold something, "cannot be read" is not "holds nothing".
      const mayHold = !isNamed || id === args.hub;
      const capacity = mayHold ? await capacityOf(id, call) : await readable(id, call);
      if (capacity !== undefined && claimOf(capacity, args.holder) !== undefined)
        await give(id, args.holder, call, 0);
    }
    return done({});
  };

  return effectPort({ place: placeOrder, resize, release }, storeOutcome);
};

const fits = ({ decision }: Placement, hub: RegisteredHub): boolean =>
  decision.candidates.some((candidate) => candidate.hub === hub.facts.id && candidate.fits);

/**
 * Tells a hub's capacity stream what its document declares as soon as that changes, so that orders which wait for room
 * hear of it. Returns how to stop.
 */
export const declareCapacities = (options: {
  readonly registry: HubRegistry;
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Only the owner of the processes declares; the others would only repeat it. */
  readonly isOwner: () => boolean;
}): (() => void) => {
  const { registry, commandRunner, clock, logger } = options;
  const declare = async (hub: RegisteredHub): Promise<void> => {
    const { id } = hub.facts;
    const { state, revision } = await commandRunner.load(hubCapacity, id);
    if (isDeclared(state, hub)) return;
    const commandId = derivedCommandId('declare-capacity', id, hub.revision, revision);
    const context = hubContext(commandId, 'hub-registry', id, hub);
    await commandRunner.execute(hubCapacity, id, declarationOf(hub, clock.now()), context);
  };
  return registry.onChange((id, hub) => {
    if (hub === undefined || !options.isOwner()) return;
    // Should it fail, the next placement on this hub declares it before it reserves.
    declare(hub).catch((error: unknown) => logger.warn({ err: error, hub: id }, 'hub capacity not declared'));
  });
};

/** A hub that is going declares nothing any more: that would open it again. */
const isDeclared = (capacity: HubCapacityState, { limits, revision, deleting }: RegisteredHub): boolean =>
  deleting ||
  (capacity.declared &&
    sameJson(capacity.limits, limits) &&
    (capacity.closedAt === undefined || isClosedFor(capacity, revision)));

const declarationOf = ({ facts, limits, revision }: RegisteredHub, at: string): HubCapacityCommand => ({
  type: 'DeclareCapacity',
  at,
  hub: facts.id,
  limits,
  hubRevision: revision,
});

const resultOf = (
  { facts }: RegisteredHub,
  { decision }: Placement,
  tenant: string,
  site?: OfferedSite,
): PlaceResult => ({
  placed: true,
  hub: facts.id,
  namespace: namespaceOf(facts, tenant),
  mode: facts.mode,
  controller: facts.controller,
  simulated: facts.simulated,
  ...(facts.tenantNamespaces && own(facts.namespaces, tenant) === undefined
    ? { tenantNamespace: true as const }
    : {}),
  ...stepsOf(facts, site),
  decision,
});

const stepsOf = (
  facts: HubFacts,
  site: OfferedSite | undefined,
): Pick<PlaceResult & { placed: true }, 'steps' | 'site'> => {
  const steps = rulesFor(facts, site?.steps);
  const isOurs = Object.values(steps).includes('ledger');
  return isOurs ? { steps, site: { zone: facts.zone, baseDomain: site?.baseDomain ?? '' } } : { steps };
};

const without = (used: CapacityClaim, held: CapacityClaim): CapacityClaim => ({
  controlPlanes: used.controlPlanes - held.controlPlanes,
  nodes: Object.fromEntries(
    Object.entries(used.nodes).map(([hostType, count]) => [
      hostType,
      count - (own(held.nodes, hostType) ?? 0),
    ]),
  ),
});
