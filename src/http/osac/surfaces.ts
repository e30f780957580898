import type { DescMessage } from '@bufbuild/protobuf';
import { createJsonSchemas, type JsonSchemas } from '../../app/json-schema/json-schemas.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { cluster, documentKinds, kinds } from '../../domain/kinds.ts';
import { revealing } from '../../domain/personal.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { TimelineReader } from '../../projections/read-models.ts';
import type { ExtraMethod } from './authorization.ts';
import type { ExtraMessage, Handler } from './call.ts';
import { withAfterWrite } from './after-write.ts';
import { createCatalogueReader } from './catalogue.ts';
import { clusterCreation, clusterRevision } from './clusters.ts';
import { checkNewName, createHandler, type Creation } from './creates.ts';
import { credentialHandler, type HubAdapters } from './credentials.ts';
import { documentCreation, documentRevision } from './documents.ts';
import { documentParts } from './kinds/parts.ts';
import { MESSAGES, type Surface } from './messages.ts';
import { tellingDeleted } from './deleted.ts';
import { withProjectRights } from './project-rights.ts';
import { getAsOf, listAsOf, type Past } from './as-of.ts';
import { listHandler } from './lists.ts';
import { getHandler, timelineHandler } from './reads.ts';
import type { KindService, SingleService, SurfaceTable } from './rest.ts';
import { createRoomCheck } from './room-check.ts';
import { concealing, createNameToken, type PersonalDocuments } from './personal.ts';
import { deleteHandler, type Removal } from './deletes.ts';
import type { LookServices } from '../looks.ts';
import { throughItems, withinItem } from './through-items.ts';
import { updateHandler, type Revision } from './updates.ts';
import type { WriteServices } from './write-context.ts';

/** What the OSAC surfaces need of the rest of the service. */
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
    /** Reads of the past (`as_of`). */
    readonly past: Past;
  };

export const PUBLIC_PREFIX = '/api/fulfillment/v1';
export const PRIVATE_PREFIX = '/api/private/v1';

/** Both OSAC surfaces, from the declarations of all kinds (design §7). */
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
  const withNames = { ...services, messageOf, schemas, room };
  const add = (service: KindService | undefined): void => {
    if (service !== undefined)
      table.set(service.collection, withProjectRights(surface, service, services.resources));
  };
  const told = (service: KindService | undefined, kind: Parameters<typeof tellingDeleted>[1]) =>
    service === undefined ? undefined : tellingDeleted(service, kind, prefix, services.resources);
  for (const declared of documentKinds) {
    const kind = revealing(declared, { open: given.people.open, nameToken });
    const own = documentParts[kind.kind]?.(withNames) ?? {};
    const creation = own.creation ?? documentCreation;
    const revision = own.revision ?? documentRevision;
    const remove = { command: (at: string) => ({ type: 'DeleteDocument', at }) as const, ...own.removal };
    const service = kindService(surface, kind, { creation, revision, remove, extras: new Map() }, services);
    // A kind with rules of its own about who reads what (drafts of items) says itself what is absent.
    const served =
      service === undefined || own.serving === undefined
        ? told(service, kind)
        : own.serving(service, surface);
    add(withAfterWrite(served, own.after));
  }
  const clusters = kindService(
    surface,
    cluster,
    {
      creation: throughItems(clusterCreation(catalogue, room, given), catalogue),
      revision: withinItem(clusterRevision(catalogue, room), catalogue, services.resources),
      remove: { command: (at) => ({ type: 'DeleteCluster', at }) as const },
      extras: clusterExtras(surface, services),
    },
    services,
  );
  add(told(clusters, cluster));
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
    list: listHandler(kind, surface, services, listAsOf(kind, services.resources, services.past)),
    get: getAsOf(kind, getHandler(kind.kind, services.resources), services.past),
    create: createHandler(kind, creation, withNames),
    update: updateHandler(kind, revision, { schemas: { stored, sent: schema } }, withNames),
    remove: deleteHandler(kind, remove, withNames),
    checkCreate: (object) => checkNewName(kind, object),
    extras,
  };
};

/** Kubeconfig and password on the public surface only (osac-api.md §2); the timeline is our addition on both. */
const clusterExtras = (surface: Surface, services: OsacServices): KindService['extras'] => {
  const extras = new Map<string, { method: ExtraMethod; handler: Handler<ExtraMessage> }>();
  extras.set('timeline', {
    method: 'GetTimeline',
    handler: timelineHandler(cluster, services),
  });
  if (surface === 'private') return extras;
  extras.set('kubeconfig', { method: 'GetKubeconfig', handler: credentialHandler('kubeconfig', services) });
  extras.set('password', { method: 'GetPassword', handler: credentialHandler('password', services) });
  return extras;
};

/** `GET P/capabilities`: anonymous on the public surface, for admins on the private one (osac-api.md §9). */
const capabilities = (surface: Surface, { issuers }: OsacServices): SingleService => {
  const body =
    issuers.length === 0 ? '{"authn":{}}' : JSON.stringify({ authn: { trusted_token_issuers: issuers } });
  return { method: 'Capabilities.Get', anonymous: surface === 'public', handler: () => ({ body }) };
};

const messageOf = (kind: string): string => kinds.find((other) => other.kind === kind)?.message ?? kind;
