import type { AuditExportCommand, AuditExportState } from '../../../domain/audit/export.ts';
import type { ExportRequest } from '../../../domain/audit/events.ts';
import { listAt, objectAt, stringAt } from '../../../domain/json-tools.ts';
import { auditExportAggregate } from '../../../domain/kinds.ts';
import { parseStreamName } from '../../../domain/stream-name.ts';
import type { CommandOutcome, CommandRunner } from '../../commands/command.ts';
import { LogDamaged, type EventStore } from '../../log/event-store.ts';
import { derivedCommandId } from '../../log/identifiers.ts';
import { principalIn, systemContext, type CommandContext } from '../../log/metadata.ts';
import type { Runtime, Timers } from '../../ports.ts';
import { pause } from '../../process-runner/pause.ts';
import { BundleInconsistent, writeBundle } from '../bundle/writer.ts';
import { followEvents, type FindLeaves } from '../rare-events.ts';
import type { Rest } from '../tenant-heads.ts';
import type { AuditHalt, AuditHeads, TreeHead } from '../tree-heads.ts';
import { contentOf, NothingToExport, type ExportSource } from './content.ts';
import { headForExport, NotSigned, type ExportHeadSource } from './export-head.ts';
import type { ExportFile, ExportFiles } from './ports.ts';

/**
 * Exports of the history: asked for, made one after the other behind the answer, kept for a while. The log
 * says what was asked for and what became of it; the file lies with the instance that made it.
 */
export type AuditExports = {
  /** Throws ExportsBusy. */
  request(
    id: string,
    request: ExportRequest,
    context: CommandContext,
  ): Promise<CommandOutcome<AuditExportState>>;
  state(id: string): Promise<AuditExportState>;
  /** Ids of all that were ever asked for, with who asked, newest last. */
  list(signal?: AbortSignal): Promise<readonly { readonly id: string; readonly subjectId: string }[]>;
  /** Undefined: it is not being made here now. */
  progress(id: string): ExportProgress | undefined;
  /** Undefined: the file is not on this instance. */
  file(id: string): Promise<ExportFile | undefined>;
  recordDownload(id: string, context: CommandContext): Promise<CommandOutcome<AuditExportState>>;
  discard(id: string, reason: string, context: CommandContext): Promise<CommandOutcome<AuditExportState>>;
  /** A person's data was erased: files that may hold them in clear are removed, those being made are given up. */
  erased(tenants: readonly string[]): Promise<void>;
  /** Makes them, and removes old ones, until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
};

export type ExportProgress = { readonly waiting: boolean; readonly done: number };

/** Too many are waiting to be made. */
export class ExportsBusy extends Error {
  override readonly name = 'ExportsBusy';
}

export type ExportsOptions = {
  readonly source: ExportSource & {
    readonly store: EventStore;
    readonly tree: Pick<ExportHeadSource['tree'], 'indexOf'>;
  };
  readonly heads: AuditHeads;
  readonly find: FindLeaves;
  readonly files: ExportFiles;
  readonly runner: Pick<CommandRunner, 'execute' | 'load'>;
  readonly rest: Rest;
  /** Milliseconds after which a finished export is removed. Default: 7 days. */
  readonly keepMs?: number;
  /** Finished exports that are kept of each tenant, and of the whole log: the oldest goes first. 0: all. Default 50. */
  readonly keptOfTenant?: number;
  /** Why there is no head to wait for, while nothing is signed over a log that was changed. Default: heads come. */
  readonly halted?: () => AuditHalt | undefined;
  /** Told of an event (`<stream>@<revision>`) that is not the one that was recorded. */
  readonly suspect?: (event: string) => void;
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

/** Exports that may wait or be made at one time on one instance. */
const MOST_WAITING = 20;
/** Of these, of one subject: nobody keeps the others from theirs. */
const MOST_OF_ONE = 5;
/** Milliseconds of the thread until others get it. */
const SLICE_MS = 5;
const TIDY_EVERY_MS = 3_600_000;
/** Milliseconds that an export waits for a head over what was stored when it was asked for. */
const HEAD_MS = 30_000;
/**
 * Heads that an export shows to be continued although nobody said that they are pinned: those of the last exports of
 * the same
 * tenant (or of the whole log), with the pins that were asked for then, and the newest ones. Any other is to be
 * named, as
 * `audit export --trust` does.
 */
const MOST_OF_EXPORTS = 32;
const MOST_OF_HEADS = 64;
/** Of the pins that one export was asked for, those that the next ones show, too. */
const MOST_ASKED = 4;

/** A person who appears in the history of these tenants was erased then. */
type Erased = { readonly tenants: readonly string[]; readonly at: string };

type Running = {
  done: number;
  waiting: boolean;
  readonly subjectId: string;
  readonly controller: AbortController;
};

export const createAuditExports = (options: ExportsOptions): AuditExports => {
  const { source, heads, find, files, runner, clock, timers, logger, rest } = options;
  const queue: string[] = [];
  const running = new Map<string, Running>();
  const asked: { readonly id: string; readonly subjectId: string }[] = [];
  const pinned = new Map<string, number[]>();
  const erasures: Erased[] = [];
  let wake = (): void => undefined;
  const pin = (tenant: string, sizes: readonly number[]): void => {
    pinned.set(tenant, [...new Set([...sizes, ...(pinned.get(tenant) ?? [])])].slice(0, MOST_OF_EXPORTS));
  };

  const followed = followEvents({
    store: source.store,
    find,
    rest,
    types: ['AuditExportRequested', 'AuditExportCompleted', 'SubjectKeyDestroyed'],
    see: ({ stream, type, data, metadata }) => {
      if (type === 'SubjectKeyDestroyed')
        erasures.push({
          tenants: [stringAt(data, 'tenant'), ...listAt(data, 'tenants').map(String)],
          at: stringAt(data, 'at'),
        });
      else if (type === 'AuditExportRequested') {
        asked.push({ id: parseStreamName(stream).id, subjectId: stringAt(data, 'subjectId') });
        const request = objectAt(data, 'request');
        pin(stringAt(request, 'tenant'), listAt(request, 'pins').slice(0, MOST_ASKED).map(Number));
      } else pin(stringAt(metadata, 'tenant'), [Number(data['treeSize'])]);
    },
  });

  const state = async (id: string): Promise<AuditExportState> =>
    (await runner.load(auditExportAggregate, id)).state;

  const enqueue = (id: string, subjectId: string): void => {
    if (running.has(id)) return;
    running.set(id, { done: 0, waiting: true, subjectId, controller: new AbortController() });
    queue.push(id);
    wake();
  };

  /** Sizes that auditors may have pinned: those of earlier exports, and of the newest heads. */
  const pinsFor = async (tenant: string, head: TreeHead, signal: AbortSignal): Promise<number[]> => {
    await followed.catchUp(signal);
    const newest: number[] = [];
    for await (const { size } of heads.newest(MOST_OF_HEADS, signal))
      if (size <= head.size) newest.push(size);
    return [...new Set([...(pinned.get(tenant) ?? []), ...newest])];
  };

  const make = async (id: string, mine: Running): Promise<void> => {
    const { signal } = mine.controller;
    const known = await state(id);
    if (known.status !== 'running') return;
    mine.waiting = false;
    let since = clock.monotonicMs();
    const line = async (many = 1): Promise<void> => {
      signal.throwIfAborted();
      mine.done += many;
      if (clock.monotonicMs() - since < SLICE_MS) return;
      await rest();
      since = clock.monotonicMs();
    };
    const from = { tree: source.tree, heads, clock, timers };
    const wait = { withinMs: HEAD_MS, signal, halted: options.halted };
    const head = await headForExport(id, known.request, from, wait);
    const pins = await pinsFor(known.request.tenant ?? '', head, signal);
    const content = await contentOf(known.request, { head, pins, at: clock.now() }, source, { line, signal });
    const manifest = await writeBundle(content, await files.begin(id));
    const { bytes, digest } = await files.finish(id, signal);
    const { events } = manifest.counts;
    const at = clock.now();
    await settle(
      id,
      known.request,
      { type: 'CompleteAuditExport', at, events, bytes, digest, treeSize: head.size },
      { onBehalfOf: known.subjectId },
    );
    logger.info({ export: id, events, bytes }, 'history export complete');
  };

  const settle = async (
    id: string,
    { tenant }: ExportRequest,
    command: AuditExportCommand,
    cause: { readonly onBehalfOf?: string } = {},
  ): Promise<void> => {
    const commandId = derivedCommandId(id, command.type);
    const where = { tenant: tenant ?? '', causationId: id };
    const context = systemContext(commandId, 'audit-export', { ...where, ...cause });
    // The same command may have other figures after a crash: it is the same all the same.
    await runner.execute(auditExportAggregate, id, command, context);
  };

  const fail = async (id: string, error: unknown): Promise<void> => {
    const reason = reasonOf(error);
    if (error instanceof LogDamaged) {
      logger.error({ export: id, ...error.at }, `${reason}; follow ops/runbooks/LedgerAuditTreeMismatch.md`);
      if (error.at !== undefined) options.suspect?.(error.at.event);
    } else logger.warn({ err: error, export: id }, 'history export failed');
    const known = await state(id);
    if (known.status === 'running')
      await settle(
        id,
        known.request,
        { type: 'FailAuditExport', at: clock.now(), reason },
        { onBehalfOf: known.subjectId },
      );
    await files.forget(id);
  };

  const makeNext = async (stopping: AbortSignal): Promise<void> => {
    const id = queue.shift();
    const mine = id === undefined ? undefined : running.get(id);
    if (id === undefined || mine === undefined) return;
    const stop = (): void => mine.controller.abort();
    stopping.addEventListener('abort', stop, { once: true });
    try {
      await make(id, mine);
      if (mine.controller.signal.aborted && !stopping.aborted) await files.forget(id);
      await dropOldest().catch((error: unknown) =>
        logger.warn({ err: error }, 'search for old exports failed; retrying later'),
      );
    } catch (error) {
      // Stopped: made anew at the next start. Discarded: nobody waits for it.
      if (!mine.controller.signal.aborted)
        await fail(id, error).catch((again: unknown) =>
          logger.error({ err: again, export: id }, 'export failure not recorded'),
        );
      else if (!stopping.aborted) await files.forget(id);
    } finally {
      stopping.removeEventListener('abort', stop);
      running.delete(id);
    }
  };

  /** One that is being made forgets its file itself. */
  const letGo = async (id: string): Promise<void> => {
    const mine = running.get(id);
    if (mine === undefined) await files.forget(id);
    else mine.controller.abort();
  };

  /** Removes the file of an export that may hold in clear what was erased since it was asked for. */
  const removeErased = async (id: string, known: AuditExportState): Promise<boolean> => {
    if (known.status !== 'complete' && known.status !== 'running') return false;
    const { tenant, audience } = known.request;
    // The provider's auditors are shown people of other tenants, too: those who worked for this one.
    const concerns = (of: Erased): boolean =>
      of.at >= known.requestedAt &&
      (tenant === undefined || of.tenants.includes(tenant) || audience === 'provider');
    if (!erasures.some(concerns)) return false;
    const reason = 'it may show in clear what was erased since: ask for it again';
    await settle(id, known.request, { type: 'DiscardAuditExport', at: clock.now(), reason });
    await letGo(id);
    return true;
  };

  const drop = async (id: string, request: ExportRequest, reason: string): Promise<void> => {
    await settle(id, request, { type: 'DiscardAuditExport', at: clock.now(), reason });
    await files.forget(id);
  };

  /** Leaves of each tenant as many as are kept. */
  const dropOldest = async (): Promise<void> => {
    const most = options.keptOfTenant ?? 50;
    if (most === 0) return;
    const finished: { id: string; at: string; request: ExportRequest }[] = [];
    for (const id of await files.list()) {
      const known = await state(id);
      if (known.status === 'complete') finished.push({ id, at: known.completedAt, request: known.request });
    }
    for (const ofTenant of Map.groupBy(finished, ({ request }) => request.tenant ?? '').values()) {
      const oldestFirst = ofTenant.toSorted((left, right) => (left.at < right.at ? -1 : 1));
      for (const { id, request } of oldestFirst.slice(0, -most))
        await drop(id, request, `the newest ${most} of a tenant are kept`);
    }
  };

  /** What a crash left is made again; what is old is removed. */
  const tidy = async (): Promise<void> => {
    const keepMs = options.keepMs ?? 7 * 86_400_000;
    await followed.catchUp();
    for (const id of await files.list()) {
      if (await removeErased(id, await state(id))) continue;
      if (running.has(id)) continue;
      const known = await state(id);
      if (known.status === 'running') enqueue(id, known.subjectId);
      else if (known.status !== 'complete') await files.forget(id);
      else if (Date.parse(known.completedAt) + keepMs <= Date.parse(clock.now())) {
        const days = Math.round(keepMs / 86_400_000);
        await drop(id, known.request, `files are kept for ${days} days`);
      }
    }
    await dropOldest();
  };

  return {
    state,
    file: async (id) => {
      await followed.catchUp();
      return (await removeErased(id, await state(id))) ? undefined : files.find(id);
    },
    erased: async (tenants) => {
      // The read model, from which others learn it, may not know yet.
      erasures.push({ tenants, at: clock.now() });
      await tidy();
    },
    list: async (signal) => {
      await followed.catchUp(signal);
      return [...asked];
    },
    progress: (id) => {
      const mine = running.get(id);
      return mine === undefined ? undefined : { waiting: mine.waiting, done: mine.done };
    },
    request: async (id, request, context) => {
      // Who may fetch it: whose rights were used.
      const subjectId = principalIn(context.actor);
      const before = await state(id);
      if (before.status === 'none') {
        if (isBusy(running, subjectId)) throw new ExportsBusy();
        await files.expect(id);
      }
      const command = { type: 'RequestAuditExport' as const, at: clock.now(), subjectId, request };
      const outcome = await runner.execute(auditExportAggregate, id, command, context);
      if (outcome.outcome === 'accepted' && outcome.loaded.state.status === 'running' && !outcome.replayed)
        enqueue(id, subjectId);
      return outcome;
    },
    recordDownload: (id, context) =>
      runner.execute(
        auditExportAggregate,
        id,
        { type: 'RecordAuditDownload', at: clock.now(), subjectId: principalIn(context.actor) },
        context,
      ),
    discard: async (id, reason, context) => {
      const outcome = await runner.execute(
        auditExportAggregate,
        id,
        { type: 'DiscardAuditExport', at: clock.now(), reason },
        context,
      );
      if (outcome.outcome === 'accepted') await letGo(id);
      return outcome;
    },
    run: async (signal) => {
      let tidiedAt: number | undefined;
      while (!signal.aborted) {
        if (tidiedAt === undefined || clock.monotonicMs() - tidiedAt >= TIDY_EVERY_MS) {
          tidiedAt = clock.monotonicMs();
          await tidy().catch((error: unknown) =>
            logger.warn({ err: error }, 'search for old exports failed; retrying later'),
          );
        }
        if (queue.length > 0) await makeNext(signal);
        else await idle(timers, signal, (called) => (wake = called));
      }
    },
  };
};

const isBusy = (running: ReadonlyMap<string, Running>, subjectId: string): boolean =>
  running.size >= MOST_WAITING ||
  [...running.values()].filter((each) => each.subjectId === subjectId).length >= MOST_OF_ONE;

/** Until there is something to do, it is time to tidy, or the signal is aborted. */
const idle = async (
  timers: Timers,
  signal: AbortSignal,
  onWake: (called: () => void) => void,
): Promise<void> => {
  const woken = new AbortController();
  onWake(() => woken.abort());
  await pause(timers, TIDY_EVERY_MS, AbortSignal.any([signal, woken.signal]));
};

/** What is said of a failure: never more than its own words, where they are meant for readers. */
const reasonOf = (error: unknown): string => {
  if (error instanceof NothingToExport || error instanceof NotSigned) return error.message;
  if (error instanceof LogDamaged)
    return error.at === undefined
      ? 'the event log is damaged: the operators of this service are alarmed'
      : `the event log is damaged: the event at position ${error.at.position} is not the one that was recorded; ` +
          'the operators of this service are alarmed';
  if (error instanceof BundleInconsistent) return `log and audit tree do not agree: ${error.message}`;
  if (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
    return 'no space left for exports';
  return 'a fault of the service; its log names the export';
};
