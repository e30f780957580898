import { join } from 'node:path';
import { readCatalog } from '../../../src/composition/catalog-files.ts';
import { loadCatalog } from '../../../src/composition/catalog-loader.ts';
import type { TestService } from './service.ts';
import { silentLogger } from '../loggers.ts';

const SHIPPED = join(import.meta.dirname, '../../../fixtures/catalog');

/** Loads `fixtures/catalog`, as the quick start of the README does; answers how much was created and kept. */
export const loadShippedCatalogue = (service: TestService): ReturnType<typeof loadCatalog> => {
  const { surfaces, models, runner, positions, ids } = service;
  const privateSurface = surfaces.find(({ surface }) => surface === 'private');
  if (privateSurface === undefined) throw new Error('no private surface');
  return loadCatalog(readCatalog(SHIPPED), {
    privateSurface,
    resources: models.resources,
    runner,
    positions,
    ids,
    logger: silentLogger,
    signal: new AbortController().signal,
  });
};
