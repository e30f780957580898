import { ZONE_ANNOTATION } from '../../../domain/hubs/placement.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { invalid, isRefused, reject } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, own, stringAt, textsAt } from '../../../domain/json-tools.ts';
import { aggregateOf, hub } from '../../../domain/kinds.ts';
import { claimable } from '../../../domain/networks/address-book.ts';
import {
  addressRules,
  bookOf,
  externalIpPool,
  HUB_ANNOTATION,
  isOffered,
  isReady,
} from '../../../domain/networks/external-ip-pool.resource.ts';
import { wantedAddress } from '../../../domain/networks/external-ip.resource.ts';
import type { Placed } from '../../../domain/placed-document.ts';
import { objectNotFound } from '../../errors.ts';
import { refused, type Creation, type CreateServices, type NewObject } from '../creates.ts';
import { documentCreation } from '../documents.ts';
import type { RoomCheck } from '../clusters.ts';
import type { KindService } from '../service-table.ts';

/** Of what the scheduler places: a zone or a hub that is not there is refused at once. */
export const placedCreation = (
  room: RoomCheck,
  { resources }: Pick<CreateServices, 'resources'>,
): Creation<DocumentCommand> => ({
  resolve: (object) => {
    const annotations = textsAt(objectAt(object.document, 'metadata'), 'annotations');
    const zone = own(annotations, ZONE_ANNOTATION) ?? '';
    if (zone !== '') room.zone(zone);
    const wanted = own(annotations, HUB_ANNOTATION) ?? '';
    if (wanted !== '' && resources.get(hub.kind, wanted, { all: true }) === undefined)
      throw refused(
        invalid(
          'UNKNOWN_HUB',
          'metadata.annotations',
          `annotation '${HUB_ANNOTATION}': hub '${wanted}' not found: name another one, or leave the annotation out`,
        ),
      );
    return documentCreation.resolve(object);
  },
});

/**
 * The pool must be ready and have an address, and the one that is wanted must be free (OSAC). Where only resting
 * ones are left, the new one waits.
 */
export const externalIpCreation = ({
  runner,
}: Pick<CreateServices, 'runner'>): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const pool = object.found.get('spec.pool');
    if (pool === undefined) return documentCreation.resolve(object);
    const { state } = await runner.load(aggregateOf(externalIpPool), pool.id);
    const view = externalIpPool.view(state);
    if (!view.exists || !isReady(view.document))
      throw refused(
        reject('failed-precondition', 'POOL_NOT_READY', `external IP pool '${pool.name}' is not ready`, {
          field: 'spec.pool',
        }),
      );
    const rules = addressRules(state as Placed);
    const found = claimable(bookOf(state), rules, object.at, wantedAddress(object.document));
    if (isRefused(found)) throw refused({ field: 'spec.pool', ...found });
    return documentCreation.resolve(object);
  },
});

/** Whose addresses serve what is on this hub, as the end of a sentence for a caller who may not know of hubs. */
export const poolsInReach = (
  { resources }: Pick<CreateServices, 'resources'>,
  { principal }: Pick<NewObject, 'principal'>,
  hubId: string,
): string => {
  const { rows } = resources.list(externalIpPool.kind, principal.visibility, { offset: 0, limit: 100 });
  const names = rows
    .filter(({ privateJson }) => {
      const document = JSON.parse(privateJson) as JsonObject;
      return isOffered(document) && stringAt(objectAt(document, 'status'), 'hub') === hubId;
    })
    .map(({ name }) => `'${name}'`);
  return names.length === 0
    ? 'no pool with free addresses is in reach'
    : `take one of pool ${names.slice(0, MOST_POOLS).join(' or ')}`;
};
const MOST_POOLS = 5;

/**
 * On the public surface a pool is there only while it offers addresses (OSAC).
 */
export const hidingUnoffered = (
  service: KindService,
  { resources }: Pick<CreateServices, 'resources'>,
): KindService => ({
  ...service,
  get: (call) => {
    const { id, asOf } = call.message;
    const row = asOf === undefined ? resources.get(service.kind, id, call.principal.visibility) : undefined;
    if (row !== undefined && !isOffered(JSON.parse(row.privateJson) as JsonObject)) throw objectNotFound(id);
    return service.get(call);
  },
});
