import type { DocumentCommand, DocumentState } from '../../../domain/catalog/document.ts';
import type { DomainEvent } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, stringAt } from '../../../domain/json-tools.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import type { ResourceKind } from '../../../domain/resource.ts';
import { storageBackend } from '../../../domain/storage/storage-backend.resource.ts';
import { backendIdsOf, backingOf, storageTier } from '../../../domain/storage/storage-tier.resource.ts';
import { MAX_VOLUME_GIB, sizeOf } from '../../../domain/storage/volume.resource.ts';
import { ApiError, invalid, unfit } from '../../errors.ts';
import { type Creation, type CreateServices } from '../creates.ts';
import { documentCreation, documentRevision } from '../documents.ts';
import { placedCreation } from './external-ip.ts';
import type { PartServices } from './kind-parts.ts';
import type { Revision } from '../updates.ts';

type Services = Pick<CreateServices, 'runner' | 'resources'>;

/** As it is now, by its id. Throws ApiError 404, or 400 for one that is about to go. */
const standing = async <E extends DomainEvent>(
  kind: ResourceKind<DocumentState, DocumentCommand, E>,
  id: string,
  { runner }: Services,
): Promise<JsonObject> => {
  const view = kind.view((await runner.load(aggregateOf(kind), id)).state);
  if (!view.exists || view.archived) throw new ApiError('NOT_FOUND', `${kind.words} "${id}" not found`);
  if (view.deletionTimestamp !== undefined)
    throw unfit(`${kind.words} '${id}' is being deleted: name another one`, 'BEING_DELETED');
  return view.document;
};

const checkBackends = async (
  document: JsonObject,
  known: readonly string[],
  services: Services,
): Promise<void> => {
  for (const id of backendIdsOf(document))
    if (id !== '' && !known.includes(id)) await standing(storageBackend, id, services);
};

/** Backends are found by id alone (OSAC). */
export const tierCreation = (services: Services): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    await checkBackends(object.document, [], services);
    return documentCreation.resolve(object);
  },
});

export const tierRevision = (services: Services): Revision<DocumentCommand> => ({
  command: async (change) => {
    await checkBackends(change.after, backendIdsOf(change.before), services);
    return documentRevision.command(change);
  },
});

/** Its tier is found by name, which is its id; what it takes from it stays (OSAC). */
export const volumeCreation = (
  services: Services & Pick<PartServices, 'room' | 'maxVolumeGib'>,
): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const { maxVolumeGib = MAX_VOLUME_GIB } = services;
    const { document } = object;
    const size = sizeOf(document);
    if (size > maxVolumeGib)
      throw invalid(`field 'spec.size_gib' must be from 1 to ${maxVolumeGib} (got ${size})`, 'spec.size_gib');
    const name = stringAt(objectAt(document, 'spec'), 'storage_tier');
    // The decider says what is wrong with none.
    if (name === '') return documentCreation.resolve(object);
    const backing = backingOf(await standing(storageTier, name, services));
    if (backing === undefined)
      throw unfit(
        `storage tier "${name}" is not active or has no storage backend: name another one`,
        'TIER_NOT_ACTIVE',
      );
    return placedCreation(services.room, services).resolve({
      ...object,
      document: { ...document, status: { ...objectAt(document, 'status'), ...backing } },
    });
  },
});
