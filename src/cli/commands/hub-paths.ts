import { randomUUID } from 'node:crypto';

export const HUBS = '/api/ledger/v1/hubs';
export const DOCUMENTS = '/api/private/v1/hubs';

export const pathOf = (base: string, id: string, ...rest: readonly string[]): string =>
  [base, encodeURIComponent(id), ...rest].join('/');

/** Headers of a write that may be sent again when its answer was lost. */
export const repeatable = (): Record<string, string> => ({ 'idempotency-key': randomUUID() });
