import type { CommandOutcome } from '../../app/command.ts';
import type { CommandContext } from '../../app/metadata.ts';
import { own } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { invalid, mustNotBeEmpty, rejected } from '../errors.ts';
import { osacCall } from '../ledger/osac-call.ts';
import type { LedgerAnswer, LedgerCall } from '../ledger/serve.ts';
import { beginWrite, commandContext, settling, type Write } from '../osac/write-context.ts';
import { AUDIT_VIEW, type AuditServices } from './services.ts';

/** Carries out one write of this surface: repeatable by its key, and recorded with who and why. */
export const writing = async <State>(
  call: LedgerCall,
  services: AuditServices,
  /** On whose behalf: '' for the provider's own. */
  tenant: string,
  run: (context: CommandContext, write: Write) => Promise<CommandOutcome<State>>,
): Promise<{ readonly state: State; readonly write: Write; readonly headers: Record<string, string> }> => {
  // Nothing here has a tag that a write could be meant for.
  const { 'if-match': _tag, ...headers } = call.headers ?? {};
  const asked = osacCall({ ...call, headers }, AUDIT_VIEW);
  const write = beginWrite(asked, { path: { ...call.path }, body: call.body }, services);
  return settling(write, async () => {
    const context = await commandContext(asked, write, { tenant, project: '' }, services);
    const outcome = await run(context, write);
    if (outcome.outcome === 'rejected') throw rejected(outcome.rejection);
    const { state, position } = outcome.loaded;
    if (position === undefined) return { state, write, headers: {} };
    // What was written shows in what is read next; a write is never failed for it.
    await services.waitFor(AUDIT_VIEW, position, { timeoutMs: 2_000 });
    return { state, write, headers: { 'x-ledger-position': services.positions.format(position) } };
  });
};

export const answered = (
  json: JsonObject,
  headers: Readonly<Record<string, string>>,
  status: 200 | 202 = 200,
): LedgerAnswer => ({ json, headers, status });

/** A text of a body; '' when it is not given. Throws ApiError 400. */
export const textIn = (
  body: JsonObject,
  name: string,
  { required = false, most = 1_000 }: { readonly required?: boolean; readonly most?: number } = {},
): string => {
  const value = own(body, name) ?? '';
  if (typeof value !== 'string') throw invalid(`field '${name}' must be a text`, name);
  if (required && value.trim() === '') throw invalid(`field '${name}' is needed`, name);
  if (value.length > most) throw invalid(`field '${name}' may have at most ${most} characters`, name);
  return value;
};

/** Refuses an empty text or list where without it more is done; `without`: what that is, by field. Throws ApiError 400. */
export const assertFilled = (
  body: JsonObject,
  without: { readonly [name: string]: string },
  where = '',
): void => {
  for (const [name, more] of Object.entries(without)) {
    const value = own(body, name);
    if (value === '' || (Array.isArray(value) && value.length === 0))
      throw mustNotBeEmpty(`field '${where}${name}'`, `${where}${name}`, more);
  }
};

/** Refuses what nobody would read: a misspelt field would be a wider export, or an eternal grant. */
export const assertKnown = (body: JsonObject, names: readonly string[], where = ''): void => {
  const unknown = Object.keys(body).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw invalid(
      `there is no field '${where}${unknown.slice(0, 100)}'; there are ${names.join(', ')}`,
      `${where}${unknown.slice(0, 100)}`,
    );
};
