import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/**
 * Loaded by mocha before any test: what one process compiles is kept for the next, and what is stale is compiled anew.
 * The end-to-end suites start some two hundred processes, and loading was more than half of each start. Not for
 * coverage, which is less exact about functions that come out of a cache.
 */
if (process.env['NODE_V8_COVERAGE'] === undefined) {
  const folder = join(import.meta.dirname, '../../node_modules/.cache/compiled');
  enableCompileCache(folder);
  // For the processes that tests start.
  process.env['NODE_COMPILE_CACHE'] ??= folder;
}
