import type { DescMessage } from '@bufbuild/protobuf';
import { createJsonSchemas, type JsonSchemas } from '../../app/json-schema/json-schemas.ts';
import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { defined, objectAt, stringAt } from '../../domain/json-tools.ts';
import { kinds, type AnyKind } from '../../domain/kinds.ts';
import { revealing } from '../../domain/personal.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { AnyMethod } from '../../domain/tenancy/rights.ts';
import type { ResourceReader, TimelineReader } from '../../projections/read-models.ts';
import { sees } from '../../projections/visibility.ts';
import type { LookServices } from '../audit-reads.ts';
import { ApiError, denied } from '../errors.ts';
import { withAfterWrite } from './after-write.ts';
import { getAsOf, listAsOf, type Past } from './as-of.ts';
import { lackedRight, mayCallAnywhere, mayCallOn, visibilityFor } from './authorization.ts';
import type { Handler, IdMessage, Call, CreateMessage } from './call.ts';
import { createCatalogueReader } from './catalogue.ts';
import { createRoomCheck } from './clusters.ts';
import { consoleSessions, type ConsoleAccess } from './console-sessions.ts';
import { checkNewName, createHandler, type Creation } from './creates.ts';
import type { HubAdapters } from './credentials.ts';
import { deleteHandler, type Removal } from './deletes.ts';
import { documentCreation, documentRevision } from './documents.ts';
import type { KindParts } from './kinds/kind-parts.ts';
import { kindParts } from './kinds/parts.ts';
import { protectedDefault } from './kinds/tenant.ts';
import { listHandler } from './lists.ts';
import { type Surface, MESSAGES } from './messages.ts';
import { getHandler, timelineHandler } from './reads.ts';
import type { KindService, SingleService, SurfaceTable } from './service-table.ts';
import { updateHandler, type Revision } from './updates.ts';
import { concealing, createNameToken, type PersonalDocuments, type WriteServices } from './write-context.ts';

type Deletable = Pick<ResourceKind, 'kind' | 'collection'> & {
  readonly view: (state: never) => ResourceView;
};

/**
 * Who could read an object that was deleted is told that it was. To everybody else it is absent: foreign and
 * absent ids run the same statements and give the same answer.
 */
const tellingDeleted = (
  service: KindService,
  { kind, collection, view }: Deletable,
  prefix: string,
  resources: Pick<ResourceReader, 'stateOf'>,
): KindService => {
  const told =
    <Message extends IdMessage>(handler: Handler<Message>): Handler<Message> =>
    async (call) => {
      try {
        return await handler(call);
      } catch (error) {
        const { id, asOf } = call.message;
        const isAbsent = error instanceof ApiError && error.reason === 'NOT_FOUND' && asOf === undefined;
        if (!isAbsent) throw error;
        const state = resources.stateOf(kind, id);
        const last = state === undefined ? undefined : view(state as never);
        if (last?.exists !== true || !last.archived || !sees(call.principal.visibility, kind, last))
          throw error;
        const timeline = service.extras.has('timeline')
          ? `${prefix}/${collection}/${encodeURIComponent(id)}/timeline`
          : undefined;
        throw deleted(error, last.deletionTimestamp, timeline);
      }
    };
  const extras = [...service.extras].map(
    ([name, { method, handler }]) => [name, { method, handler: told(handler) }] as const,
  );
  return {
    ...service,
    get: told(service.get),
    update: told(service.update),
    remove: told(service.remove),
    extras: new Map(extras),
  };
};

const deleted = (absent: ApiError, at: string | undefined, timeline: string | undefined): ApiError =>
  new ApiError(
    absent.error,
    `${absent.message}: it was deleted${at === undefined ? '' : ` at ${at}`}${timeline === undefined ? '' : `; its timeline is GET ${timeline}`}`,
    {
      ...absent.options,
      cause: absent,
      reason: 'DELETED',
      facts: {
        ...(at === undefined ? {} : { deleted_at: at }),
        ...(timeline === undefined ? {} : { timeline }),
      },
    },
  );

/**
 * Rights that hold inside one project (OSAC): the routes let everybody pass who has such a right in any
 * project, and here each object is asked for its own. The handlers behind see the caller with what the method may be
 * used
 * on, so that nothing of another project is reached through a reference either.
 */
export const withProjectRights = (
  surface: Surface,
  service: KindService,
  resources: Pick<ResourceReader, 'get'>,
): KindService => {
  const { governed, kind } = service;

  const limited = <Message>(method: AnyMethod, call: Call<Message>): Call<Message> => {
    const { principal } = call;
    return {
      ...call,
      // A getter, which a spread would call.
      get signal() {
        return call.signal;
      },
      principal: { ...principal, visibility: visibilityFor(principal, surface, governed, method) },
    };
  };

  /** What is seen by another right is refused; foreign and absent objects run the same statements and give the same answer. */
  const onObject =
    <Message extends { readonly id: string }>(
      method: AnyMethod,
      handler: Handler<Message>,
    ): Handler<Message> =>
    (call) => {
      const { principal, message } = call;
      if (mayCallAnywhere(principal, surface, governed, method)) return handler(call);
      const within = limited(method, call);
      const row = resources.get(kind, message.id, principal.visibility);
      if (row !== undefined && !sees(within.principal.visibility, kind, row))
        throw denied(lackedRight(principal, surface, governed, method));
      return handler(within);
    };

  const list: KindService['list'] = (call) =>
    service.list(mayCallAnywhere(call.principal, surface, governed, 'List') ? call : limited('List', call));

  const create: Handler<CreateMessage> = (call) => {
    const { principal, message } = call;
    if (mayCallAnywhere(principal, surface, governed, 'Create')) return service.create(call);
    const metadata = objectAt(message.object, 'metadata');
    const tenant = stringAt(metadata, 'tenant') || (principal.homeTenant ?? '');
    const where = { tenant, project: stringAt(metadata, 'project') };
    if (!mayCallOn(principal, surface, governed, 'Create', where)) throw outsideProjects();
    return service.create(limited('Create', call));
  };

  return {
    ...service,
    list,
    get: onObject('Get', service.get),
    create,
    update: onObject('Update', service.update),
    remove: onObject('Delete', service.remove),
    extras: new Map(
      [...service.extras].map(([name, { method, handler }]) => [
        name,
        { method, handler: onObject(method, handler) },
      ]),
    ),
  };
};

const outsideProjects = (): ApiError =>
  denied("permission denied: name a project of which you are a manager in 'metadata.project'");

type OsacServices = WriteServices &
  LookServices & {
    readonly people: PersonalDocuments;
    readonly timeline: TimelineReader;
    readonly hubs: HubAdapters;
    /** Issuers that clients may sign in with, as capabilities shows them. */
    readonly issuers: readonly string[];
    readonly formatPosition: (position: string) => string;
    /** ISO duration that an order may wait for a place, unless it says so itself; absent: as long as it takes. */
    readonly placementDeadline?: string;
    readonly maxDiskGib?: number;
    /** Absent: there are no consoles here. */
    readonly consoleAccess?: ConsoleAccess;
    /** Default: that of the setting. */
    readonly maxVolumeGib?: number;
    readonly past: Past;
    /** The run of this workflow looks at its hub at once. Absent: no workflows run here. */
    readonly lookNow?: (workflow: string, runId: string) => void;
  };

export const PUBLIC_PREFIX = '/api/fulfillment/v1';
export const PRIVATE_PREFIX = '/api/private/v1';

/** Both OSAC surfaces, from the declarations of all kinds. */
export const osacSurfaces = (services: OsacServices): readonly SurfaceTable[] => {
  const schemas = createJsonSchemas();
  return [
    surfaceTable('public', PUBLIC_PREFIX, services, schemas),
    surfaceTable('private', PRIVATE_PREFIX, services, schemas),
  ];
};

const surfaceTable = (
  surface: Surface,
  prefix: string,
  given: OsacServices,
  schemas: JsonSchemas,
): SurfaceTable => {
  const nameToken = createNameToken(given.requestHash);
  const services = { ...given, commands: concealing(given.commands, { ...given, nameToken }) };
  const table = new Map<string, KindService>();
  const catalogue = createCatalogueReader(services.resources, services.runner, schemas.judge);
  const room = createRoomCheck(services, catalogue);
  const withNames = { ...services, messageOf, schemas, room, catalogue };
  for (const declared of kinds) {
    const kind = revealing(declared, { open: given.people.open, nameToken });
    const own = kindParts[kind.kind]?.(withNames) ?? {};
    const parts = {
      creation: own.creation ?? documentCreation,
      revision: own.revision ?? documentRevision,
      remove: {
        command: (at: string) => ({ type: 'DeleteDocument', at }) as const,
        ...defined({ blocked: protectedDefault(kind, services) }),
        ...own.removal,
      },
      extras: extrasOf(surface, kind, own.handlers ?? {}, services),
    };
    const service = kindService(surface, kind, parts, services);
    if (service === undefined) continue;
    // A kind with rules of its own about who reads what (drafts of items) says itself what is absent.
    const served =
      own.serving?.(service, surface) ?? tellingDeleted(service, kind, prefix, services.resources);
    table.set(
      service.collection,
      withProjectRights(surface, withAfterWrite(served, own.after), services.resources),
    );
  }
  return {
    surface,
    prefix,
    kinds: table,
    singles: new Map([['capabilities', capabilities(surface, services)]]),
    actions: new Map(
      surface === 'public' && services.consoleAccess !== undefined
        ? [consoleSessions({ ...services, ...services.consoleAccess })].map((one) => [one.collection, one])
        : [],
    ),
    signalled: (kind, id) => {
      const acting = actingKindOf(kind);
      if (acting !== undefined) services.lookNow?.(acting.workflow.name, id);
    },
  };
};

type Parts<C> = {
  readonly creation: Creation<C>;
  readonly revision: Revision<C>;
  readonly remove: Removal<C>;
  readonly extras: KindService['extras'];
};

/** Undefined when the kind is not on this surface at all. */
const kindService = <S, C extends { readonly type: string }, E extends DomainEvent>(
  surface: Surface,
  kind: ResourceKind<S, C, E>,
  { creation, revision, remove, extras }: Parts<C>,
  services: OsacServices,
): KindService | undefined => {
  const schema = MESSAGES[kind.message]?.[surface];
  const stored: DescMessage | undefined = MESSAGES[kind.message]?.private;
  const methods = kind.methods[surface];
  if (schema === undefined || stored === undefined || methods.length === 0) return undefined;
  const withNames = { ...services, messageOf };
  return {
    kind: kind.kind,
    collection: kind.collection,
    governed: { service: kind.service },
    methods,
    schema,
    wrapsReplies: kind.wrapsReplies === true,
    list: listHandler(kind, surface, services, listAsOf(kind, services.resources, services.past)),
    get: getAsOf(kind, getHandler(kind.kind, services.resources), services.past),
    create: createHandler(kind, creation, withNames),
    update: updateHandler(kind, revision, { schemas: { stored, sent: schema } }, withNames),
    remove: deleteHandler(kind, remove, withNames),
    checkCreate: (object) => checkNewName(kind, object),
    extras,
  };
};

/** Of a kind that acts: what happened to an object, our addition on both surfaces, and routes of its own. */
const extrasOf = (
  surface: Surface,
  kind: AnyKind,
  handlers: NonNullable<KindParts['handlers']>,
  services: OsacServices,
): KindService['extras'] => {
  const acting = actingKindOf(kind.kind);
  if (acting === undefined) return new Map();
  const timeline = { method: 'GetTimeline', handler: timelineHandler(kind, services) } as const;
  const routes = surface === 'public' ? (acting.routes ?? []) : [];
  return new Map([
    ['timeline', timeline],
    ...routes.map(({ path, method }) => {
      const handler = handlers[path];
      if (handler === undefined) throw new TypeError(`nothing answers route ${path} of kind ${kind.kind}`);
      return [path, { method, handler }] as const;
    }),
  ]);
};

/** `GET P/capabilities`: anonymous on the public surface, for admins on the private one (OSAC). */
const capabilities = (surface: Surface, { issuers }: OsacServices): SingleService => {
  const body =
    issuers.length === 0 ? '{"authn":{}}' : JSON.stringify({ authn: { trusted_token_issuers: issuers } });
  return { method: 'Capabilities.Get', anonymous: surface === 'public', handler: () => ({ body }) };
};

const messageOf = (kind: string): string => kinds.find((other) => other.kind === kind)?.message ?? kind;
