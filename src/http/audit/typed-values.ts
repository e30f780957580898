import { parseTilePath } from '../../app/audit/merkle/tiles.ts';
import { isMadeHere } from '../../app/audit/known-ids.ts';
import type { KeyStore } from '../../app/ports.ts';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { encodeId } from '../../domain/stream-name.ts';
import type { AuditServices } from './services.ts';
import { isEventThere, isThere, type Question } from './event-presence.ts';

/** Parameters whose value may be anything that somebody has typed; subjects, types and the like are looked up before. */
const TYPED = ['id', 'resource_id', 'tile'] as const;

/** Kinds of what looks ask for that are not named in the question. */
const KINDS: { readonly [what: string]: string } = { export: 'auditExport' };

const namesWhatIsThere = (
  { what, query, tenants }: Question,
  name: (typeof TYPED)[number],
  value: string,
  services: Pick<AuditServices, 'reader'>,
): boolean => {
  if (name === 'tile') return parseTilePath(value) !== undefined;
  if (isMadeHere(value)) return true;
  if (isEventThere(value, { tenants }, services) === true) return true;
  const kind = stringAt(query, 'kind') || (KINDS[what] ?? '');
  return kind !== '' && isThere(`${kind}-${encodeId(value)}`, 0, { tenants }, services);
};

/**
 * A question as it is recorded: what names nothing that is there in the histories that it looks at may be anybody's name,
 * and stands there under the key of who asked.
 */
export const withTypedConcealed = async (
  question: Question,
  subjectId: string,
  services: Pick<AuditServices, 'reader'> & { readonly conceal: KeyStore['encrypt'] },
): Promise<JsonObject> => {
  const { query } = question;
  const typed = TYPED.filter((name) => {
    const value = stringAt(query, name);
    return value !== '' && !namesWhatIsThere(question, name, value, services);
  });
  if (typed.length === 0) return query;
  const concealed = typed.map(
    async (name) => [name, { ...(await services.conceal(subjectId, stringAt(query, name))) }] as const,
  );
  return { ...query, ...Object.fromEntries(await Promise.all(concealed)) };
};
