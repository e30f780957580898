import type { Exchange } from '../exchange.ts';

/**
 * Cross-origin calls of browsers (OSAC). Callers authenticate with a bearer token that a page must hold
 * itself; nothing here is done on the strength of a cookie. So any origin may be let in, as the original does, without
 * lending it anything. A list of origins narrows that; an empty list leaves browsers to the same-origin rule.
 */
export type CorsSettings = { readonly origins: readonly string[] };

export type Cors = {
  /** Adds what a browser needs to see of the answer; true for a preflight, whose answer is empty. */
  (exchange: Exchange): boolean;
};

const ANY = '*';
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const HEADERS = 'Authorization, Content-Type, X-User-Agent, X-Grpc-Web, Accept';
/** What a page may read of an answer beyond the few headers that browsers show anyway. */
const EXPOSED = [
  'ETag',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Www-Authenticate',
  'Grpc-Message',
  'Grpc-Metadata-Content-Type',
  'Grpc-Status',
  'Grpc-Status-Details-Bin',
  'X-Ledger-Command-Id',
  'X-Ledger-Deleted-At',
  'X-Ledger-Position',
  'X-Ledger-Reason',
  'X-Ledger-Watch-Id',
  'X-Request-Id',
].join(', ');
/** Seconds that a browser may remember the answer to a preflight. */
const MAX_AGE = '86400';
/** A list of header names, as browsers send it. */
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;
const MAX_HEADER_NAMES = 2_048;

export const createCors = ({ origins }: CorsSettings): Cors => {
  const any = origins.includes(ANY);
  const known = new Set(origins);
  return (exchange) => {
    const { request, response } = exchange;
    const { origin } = request.headers;
    if (origins.length === 0 || origin === undefined) return false;
    if (!any) response.setHeader('vary', 'Origin');
    const wanted = request.headers['access-control-request-method'];
    const preflight = request.method === 'OPTIONS' && wanted !== undefined;
    if (any || known.has(origin)) {
      response.setHeader('access-control-allow-origin', any ? ANY : origin);
      response.setHeader('access-control-allow-credentials', 'true');
      if (!preflight) response.setHeader('access-control-expose-headers', EXPOSED);
      else {
        response.setHeader('access-control-allow-methods', METHODS);
        response.setHeader('access-control-allow-headers', allowedHeaders(request.headers));
        response.setHeader('access-control-max-age', MAX_AGE);
      }
    }
    if (!preflight) return false;
    exchange.route = 'preflight';
    return true;
  };
};

/** Those that are asked for; the original's list where the question is no list of names. */
const allowedHeaders = (headers: Exchange['request']['headers']): string => {
  const asked = headers['access-control-request-headers']?.trim() ?? '';
  return asked.length <= MAX_HEADER_NAMES && HEADER_NAMES.test(asked) ? asked : HEADERS;
};
