import { readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Ids, Logger } from '../app/ports.ts';
import type { JsonObject } from '../domain/json.ts';
import { ApiError } from '../http/errors.ts';
import { decodeMessage } from '../http/osac/messages.ts';
import type { Principal } from '../http/osac/principal.ts';
import type { SurfaceTable } from '../http/osac/rest.ts';

/** In this order, because templates refer to host types and versions. Each file holds bodies of the private API. */
const COLLECTIONS = ['tenants', 'host_types', 'cluster_versions', 'cluster_templates', 'hubs'] as const;

/** A catalogue file that cannot be used: which one, which entry, what is wrong. */
export class BadCatalog extends Error {
  override readonly name = 'BadCatalog';
}

const LOADER: Principal = {
  subjectId: 'system',
  userName: 'catalog-loader',
  admin: true,
  roles: ['admin'],
  tenants: [],
  homeTenant: 'shared',
  visibility: { all: true },
  authMethod: 'service-account',
  tokenIdHash: '',
};

/** Throws BadCatalog when the folder is not there, before anything is opened or listens. */
export const assertCatalog = (folder: string): void => {
  if (!existsSync(folder))
    throw new BadCatalog(
      `LEDGER_CATALOG: there is no folder ${folder}. Example: LEDGER_CATALOG=./fixtures/catalog`,
    );
};

/**
 * Creates what the folder describes and does not exist yet, through the same handlers as the private API. What exists
 * is left as it is, so that loading twice changes nothing and an admin's change survives a restart.
 */
export const loadCatalog = async (options: {
  readonly folder: string;
  readonly privateSurface: SurfaceTable;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<{ readonly created: number; readonly kept: number }> => {
  const { folder, logger } = options;
  let created = 0;
  let kept = 0;
  for (const collection of COLLECTIONS) {
    for (const entry of await readEntries(join(folder, `${collection}.json`))) {
      if (await createOne(options, collection, entry)) created += 1;
      else kept += 1;
    }
  }
  logger.info({ folder, created, kept }, 'catalogue loaded');
  return { created, kept };
};

const readEntries = async (file: string): Promise<readonly JsonObject[]> => {
  if (!existsSync(file)) return [];
  try {
    const entries: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (!Array.isArray(entries)) throw new Error('it must hold a JSON array of objects');
    return entries as JsonObject[];
  } catch (error) {
    throw new BadCatalog(`LEDGER_CATALOG: ${file} cannot be read`, { cause: error });
  }
};

const createOne = async (
  { folder, privateSurface, ids, signal }: Parameters<typeof loadCatalog>[0],
  collection: string,
  entry: JsonObject,
): Promise<boolean> => {
  const service = privateSurface.kinds.get(collection);
  if (service === undefined) throw new BadCatalog(`LEDGER_CATALOG: there is no collection ${collection}`);
  const route = `${privateSurface.prefix}/${collection}`;
  try {
    const { document } = decodeMessage(service.schema, JSON.stringify(entry));
    service.checkCreate(document);
    await service.create({
      surface: 'private',
      method: `/osac.private.v1.${service.governed.service}/Create`,
      principal: LOADER,
      message: { object: document },
      metadata: { requestId: ids.uuidv7(), verb: 'POST', route },
      signal,
    });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.error === 'ALREADY_EXISTS') return false;
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    const what = JSON.stringify(entry).slice(0, 120);
    throw new BadCatalog(`LEDGER_CATALOG: ${folder}/${collection}.json: ${error.message} (entry ${what})`, {
      cause: error,
    });
  }
};
