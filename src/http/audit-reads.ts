import type { AccessJournal } from '../app/audit/access-journal.ts';
import type { Position } from '../app/log/event-store.ts';
import type { CommandContext } from '../app/log/metadata.ts';
import type { KeyStore } from '../app/ports.ts';
import type { Asked } from '../domain/audit/events.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Call } from './osac/call.ts';
import { SHARED_TENANT, type Principal } from './osac/principal.ts';
import { commandContext, type WriteServices } from './osac/write-context.ts';

export type LookServices = Pick<WriteServices, 'ids' | 'requestHash' | 'personal'> & {
  readonly access: AccessJournal;
  /** Conceals what somebody has typed under the own key. */
  readonly conceal: KeyStore['encrypt'];
};

type Caller = Pick<Call<object>, 'principal' | 'metadata'>;

/** An object, or without an id the kind of all that were asked for. */
export type LookedAt = { readonly kind: string; readonly id?: string };

/**
 * In whose history looks and acts stand. Those of admins are the provider's, also where the token names a tenant: they
 * name other tenants, which that one's auditors must not read.
 */
const historyOf = ({ admin, homeTenant }: Pick<Principal, 'admin' | 'homeTenant'>): string =>
  admin ? SHARED_TENANT : (homeTenant ?? '');

/**
 * Context of a look or an act: a command of its own, whatever the call has to be repeated by, in the history that
 * `historyOf` says. `of`: what it is, and what was asked.
 */
export const contextOf = (
  call: Caller,
  {
    what,
    query,
    method = 'GET',
  }: { readonly what: string; readonly query: JsonObject; readonly method?: string },
  services: Pick<LookServices, 'ids' | 'requestHash' | 'personal'>,
): Promise<CommandContext> => {
  const commandId = services.ids.uuidv7();
  const requestHash = services.requestHash({ method, route: what, body: query });
  const write = { commandId, requestHash, keyed: false, repeatable: false, creationId: commandId };
  return commandContext(call, write, { tenant: historyOf(call.principal), project: '' }, services);
};

export type RecordedLook = {
  readonly what: string;
  /** The question as it was understood; what somebody has typed and names nothing is ciphertext. */
  readonly query: JsonObject;
  /** Whose history; undefined: everybody's. */
  readonly tenants: readonly string[] | undefined;
  /** What of it every tenant may know in whose history the look stands. */
  readonly asked?: Asked;
};

/** Tells tenants, each once, that a look shows something of their history. Call it before that is sent. */
export type Tell = (tenants: Iterable<string>, object?: LookedAt) => Promise<void>;

/** Records a look of the provider at the history of tenants; throws StoreUnavailable, and then nothing may be shown. */
export const recordLook = async (
  call: Caller,
  { what, query, tenants, asked }: RecordedLook,
  services: LookServices,
): Promise<{ readonly recorded: Position; readonly tell: Tell }> => {
  const context = await contextOf(call, { what, query }, services);
  const recorded = await services.access.record(
    { what, query, tenants, ...(asked === undefined ? {} : { asked }) },
    context,
  );
  // The service's own history is nobody's; the one that has the look itself needs no notice.
  const told = new Set(['', context.tenant]);
  return {
    recorded,
    tell: async (shown, object) => {
      const news = [...new Set(shown)].filter((tenant) => !told.has(tenant));
      if (news.length === 0) return;
      for (const tenant of news) told.add(tenant);
      const tenantsTold = new Map(news.map((tenant) => [tenant, object]));
      await services.access.notice(
        { what, tenants: tenantsTold, ...(asked === undefined ? {} : { asked }) },
        context,
      );
    },
  };
};

/** The same of what happened to one object that is there, which its tenant is told. */
export const recordTimelineLook = async (
  call: Caller,
  {
    kind,
    id,
    tenant,
    asOf,
  }: { readonly kind: string; readonly id: string; readonly tenant: string; readonly asOf?: string },
  services: LookServices,
): Promise<void> => {
  const times = asOf === undefined ? {} : { as_of: asOf };
  const isHome = tenant === historyOf(call.principal);
  const { tell } = await recordLook(
    call,
    {
      what: 'timeline',
      query: { kind, id, ...times },
      tenants: [tenant],
      asked: { ...times, ...(isHome ? { kind, resource_id: id } : {}) },
    },
    services,
  );
  await tell([tenant], { kind, id });
};
