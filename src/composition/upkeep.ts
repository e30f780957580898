import type { Erasures } from '../app/audit/erasure.ts';
import { ensureBuiltIns } from '../app/tenancy/built-ins.ts';
import type { CommandRunner } from '../app/commands/command.ts';
import type { Position } from '../app/log/event-store.ts';
import type { Runtime, Timers } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import type { ResourceCommands } from '../app/commands/resource-commands.ts';
import { findDangling } from './dangling-references.ts';
import { defaultProjectId, isDefaultProject } from '../domain/tenancy/project.resource.ts';
import { belongingsOf } from '../http/osac/kinds/tenant.ts';
import type { ResourceReader, ResourceRow } from '../projections/read-models.ts';

export type UpkeepServices = {
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
/** Rows that are looked at before other work gets its turn. */
const PAGE = 100;
const ALL = { all: true } as const;

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
  const again = async (done: boolean): Promise<void> => {
    let complete = done;
    for (;;) {
      if (complete) await sweep();
      await pause(timers, complete ? EVERY_MS : AGAIN_MS, signal);
      if (signal.aborted) return;
      complete = await tried();
    }
  };
  const first = tried();
  return { first: first.then(() => undefined), ended: first.then(again) };
};

/** Tenants without their default project, and default projects without their tenant. */
async function* unsettled(
  resources: ResourceReader,
  timers: Timers,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for await (const { id } of rowsOf('tenant', resources, timers, signal))
    if (resources.get('project', defaultProjectId(id), ALL) === undefined) yield id;
  for await (const { id, tenant } of rowsOf('project', resources, timers, signal))
    if (isDefaultProject(id) && resources.get('tenant', tenant, ALL) === undefined) yield tenant;
}

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
