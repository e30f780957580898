import { ACCESS_CATEGORY, ACT_CATEGORY } from '../../app/audit/access-journal.ts';
import { REFUSAL_CATEGORY } from '../../app/audit/refusal-recorder.ts';
import { aggregates, kinds } from '../../domain/kinds.ts';
import { eventTypes } from '../../domain/registry.ts';
import { invalid } from '../errors.ts';
import { meant } from '../suggestions.ts';
import type { Reach } from './access.ts';
import { firstFound } from './first-match.ts';
import type { AuditServices } from './services.ts';

/** What a caller asks for by names that somebody may misspell. */
export type Named = {
  readonly types?: readonly string[];
  /** As events show it: a stream category. */
  readonly kind?: string;
};

/** How the parameters or fields are called: `type` and `filter.types`. */
export type FieldsOf = { readonly types: string; readonly kind: string };

/**
 * Refuses types and kinds that do not exist: misspelt they would read as if nothing had happened. What an event in
 * the caller's own reach is called exists, even where this release does not know it. Throws ApiError 400, or 503 where that cannot be told.
 */
export const assertNames = async (
  { types = [], kind = '' }: Named,
  fields: FieldsOf,
  { tenants, audience }: Reach,
  services: Pick<AuditServices, 'reader'>,
  signal: AbortSignal,
): Promise<void> => {
  for (const type of types) {
    if (TYPES.has(type)) continue;
    if ((await firstFound({ tenants, types: [type] }, services, signal)) !== undefined) continue;
    const visible = eventTypes.filter((each) => audience === 'provider' || each.audience === 'tenant');
    const names = visible.map(({ type }) => type);
    const what = `unknown event type '${cut(type)}'${meant(type, names)}`;
    throw invalid(`${shown(fields.types)}: ${what}`, fields.types);
  }
  if (kind === '' || (await isKind(kind, { tenants }, services, signal))) return;
  throw invalid(`${shown(fields.kind)}: ${noSuchKind(kind)}`, fields.kind);
};

/** Whether there are, or in the caller's own reach were, things of this kind. Throws ApiError 503 where that cannot be told. */
export const isKind = async (
  kind: string,
  { tenants }: Pick<Reach, 'tenants'>,
  services: Pick<AuditServices, 'reader'>,
  signal: AbortSignal,
): Promise<boolean> =>
  CATEGORIES.has(kind) || (await firstFound({ tenants, kind }, services, signal)) !== undefined;

export const noSuchKind = (kind: string): string => {
  const names = kinds.map((known) => known.kind);
  const near = meant(kind, names);
  return `unknown kind '${cut(kind)}'${near === '' ? `; known are ${names.join(', ')}` : near}`;
};

const TYPES: ReadonlySet<string> = new Set(eventTypes.map(({ type }) => type));

/** Of streams that hold what somebody did: those of all aggregates, of what was refused and looked at, and of operators' acts. */
const CATEGORIES: ReadonlySet<string> = new Set([
  ...aggregates.map(({ category }) => category),
  REFUSAL_CATEGORY,
  ACCESS_CATEGORY,
  ACT_CATEGORY,
]);

const cut = (name: string): string => name.slice(0, 100);

const shown = (field: string): string =>
  field.includes('.') ? `field '${field}'` : `query parameter '${field}'`;
