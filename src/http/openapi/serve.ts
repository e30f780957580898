import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { JsonObject } from '../../domain/json.ts';
import { kinds } from '../../domain/kinds.ts';
import { registry } from '../../domain/registry.ts';
import { breathe } from '../ledger/query.ts';
import { prefersGzip } from '../encodings.ts';
import { ApiError, urlNotFound } from '../errors.ts';
import { send, type HttpExchange } from '../exchange.ts';
import type { Described } from './document.ts';
import { readExamples } from './examples.ts';
import { DOCS_PAGE, DOCS_SCRIPT, HOME_INDEX, HOME_PAGE, PAGE_POLICY, PAGE_STYLE } from './pages.ts';

/**
 * `/openapi.json`, `/asyncapi.json`, `/docs` and `/`: for anybody, without a token. Everything is made or read on the first request, in
 * short steps, and kept; the request path of the API knows nothing of it.
 */
export type Documents = {
  readonly paths: readonly string[];
  readonly serve: (exchange: HttpExchange) => Promise<void>;
};

type File = {
  readonly body: Buffer;
  readonly zipped: Buffer;
  readonly type: string;
  readonly etag: string;
};

const PROJECT = resolve(
  import.meta.dirname,
  import.meta.filename.endsWith('.ts') ? '../../..' : '../../../..',
);
const EXAMPLES = join(PROJECT, 'fixtures/openapi');

/**
 * What is served of Swagger UI: these files and no others. They come from Fastify's package of them, nothing else of which is
 * loaded: those of Swagger UI itself bring one that reports each installation.
 */
const SWAGGER_FILES = [
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['favicon-32x32.png', 'image/png'],
] as const;
const HTML = 'text/html; charset=utf-8';
const DOCS = '/docs/';
/** The root as programs see it; no path of a request looks like this. */
const INDEX = 'index';

export const createDocuments = (served: Omit<Described, 'version'>): Documents => {
  const makers = new Map<string, () => Promise<File>>([
    ['/', () => fileOf(HOME_PAGE, HTML)],
    [INDEX, () => fileOf(HOME_INDEX, 'application/json')],
    ['/docs', () => fileOf(DOCS_PAGE, HTML)],
    [`${DOCS}init.js`, () => fileOf(DOCS_SCRIPT, 'text/javascript; charset=utf-8')],
    [`${DOCS}page.css`, () => fileOf(PAGE_STYLE, 'text/css; charset=utf-8')],
    ['/openapi.json', () => openApiFile(served)],
    ['/asyncapi.json', asyncApiFile],
    ...SWAGGER_FILES.map(([name, type]) => [`${DOCS}${name}`, () => swaggerFile(name, type)] as const),
  ]);
  const files = new Map<string, Promise<File>>();
  const fileAt = (path: string): Promise<File> | undefined => {
    const known = files.get(path);
    const file = known ?? makers.get(path)?.();
    if (known !== undefined || file === undefined) return file;
    files.set(path, file);
    // What failed is tried again with the next request.
    file.catch(() => files.delete(path));
    return file;
  };

  return {
    paths: ['/', '/openapi.json', '/asyncapi.json', '/docs', `${DOCS}{:file}`],
    serve: async (exchange) => {
      const { request } = exchange;
      const path = (request.url ?? '').split('?', 1)[0] ?? '';
      const isIndex = path === '/' && !(request.headers.accept ?? '').includes('text/html');
      exchange.route = path.startsWith(DOCS) ? `${DOCS}{file}` : path;
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw new ApiError('METHOD_NOT_ALLOWED', 'this can only be read', {
          headers: { allow: 'GET, HEAD' },
        });
      if (path === DOCS) {
        send(exchange, 308, '', { location: '../docs' });
        return;
      }
      const file = fileAt(isIndex ? INDEX : path);
      if (file === undefined) throw urlNotFound();
      sendFile(exchange, await file);
    },
  };
};

const sendFile = (exchange: HttpExchange, { body, zipped, type, etag }: File): void => {
  const { headers } = exchange.request;
  const common = {
    etag,
    vary: 'accept, accept-encoding',
    'cache-control': 'no-cache',
    'content-security-policy': PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  };
  if (headers['if-none-match'] === etag) {
    send(exchange, 304, '', common);
    return;
  }
  const zip = prefersGzip(headers);
  send(exchange, 200, zip ? zipped : body, {
    ...common,
    'content-type': type,
    ...(zip ? { 'content-encoding': 'gzip' } : {}),
  });
};

const compress = promisify(gzip);

const fileOf = async (content: string | Buffer, type: string): Promise<File> => {
  const body = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, zipped: await compress(body), type, etag };
};

const swaggerFile = async (name: string, type: string): Promise<File> => {
  const folder = dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json'));
  return fileOf(await readFile(join(folder, 'static', name)), type);
};

const openApiFile = async (served: Omit<Described, 'version'>): Promise<File> => {
  const { openApiSteps } = await import('./document.ts');
  const [examples, version] = await Promise.all([readExamples(EXAMPLES), versionOf()]);
  return inSteps(openApiSteps({ ...served, version }, examples));
};

const asyncApiFile = async (): Promise<File> => {
  const { asyncApiSteps } = await import('../asyncapi/document.ts');
  return inSteps(asyncApiSteps({ registry, kinds, version: await versionOf() }));
};

export const versionOf = async (): Promise<string> => {
  const manifest = await readFile(join(PROJECT, 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { readonly version: string }).version;
};

const inSteps = async (steps: Generator<undefined, JsonObject>): Promise<File> => {
  for (;;) {
    const { done, value } = steps.next();
    await breathe();
    if (done === true) return fileOf(JSON.stringify(value), 'application/json');
  }
};
