import type { CommandOutcome } from '../../app/commands/command.ts';
import type { CommandContext } from '../../app/log/metadata.ts';
import { rejected } from '../errors.ts';
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
  json: object,
  headers: Readonly<Record<string, string>>,
  status: 200 | 202 = 200,
): LedgerAnswer => ({ json, headers, status });
