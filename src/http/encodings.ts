import express, { type Request } from 'express';
import type { IncomingHttpHeaders } from 'node:http';

/** Whether the caller would rather have an answer packed by gzip than as it is (RFC 9110 §12.5.3), by Express's own rules. */
export const prefersGzip = (headers: IncomingHttpHeaders): boolean =>
  express.request.acceptsEncodings.call({ headers } as Request, 'gzip', 'identity') === 'gzip';
