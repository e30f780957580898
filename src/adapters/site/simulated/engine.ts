import { SiteError, type OwnerMark, type SiteErrorKind } from '../../../app/site/ports.ts';
import { own } from '../../../domain/json-tools.ts';
import { faultDecider, type Fault } from '../../simulation/faults.ts';
import { AGENTS } from './parts/agents.ts';
import { DISCOVERY } from './parts/discovery.ts';
import { DNS } from './parts/dns.ts';
import { FABRIC } from './parts/fabric.ts';
import { L3 } from './parts/l3.ts';
import type { Operation, Result } from './parts/part.ts';
import { TASKS } from './parts/tasks.ts';
import {
  callFaults,
  EVERYWHERE,
  scopesOf,
  siteLife,
  type ScopedSettings,
  type SiteSettings,
} from './settings.ts';
import { openSiteFile, ownerText, type CallRow } from './site-file.ts';

export type SiteEngineOptions = {
  readonly zone: string;
  readonly file: string;
  /** Settings below those that `configure` stored. */
  readonly settings: ScopedSettings;
  /** Who calls, for the journal. */
  readonly instance: string;
};

/** What travels between the adapter and the engine: plain data. The engine knows no clock; the site's time comes along. */
export type SiteCall = {
  readonly operation: string;
  readonly args: object;
  /** Absent: a read. */
  readonly owner?: OwnerMark;
  readonly effectId: string;
  readonly now: number;
  /** Number in the journal of this call when it set out, where it was held up on its way (fault `late`). */
  readonly setOut?: number;
};

type SiteErrorData = {
  readonly kind: SiteErrorKind;
  readonly message: string;
  readonly retryAfterMs?: number;
};
/** `now` is the site's time after the call; it never goes back, also not for another instance. */
export type SiteAnswer = { readonly now: number } & (
  | { readonly kind: 'answer'; readonly delayMs: number; readonly value: unknown }
  | { readonly kind: 'answer'; readonly delayMs: number; readonly error: SiteErrorData }
  | { readonly kind: 'silent' }
  | { readonly kind: 'late'; readonly afterMs: number; readonly setOut: number }
);

const OPERATIONS: { readonly [operation: string]: Operation } = {
  ...FABRIC,
  ...L3,
  ...DNS,
  ...AGENTS,
  ...DISCOVERY,
  ...TASKS,
};

type RefusalKey = 'unavailable' | 'refused' | 'conflict';
const decideFault = faultDecider<RefusalKey, SiteError>({
  refusing: ['unavailable', 'refused', 'conflict'],
  ofWrites: ['late', 'lostAnswer', 'conflict', 'refused'],
  refusalOf: (kind, retryAfterMs) =>
    new SiteError(kind, `simulated: ${kind}`, kind === 'unavailable' ? retryAfterMs : undefined),
  whenDead: 'unavailable',
});

export type SiteEngine = ReturnType<typeof createSiteEngine>;

/**
 * The site itself: synchronous, on its file. Each call is one durable transaction that holds the write, the journal entry
 * and the counts that faults are decided by. `durationMs` is measured with `monotonicMs`.
 */
export const createSiteEngine = (options: SiteEngineOptions, monotonicMs: () => number) => {
  const file = openSiteFile(options.file);
  /** The site's time never goes back, whatever clock the instance has. */
  const timeOf = (now: number): number => Math.max(Math.floor(now), file.lastCallAt());
  const stored = (): ScopedSettings => JSON.parse(file.getValue('settings') ?? '{}') as ScopedSettings;
  const settingsIn = (scope: string): SiteSettings => ({
    ...own(options.settings, scope),
    ...own(stored(), scope),
  });

  const faultFor = (
    scopes: readonly string[],
    call: SiteCall,
    now: number,
    write: boolean,
  ): Fault<SiteError> => {
    const arrived = call.setOut !== undefined;
    const sources = scopes.flatMap((scope) => {
      const given = settingsIn(scope);
      if (Object.keys(given).length === 0) return [];
      // A call that was held up on its way was counted when it set out.
      const counts = (arrived ? file.counts(scope) : undefined) ?? file.count(scope, now, write);
      return [{ settings: callFaults(given), counts, defaultSeed: `${options.zone}/${scope}` }];
    });
    const fault = decideFault(sources, now, write);
    return arrived ? { ...fault, lateMs: 0 } : fault;
  };

  const carryOut = (call: SiteCall): SiteAnswer => {
    const started = monotonicMs();
    const now = timeOf(call.now);
    const found = own(OPERATIONS, call.operation);
    if (found === undefined) throw new Error(`a site has no operation ${call.operation}`);
    const args = call.args as never;
    const object = found.object(args);
    const owner = call.owner ?? { order: '', generation: 0 };
    const mark = call.owner === undefined ? '' : ownerText(call.owner);
    const scopes = scopesOf(call.operation, call.owner?.order);
    const fault = faultFor(scopes, call, now, found.write);
    const note = (result: string, answer: CallRow['answer']): number =>
      file.addCall({
        at: now,
        effectId: call.effectId,
        operation: call.operation,
        object,
        owner: mark,
        result,
        answer,
        durationMs: Math.max(0, monotonicMs() - started),
        instance: options.instance,
      });
    const refuse = (error: SiteError, result: string): SiteAnswer => {
      note(result, fault.delayMs > 0 ? 'slow' : 'given');
      const { kind, message, retryAfterMs } = error;
      const data = { kind, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
      return { now, kind: 'answer', delayMs: fault.delayMs, error: data };
    };

    if (fault.silent) {
      note('not carried out', 'none');
      return { now, kind: 'silent' };
    }
    if (fault.refusal !== undefined) return refuse(fault.refusal, `fault: ${fault.refusal.kind}`);
    if (fault.lateMs > 0)
      return { now, kind: 'late', afterMs: fault.lateMs, setOut: note('on its way', 'none') };
    const { undoneBy } = found;
    if (
      call.setOut !== undefined &&
      undoneBy !== undefined &&
      file.removedAfter(call.setOut, undoneBy, object, mark)
    )
      return refuse(new SiteError('refused', `${object} was taken away since`), 'overtaken');
    let result: Result;
    try {
      const life = siteLife(scopes.map(settingsIn));
      result = found.run(args, { file, zone: options.zone, now, effectId: call.effectId, owner, life });
    } catch (error) {
      if (!(error instanceof SiteError)) throw error;
      return refuse(error, `${error.kind}: ${error.message}`);
    }
    note(result.text, fault.lostAnswer ? 'lost' : fault.delayMs > 0 ? 'slow' : 'given');
    const { delayMs } = fault;
    return fault.lostAnswer
      ? {
          now,
          kind: 'answer',
          delayMs,
          error: { kind: 'unknown-outcome', message: 'simulated: the answer of the site was lost' },
        }
      : { now, kind: 'answer', delayMs, value: result.value };
  };

  return {
    /** Calls that wait at the same time, in their order. Throws when none of them was carried out. */
    calls: (waiting: readonly { readonly call: SiteCall }[]) =>
      file.transactions(
        waiting.map(
          ({ call }) =>
            () =>
              carryOut(call),
        ),
        waiting.some(({ call }) => own(OPERATIONS, call.operation)?.write === true),
      ),
    /** Deed of people behind the service's back; counting of calls begins anew. */
    configure: (settings: ScopedSettings, at: number): number =>
      file.transaction(() => {
        const now = timeOf(at);
        file.setValue('settings', JSON.stringify(settings));
        for (const scope of Object.keys(settings)) file.resetCounts(scope, now);
        file.addCall({
          at: now,
          effectId: 'configure',
          operation: 'configure',
          object: EVERYWHERE,
          owner: '',
          result: 'done',
          answer: 'given',
          durationMs: 0,
          instance: options.instance,
        });
        return now;
      }),
    synchronous: file.synchronous,
    close: file.close,
  };
};
