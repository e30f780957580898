import type { DescMessage } from '@bufbuild/protobuf';
import { createJsonSchemas, type JsonSchemas } from '../../app/json-schema/json-schemas.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { actingKindOf } from '../../domain/acting-kinds.ts';
import { kinds, type AnyKind } from '../../domain/kinds.ts';
import { revealing } from '../../domain/personal.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { TimelineReader } from '../../projections/read-models.ts';
import { withAfterWrite } from './after-write.ts';
import { createCatalogueReader } from './catalogue.ts';
import { checkNewName, createHandler, type Creation } from './creates.ts';
import type { HubAdapters } from './credentials.ts';
import { documentCreation, documentRevision } from './documents.ts';
import type { KindParts } from './kinds/kind-parts.ts';
import { kindParts } from './kinds/parts.ts';
import { MESSAGES, type Surface } from './messages.ts';
import { tellingDeleted } from './deleted-objects.ts';
import { withProjectRights } from './project-rights.ts';
import { getAsOf, listAsOf, type Past } from './as-of.ts';
import { listHandler } from './lists.ts';
import { getHandler, timelineHandler } from './reads.ts';
import type { KindService, SingleService, SurfaceTable } from './service-table.ts';
import { createRoomCheck } from './room-check.ts';
import { concealing, createNameToken, type PersonalDocuments } from './personal.ts';
import { deleteHandler, type Removal } from './deletes.ts';
import type { LookServices } from '../audit-reads.ts';
import { updateHandler, type Revision } from './updates.ts';
import type { WriteServices } from './write-context.ts';

export type OsacServices = WriteServices &
  LookServices & {
    readonly people: PersonalDocuments;
    readonly timeline: TimelineReader;
    readonly hubs: HubAdapters;
    /** Issuers that clients may sign in with, as capabilities shows them. */
    readonly issuers: readonly string[];
    readonly formatPosition: (position: string) => string;
    /** ISO duration that an order may wait for a place, unless it says so itself; absent: as long as it takes. */
    readonly placementDeadline?: string;
    readonly past: Past;
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
      remove: { command: (at: string) => ({ type: 'DeleteDocument', at }) as const, ...own.removal },
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
