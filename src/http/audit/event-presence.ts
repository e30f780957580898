import type { JsonObject } from '../../domain/json.ts';
import type { AuditServices } from './services.ts';

/** A look: what it is, what it asks for, and of which histories. */
export type Question = {
  readonly what: string;
  readonly query: JsonObject;
  readonly tenants: 'all' | readonly string[];
};

/**
 * Whether the histories that are looked at have an event. What others have is as absent as what never was: what is
 * recorded of a look must not tell what its answer does not. Both take the same one statement.
 */
export const isThere = (
  stream: string,
  revision: number,
  { tenants }: Pick<Question, 'tenants'>,
  { reader }: Pick<AuditServices, 'reader'>,
): boolean => {
  const tenant = reader.tenantAt(stream, revision);
  return tenant !== undefined && (tenants === 'all' || tenants.includes(tenant));
};

/** Whether a text is `<stream>@<revision>` of an event that is there; undefined: it is no such text. */
export const isEventThere = (
  text: string,
  of: Pick<Question, 'tenants'>,
  services: Pick<AuditServices, 'reader'>,
): boolean | undefined => {
  const [, stream, revision] = /^(.+)@(\d{1,15})$/.exec(text) ?? [];
  return stream === undefined ? undefined : isThere(stream, Number(revision), of, services);
};
