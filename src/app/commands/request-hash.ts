import { createHmac, createSecretKey } from 'node:crypto';
import canonicalize from 'canonicalize';

/** What makes two requests the same: method, path and body, but no headers. */
export type HashedRequest = {
  readonly method: string;
  readonly route: string;
  /** The request as parsed; equal for bodies that differ only in spelling (RFC 8785). */
  readonly body: unknown;
};

/**
 * HMAC-SHA-256 (hex) over the RFC 8785 form of a request: a bare hash of a small body could be guessed from the log,
 * and a body may hold secrets.
 */
export type RequestHash = (request: HashedRequest) => string;

/** `key` is a key of the deployment, the same for all instances: they must recognise each other's requests. */
export const createRequestHash = (key: Uint8Array): RequestHash => {
  // Made once: bytes would be looked at and copied for every request, which costs five times the hash.
  const secret = createSecretKey(key);
  return (request) =>
    createHmac('sha256', secret)
      .update(
        canonicalize({ method: request.method, route: request.route, body: request.body ?? null }) ?? '',
      )
      .digest('hex');
};
