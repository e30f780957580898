import { meteredKinds } from '../../../src/domain/acting-kinds.ts';
import type { OpenInterval } from '../../../src/domain/metering/meter.ts';
import { HUB_OBJECTS, isOwned } from '../../../src/domain/hub-objects.ts';
import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { kinds, tenant } from '../../../src/domain/kinds.ts';
import { defaultParts, PROVISION } from '../../../src/domain/networks/default-networking.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import { BEGINNING } from './incarnation.ts';
import { Violation } from './invariants.ts';
import { MACHINES } from './machines.ts';
import { isAsWanted, isThere, thingsOf } from './networks.ts';
import type { World } from './world.ts';

const asker = () => ({ effectId: 'check', deadlineMs: 1_000, signal: new AbortController().signal });

/** A state of any kind, folded from the log of the world. */
const viewOf = (world: World, kind: string, id: string) => {
  const declared = kinds.find((one) => one.kind === kind);
  if (declared === undefined) return undefined;
  const { initialState, evolve } = declared.decider;
  const state = world.ledger
    .events(`${kind}-${id}`)
    .reduce((before, event) => evolve(before, event), initialState());
  return declared.view(state);
};

/** While things are there: pools count what is taken of them, and tenants have all that they get from the start. */
export const checkAccounts = (world: World): void => {
  const things = thingsOf(world).filter(isThere);
  const ofKind = (kind: string) => things.filter((thing) => thing.kind.kind === kind);
  for (const { id, view } of ofKind('externalIpPool')) {
    if (!view.exists) continue;
    const status = objectAt(view.document, 'status');
    const shown = Number(stringAt(status, 'allocated'));
    const taken = ofKind('externalIp').filter(
      (ip) => ip.view.exists && stringAt(objectAt(objectAt(ip.view.document, 'spec'), 'pool'), 'id') === id,
    ).length;
    if (shown !== taken)
      world.fail(new Violation(`pool ${id} counts ${shown} addresses, ${taken} are taken`));
    const sum = shown + Number(stringAt(status, 'available'));
    if (sum !== Number(stringAt(status, 'total')))
      world.fail(
        new Violation(`pool ${id}: ${sum} addresses are taken or free, of ${stringAt(status, 'total')}`),
      );
  }
  for (const stream of world.ledger.streams('tenant')) {
    const view = viewOf(world, tenant.kind, parseStreamName(stream).id);
    if (view?.exists !== true || view.archived || view.deletionTimestamp !== undefined) continue;
    const provision = view.document[PROVISION];
    if (!isObject(provision)) continue;
    for (const { kind, id } of defaultParts(view.id, view.creationTimestamp, provision))
      if (!things.some((thing) => thing.kind.kind === kind && thing.id === id && isAsWanted(thing)))
        world.fail(new Violation(`tenant ${view.id} has no ${kind} of its own (${id})`));
  }
};

/** Nobody owns anything any more: nothing is left on a hub, and nothing is held of anybody. */
export const checkNothingLeft = async (world: World): Promise<void> => {
  for (const [hub, adapter] of world.hubs)
    for (const { kind, namespace, name, uid, goneAt } of world.objectsOn(hub)) {
      const object = HUB_OBJECTS.find((one) => one.kind === kind);
      // What is everybody's stays.
      if (goneAt !== undefined || object === undefined || !isOwned(object) || name === 'shared') continue;
      const there = await adapter.get(object, { namespace, name }, asker());
      if (there?.uid === uid) world.fail(new Violation(`${kind} ${name} is left on ${hub}`));
    }
  for (const [hub, { claims, used }] of world.ledger.capacities()) {
    const holders = Object.values(claims).flatMap((bucket) => Object.keys(bucket));
    if (holders.length > 0) world.fail(new Violation(`${holders.join(', ')} still has a place on ${hub}`));
    if (used.controlPlanes !== 0 || Object.values(used.nodes).some((nodes) => nodes !== 0))
      world.fail(new Violation(`${hub} counts ${JSON.stringify(used)} as used by nobody`));
  }
  for (const [name, state] of world.ledger.names()) {
    if (state.status !== 'held') continue;
    const view = viewOf(world, state.kind, state.holder);
    if (view !== undefined && (!view.exists || view.archived))
      world.fail(new Violation(`name ${name} is held by ${state.kind} ${state.holder}, which is not there`));
  }
};

/** One thing may have several lengths of time. */
const partOf = ({ component, nodeSet }: OpenInterval['component']): string => `${component} ${nodeSet}`;

/** Times of hubs have whole seconds, and what lasts less than that may not be seen. */
const TOLERANCE_MS = 1_000;

/**
 * Machines are billed for the time in which their hub had them powered on, until somebody wanted them gone; what is
 * reserved for them no less. Other things from when they were seen to be ready, and nothing for longer than it was there.
 */
export const checkBills = (world: World): void => {
  const now = BEGINNING + Math.floor(world.agenda.now());
  for (const { kind, meter, hubObjects } of meteredKinds) {
    if (kind === 'cluster') continue;
    for (const stream of world.ledger.streams(kind)) {
      const { id } = parseStreamName(stream);
      const events = world.ledger.events(stream);
      let metering = meter.initial();
      const billedOf = new Map<string, number>();
      let changes = 1;
      const bill = ({ component }: OpenInterval, ms: number): unknown =>
        billedOf.set(partOf(component), (billedOf.get(partOf(component)) ?? 0) + ms);
      for (const event of events) {
        const { meter: next, closed } = meter.fold(metering, event);
        for (const interval of closed) bill(interval, interval.untilMs - interval.sinceMs);
        changes += closed.length;
        metering = next;
      }
      for (const interval of metering.open) bill(interval, now - interval.sinceMs);
      const wanted = events.find(({ type }) => type.endsWith('DeletionRequested'));
      const end = wanted === undefined ? now : Date.parse(stringAt(wanted.data, 'at'));
      const objects = world.plan.hubs
        .flatMap(({ id: hub }) => world.objectsOn(hub))
        .filter((object) => object.id === id && object.kind === hubObjects[0]?.kind);
      const lasted = (spans: readonly (readonly [from: number, to?: number])[]): number =>
        spans.reduce((sum, [from, to = now]) => sum + Math.max(0, Math.min(to, end) - from), 0);
      const there = lasted(objects.map(({ createdAt, goneAt }) => [createdAt, goneAt ?? now]));
      const powered = objects.flatMap(({ ran }) => ran);
      const ran = lasted(powered);
      const most = TOLERANCE_MS * (changes + 2 * Math.max(objects.length, powered.length));
      const wrong = (what: string, billed: number, really: number): void =>
        world.fail(new Violation(`${kind} ${id} is billed for ${billed} ms${what} and ran for ${really} ms`));
      for (const [part, billed] of billedOf) if (billed - there > most) wrong(` (${part})`, billed, there);
      const machine = Object.entries(MACHINES).find(([name]) => name === kind)?.[1];
      if (machine === undefined) continue;
      const power = [...billedOf].find(([part]) => part.split(' ')[1] === machine.powered)?.[1] ?? 0;
      if (Math.abs(power - ran) > most) wrong('', power, ran);
      // What is powered on has a host, at least from when it was seen.
      for (const [part, billed] of billedOf) if (power - billed > most) wrong(` (${part})`, billed, ran);
    }
  }
};
