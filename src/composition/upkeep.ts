import type { Erasures } from '../app/audit/erasure.ts';
import type { CommandRunner } from '../app/commands/command.ts';
import type { ResourceCommands } from '../app/commands/resource-commands.ts';
import type { Position } from '../app/log/event-store.ts';
import type { Timers, Runtime } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import { ensureBuiltIns } from '../app/tenancy/built-ins.ts';
import { FULFILLMENT_FINALIZER } from '../domain/hubs/hub-object.ts';
import type { JsonObject } from '../domain/json.ts';
import { listAt, objectAt, stringAt } from '../domain/json-tools.ts';
import { lastPart } from '../domain/networks/default-networking.ts';
import { LEAVING_MARK } from '../domain/tenancy/tenant.resource.ts';
import { defaultProjectId, isDefaultProject } from '../domain/tenancy/project.resource.ts';
import { belongingsOf } from '../http/osac/kinds/tenant.ts';
import type { ResourceReader, ResourceRow } from '../projections/read-models.ts';

/** A live object whose target or tenant is not there. */
type Dangling = {
  readonly from: { readonly kind: string; readonly id?: string; readonly tenant?: string };
  readonly to: { readonly kind: string; readonly id: string };
};

/** Targets that are looked at before other work gets its turn. */
const PAGE = 100;
/** Objects that are named; a log line should not hold more. */
const NAMED = 10;
const ALL = { all: true } as const;
/** Kept in ways of their own: a reported hub need not be registered, and a project is pointed at by its path. */
const KEPT_OTHERWISE = ['hub', 'project'];
/** Go with their tenant, a little later. */
const GO_ALONG = ['tenant', 'user', 'project'];
const BUILT_IN = ['shared', 'system'];

/**
 * Looks for what should never be (`app/referrals.ts` says why), so that a bug does not stay unseen. One indexed step
 * per target, pages of them with pauses. `total` counts targets and tenants that are missing.
 */
export const findDangling = async (
  resources: Pick<ResourceReader, 'get' | 'referencedBy' | 'nextReferred' | 'nextOwner'>,
  timers: Timers,
  signal: AbortSignal,
): Promise<{ readonly total: number; readonly named: readonly Dangling[] }> => {
  const named: Dangling[] = [];
  let total = 0;
  const note = (found: Dangling): void => {
    total += 1;
    if (named.length < NAMED) named.push(found);
  };
  let looks = 0;
  const look = async (): Promise<boolean> => {
    looks += 1;
    if (looks % PAGE === 0) await pause(timers, 0, signal);
    return !signal.aborted;
  };
  for (let to = resources.nextReferred({ kind: '', id: '' }); to !== undefined; ) {
    if (!(await look())) break;
    if (!KEPT_OTHERWISE.includes(to.kind) && resources.get(to.kind, to.id, ALL) === undefined) {
      const [from] = resources.referencedBy(to.kind, to.id, { limit: 1 });
      if (from !== undefined) note({ from, to });
    }
    to = resources.nextReferred(to);
  }
  for (let owner = resources.nextOwner({ kind: '', tenant: '' }); owner !== undefined; ) {
    if (!(await look())) break;
    const { kind, tenant } = owner;
    const checked = !GO_ALONG.includes(kind) && !BUILT_IN.includes(tenant);
    if (checked && resources.get('tenant', tenant, ALL) === undefined)
      note({ from: owner, to: { kind: 'tenant', id: tenant } });
    owner = resources.nextOwner(owner);
  }
  return { total, named };
};

type UpkeepServices = {
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly resources: ResourceReader;
  readonly erasures: Pick<Erasures, 'finish'>;
  /** Waits until reads show everything up to a position. */
  readonly applied: (position: Position) => Promise<unknown>;
  /** Told after every round how many targets and tenants of live objects are missing. */
  readonly onDangling?: (total: number) => void;
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

/** Both never reject: the service works without it, and the next round makes up for what failed. */
export type Upkeep = {
  /** The first round is over; reads show what it made. */
  readonly first: Promise<void>;
  /** Nothing runs any more, after the signal. */
  readonly ended: Promise<void>;
};

/** Milliseconds between two rounds: what a crash left undone waits no longer than this. */
const EVERY_MS = 600_000;
/** Milliseconds after which a round that failed is repeated. */
const AGAIN_MS = 5_000;
/** Milliseconds between two looks at tenants that are being deleted. */
const LEAVING_MS = 1_000;
/** After a look that changed nothing of a tenant, twice as many are left out as after the one before, up to this. */
const MOST_LEFT_OUT = 31;

/** What the service makes of its own: built-in roles, default projects, what tenants that are gone leave behind. */
export const startUpkeep = (services: UpkeepServices, signal: AbortSignal): Upkeep => {
  const { runner, commands, resources, clock, timers, logger, applied } = services;
  const belongings = belongingsOf(services);
  const round = async (): Promise<void> => {
    const tenants = (): AsyncIterable<string> => unsettled(resources, timers, signal);
    const position = await ensureBuiltIns({
      runner,
      commands,
      clock,
      logger,
      belongings,
      tenants,
      signal,
    });
    if (position !== undefined) await applied(position);
    await services.erasures.finish();
  };
  /** True when nothing was left undone. */
  const tried = async (): Promise<boolean> => {
    try {
      await round();
      return true;
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ err: error }, 'own objects of the service not created; retrying later');
      return false;
    }
  };
  /** Says what refers to nothing. What its caller was told is not known here, so that an operator decides. */
  const sweep = async (): Promise<void> => {
    try {
      const { total, named } = await findDangling(resources, timers, signal);
      if (signal.aborted) return;
      services.onDangling?.(total);
      if (total > 0) logger.warn({ total, named }, 'dangling references found');
    } catch (error) {
      logger.warn({ err: error }, 'dangling-reference check failed; retrying later');
    }
  };
  /** Looks that are still to be left out, and how many were after the last one. */
  const waits = new Map<string, { readonly more: number; readonly last: number }>();
  /** Tenants whose deletion waits until hubs show that nothing of them is left. */
  const leave = async (): Promise<void> => {
    try {
      const leaving = resources.marked('tenant', LEAVING_MARK, ALL).map(({ id }) => id);
      for (const id of waits.keys()) if (!leaving.includes(id)) waits.delete(id);
      for (const id of leaving) {
        if (signal.aborted) return;
        const { more, last } = waits.get(id) ?? { more: 0, last: 0 };
        if (more > 0) waits.set(id, { more: more - 1, last });
        else {
          const left = (await isSettled(id)) ? 0 : Math.min(2 * last + 1, MOST_LEFT_OUT);
          waits.set(id, { more: left, last: left });
        }
      }
    } catch (error) {
      logger.warn({ err: error }, 'tenants that are being deleted were not looked at; retrying later');
    }
  };
  /** True when it changed something. */
  const isSettled = async (id: string): Promise<boolean> => {
    try {
      return (await belongings.settle(id)) !== undefined;
    } catch (error) {
      logger.warn({ err: error }, 'a tenant that is being deleted was not settled; retrying later');
      return false;
    }
  };
  const again = async (done: boolean): Promise<void> => {
    let complete = done;
    for (;;) {
      if (complete) await sweep();
      for (let waited = 0; waited < (complete ? EVERY_MS : AGAIN_MS); waited += LEAVING_MS) {
        await pause(timers, LEAVING_MS, signal);
        if (signal.aborted) return;
        await leave();
      }
      complete = await tried();
    }
  };
  const first = tried();
  return { first: first.then(() => undefined), ended: first.then(again) };
};

/**
 * Tenants without their default project or all of their default networking, and default projects without their tenant.
 */
async function* unsettled(
  resources: ResourceReader,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for await (const { id, deleting, privateJson } of rowsOf('tenant', resources, timers, signal)) {
    if (resources.get('project', defaultProjectId(id), ALL) === undefined) yield id;
    else if (!deleting && isHalfMade(id, JSON.parse(privateJson) as JsonObject, resources)) yield id;
  }
  for await (const { id, tenant } of rowsOf('project', resources, timers, signal))
    if (isDefaultProject(id) && resources.get('tenant', tenant, ALL) === undefined) yield tenant;
}

/** It is held by our finalizer for its default networking, and the last part of that is missing. */
const isHalfMade = (id: string, document: JsonObject, resources: ResourceReader): boolean => {
  const metadata = objectAt(document, 'metadata');
  if (!listAt(metadata, 'finalizers').includes(FULFILLMENT_FINALIZER)) return false;
  const last = lastPart(id, stringAt(metadata, 'creation_timestamp'));
  return resources.get(last.kind, last.id, ALL) === undefined;
};

/** Every object of a kind, a page at a time; one that comes or goes meanwhile is seen at the next round. */
async function* rowsOf(
  kind: string,
  resources: ResourceReader,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<ResourceRow> {
  for (const rows of resources.pages(kind, PAGE)) {
    if (signal.aborted) return;
    yield* rows;
    await pause(timers, 0, signal);
  }
}
