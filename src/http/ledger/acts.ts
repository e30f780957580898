import type { Act } from '../../app/audit/access-journal.ts';
import { contextOf, type LookServices } from '../audit-reads.ts';
import { once, osacCall } from './osac-call.ts';
import type { LedgerCall } from './serve.ts';

export type ActServices = {
  /**
   * Records who has the service do what; call it when nothing but the act is left. Throws StoreUnavailable: what cannot be
   * recorded is not done. `typed`: what the operator wrote, where it names nothing that is there.
   */
  readonly recordAct: (
    call: LedgerCall,
    act: Omit<Act, 'named'> & { readonly typed?: string },
  ) => Promise<void>;
};

export const actRecorder =
  (services: LookServices): ActServices['recordAct'] =>
  async (call, { typed, ...act }) => {
    const { verb, route, body, principal } = call;
    const asked = { what: route, query: body, method: verb };
    const context = await contextOf(osacCall(once(call)), asked, services);
    const named = typed === undefined ? undefined : await services.conceal(principal.subjectId, typed);
    await services.access.act({ ...act, ...(named === undefined ? {} : { named }) }, context);
  };
