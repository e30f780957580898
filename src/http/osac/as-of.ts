import { createAsOf, type AsOf, type Visible } from '../../app/log/as-of.ts';
import { createLeafGuard } from '../../app/audit/verified-reads.ts';
import type { CommandRunner } from '../../app/commands/command.ts';
import type { EventStore, Position } from '../../app/log/event-store.ts';
import type { Clock } from '../../app/ports.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { ListPage, ReadModels, ResourceReader } from '../../projections/read-models.ts';
import { sees, seesTenant } from '../../projections/visibility.ts';
import type { AsOfRequest } from '../../projections/resources/as-of-table.ts';
import type { ChangeReader } from '../../projections/resources/change-reader.ts';
import { invalid, notReached, objectNotFound, type ApiError } from '../errors.ts';
import { BEFORE_EVERYTHING, createMoments, type Moments } from '../past-moments.ts';
import { TIMELINE_VIEW, type Positions } from '../positions.ts';
import type { Answer, Handler, IdMessage } from './call.ts';
import type { PastLists } from './lists.ts';
import type { Surface } from './messages.ts';
import { shownDocument } from './write-context.ts';

/** Milliseconds that a timeline of the past is waited for. */
const WAIT_MS = 5_000;

export type Past = {
  readonly moments: Moments;
  readonly asOf: AsOf;
  readonly changes: Pick<ChangeReader, 'prunedTo'>;
  /** Waits until reads show a position; false: too late. */
  readonly shown: (position: Position) => Promise<boolean>;
  readonly told: (position: Position) => Promise<boolean>;
};

/** The past of one log, as this instance's read models know it. */
export const createPast = ({
  store,
  runner,
  readModels,
  positions,
  clock,
}: {
  readonly store: EventStore;
  readonly runner: CommandRunner;
  readonly readModels: Pick<ReadModels, 'audit' | 'changes' | 'waitFor'>;
  readonly positions: Positions;
  readonly clock: Clock;
}): Past => ({
  moments: createMoments({
    store,
    positions,
    audit: () => readModels.audit,
    waitFor: readModels.waitFor,
    clock,
  }),
  asOf: createAsOf({ store, runner, guard: createLeafGuard(() => readModels.audit) }),
  changes: readModels.changes,
  shown: positions.applied,
  told: (position) => readModels.waitFor(TIMELINE_VIEW, position, { timeoutMs: WAIT_MS }),
});

/**
 * Get of any kind as it was: the object's own stream, folded up to the moment. Who may see it is decided by the
 * tenant that it had then; what was not there yet, or not any more, is as absent as what never was.
 */
export const getAsOf =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    now: Handler<IdMessage>,
    past: Past,
  ): Handler<IdMessage> =>
  (call) => {
    const { surface, principal, message, signal } = call;
    if (message.asOf === undefined) return now(call);
    const read = async (): Promise<Answer> => {
      const position = await past.moments.resolve(message.asOf ?? '', 'as_of');
      const { visibility } = principal;
      const visible: Visible = (tenant, placed) =>
        placed === undefined ? seesTenant(visibility, tenant) : sees(visibility, kind.kind, placed);
      const how = { surface, position, past, visible, signal };
      const document = await documentAsOf(kind, message.id, how);
      if (document === undefined) throw objectNotFound(message.id);
      return { body: document.text };
    };
    return read();
  };

/**
 * JSON of the document of one surface at a position; undefined: reads showed none, or it belongs to a tenant that is
 * not
 * visible. What is foreign is looked at as far as what is absent, and no further.
 */
export const documentAsOf = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  id: string,
  {
    surface,
    position,
    past,
    visible = () => true,
    signal,
  }: {
    readonly surface: Surface;
    readonly position: string;
    readonly past: Pick<Past, 'asOf'>;
    /** Whose objects may be seen. Default: everybody's. */
    readonly visible?: Visible;
    readonly signal?: AbortSignal;
  },
): Promise<{ readonly tenant: string; readonly text: string } | undefined> => {
  if (position === BEFORE_EVERYTHING) return undefined;
  const loaded = await past.asOf.load(aggregateOf(kind), id, position, {
    // Every kind begins with an event that names its tenant, project and name, which never change.
    visible,
    ...(signal === undefined ? {} : { signal }),
  });
  const view = loaded === undefined ? undefined : kind.view(loaded.state);
  if (loaded === undefined || view === undefined || !view.exists || view.archived) return undefined;
  if (!visible(view.tenant, view)) return undefined;
  return {
    tenant: view.tenant,
    text: JSON.stringify(shownDocument(kind, view.document, loaded.version, surface)),
  };
};

/**
 * Lists of the past, as far back as `changes` reaches: older ones are an export. What `changes` does not say of
 * an object, because it changed only later, its own stream does.
 */
export const listAsOf =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    resources: Pick<ResourceReader, 'query'>,
    past: Past,
  ): PastLists =>
  async ({ text, query }) => {
    const position = await past.moments.resolve(text, 'as_of');
    if (position === BEFORE_EVERYTHING) return { documents: [], total: 0 };
    if (!(await past.shown(position))) throw notApplied();
    const pruned = past.changes.prunedTo();
    if (pruned !== undefined && position < pruned.position) throw tooOld();
    const ask = async (folded: AsOfRequest['folded']): Promise<ListPage> =>
      resources.query({ ...query, asOf: { position, privateOnly: kind.privateOnly, folded } });
    const fold = async (id: string): Promise<AsOfRequest['folded'][number]> => {
      const { signal } = query;
      const shown = await documentAsOf(kind, id, { surface: 'private', position, past, signal });
      return shown === undefined ? { id } : { id, shown: { tenant: shown.tenant, document: shown.text } };
    };
    let folded: AsOfRequest['folded'] = [];
    for (let round = 0; ; round += 1) {
      const page = await ask(folded);
      if (page.unknown === undefined) return page;
      // Retention goes on while the list is read, so that a few may follow.
      if (page.unknown.length + folded.length > MAX_FOLDED || round >= MAX_ROUNDS) throw tooOld();
      const more: AsOfRequest['folded'][number][] = [];
      for (const id of page.unknown) more.push(await fold(id));
      folded = [...folded, ...more];
    }
  };

/** Objects of one list whose streams are folded one by one. */
const MAX_FOLDED = 1_000;
const MAX_ROUNDS = 5;

export const notApplied = (): ApiError =>
  notReached('this instance has not applied that position yet; try again');

const tooOld = (): ApiError =>
  invalid(
    "'as_of' is older than lists reach back here, which is as far as watches do; single objects are shown at any time, and an " +
      'auditor exports the whole history (POST /api/audit/v1/exports, ledgerctl audit export)',
    'as_of',
    'BEYOND_RETENTION',
  );
