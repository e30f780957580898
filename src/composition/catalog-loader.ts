import type { CommandRunner } from '../app/commands/command.ts';
import type { Runtime } from '../app/ports.ts';
import { DEFAULT_MARK } from '../domain/catalog/cluster-version.resource.ts';
import { aggregateOf } from '../domain/kinds.ts';
import { valueAt, withoutValueAt } from '../domain/json-tools.ts';
import { ApiError } from '../http/errors.ts';
import type { Principal } from '../http/osac/principal.ts';
import type { SurfaceTable } from '../http/osac/service-table.ts';
import type { Positions } from '../http/positions.ts';
import type { ResourceReader } from '../projections/read-models.ts';
import { BadCatalog, idOf, nameOf, tenantOf, type Catalog, type CatalogEntry } from './catalog-files.ts';

const LOADER: Principal = {
  subjectId: 'system',
  userName: 'catalog-loader',
  admin: true,
  roles: ['admin'],
  projects: new Map(),
  tenants: [],
  homeTenant: 'shared',
  visibility: { all: true },
  authMethod: 'service-account',
  tokenIdHash: '',
  tokenUntil: '9999-12-31T23:59:59.999Z',
  via: 'catalog',
};
const ALL = { all: true } as const;
const IS_DEFAULT = 'spec.is_default';

export type CatalogServices = {
  readonly privateSurface: SurfaceTable;
  readonly resources: ResourceReader;
  readonly runner: CommandRunner;
  readonly positions: Pick<Positions, 'applied'>;
  readonly signal: AbortSignal;
} & Pick<Runtime, 'ids' | 'logger'>;

/**
 * Creates what the catalogue describes and does not exist yet, through the same handlers as the private API. What exists
 * is not touched, nor what was deleted by an id of its own, nor which version is the default: loading twice changes
 * nothing and an admin's change survives a restart.
 */
export const loadCatalog = async (
  { folder, entries }: Catalog,
  services: CatalogServices,
): Promise<{ readonly created: number; readonly kept: number }> => {
  let created = 0;
  for (const entry of entries) {
    services.signal.throwIfAborted();
    if (!(await isThere(entry, services)) && (await createOne(folder, entry, services))) created += 1;
  }
  const kept = entries.length - created;
  services.logger.info({ folder, created, kept }, 'catalogue loaded');
  return { created, kept };
};

const isThere = async (
  { kind, document }: CatalogEntry,
  { resources, runner }: CatalogServices,
): Promise<boolean> => {
  const name = nameOf(kind, document);
  const id = idOf(kind, document);
  if (id !== '' && kind.view((await runner.load(aggregateOf(kind), id)).state).exists) return true;
  const tenant = tenantOf(kind, document);
  return resources
    .findByName(kind.kind, name, ALL)
    .some((row) => row.tenant === tenant || kind.nameScope === 'global');
};

const createOne = async (
  folder: string,
  { kind, where, document }: CatalogEntry,
  { privateSurface, resources, positions, ids, signal }: CatalogServices,
): Promise<boolean> => {
  const service = privateSurface.kinds.get(kind.collection);
  if (service === undefined) throw new BadCatalog(`LEDGER_CATALOG: unknown collection ${kind.collection}`);
  const hasDefault =
    valueAt(document, IS_DEFAULT) === true && resources.marked(kind.kind, DEFAULT_MARK, ALL).length > 0;
  try {
    const { position } = await service.create({
      surface: 'private',
      method: `/osac.private.v1.${service.governed.service}/Create`,
      principal: LOADER,
      message: { object: hasDefault ? withoutValueAt(document, IS_DEFAULT) : document },
      metadata: {
        requestId: ids.uuidv7(),
        verb: 'POST',
        route: `${privateSurface.prefix}/${kind.collection}`,
      },
      signal,
    });
    // The next entry may refer to this one.
    if (position !== undefined) await positions.applied(position);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.error === 'ALREADY_EXISTS') return false;
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    throw new BadCatalog(`LEDGER_CATALOG: ${folder}/${where}: ${error.message}`, { cause: error });
  }
};
