import { randomBytes } from 'node:crypto';
import { HubError, type StoredMark } from '../../../app/hubs/management-cluster.ts';
import type { Manifest } from '../../../domain/hubs/hub-object.ts';
import type { HubMark } from '../../../domain/hubs/mark.ts';
import { createApiServer, ownSettings, type Result, type Target } from './api-server.ts';
import { decideFault, type FaultSource, type HubFault } from './faults.ts';
import { openHubFile, type CallRow } from './hub-file.ts';
import { errorData, isWrite, type CallMeta, type CallRequest, type EngineAnswer } from './protocol.ts';
import type { Outcome, Tampering } from './protocol.ts';
import type { GivenSettings } from './settings.ts';
import type { Behaviour } from './behaviours/behaviour.ts';
import { BEHAVIOURS } from './behaviours/behaviours.ts';
import { createWatches } from './watches.ts';

export type HubEngineOptions = {
  readonly hubId: string;
  readonly file: string;
  /** Namespaces that exist; empty: every one does. */
  readonly namespaces: readonly string[];
  /** Seed of uids and credentials of a new file. Empty: random. */
  readonly seed: string;
  /** Settings below those that `configure` stored. */
  readonly settings: GivenSettings;
  readonly baseDomain: string;
  /** Who writes, for the journal. */
  readonly instance: string;
  /** Kinds that it knows. Default: all declared ones. */
  readonly behaviours?: readonly Behaviour[];
};

const WHOLE_HUB = '*';

export type HubEngine = ReturnType<typeof createHubEngine>;

/**
 * The hub itself: synchronous, on its file. Each call is one durable transaction that holds the write, the journal
 * entry and the counts that faults are decided by. `durationMs` is measured with `monotonicMs`.
 */
export const createHubEngine = (options: HubEngineOptions, monotonicMs: () => number) => {
  const file = openHubFile(options.file);
  const secret = file.transaction(() => {
    const known = file.getValue('secret');
    if (known !== undefined) return known;
    const made = options.seed === '' ? randomBytes(32).toString('hex') : options.seed;
    file.setValue('secret', made);
    file.setValue('hub_id', options.hubId);
    return made;
  });

  /** Hub time never goes back, whatever clock the instance has. */
  const timeOf = (now: number): number => Math.max(Math.floor(now), file.lastCallAt());
  const hubSettings = (): GivenSettings => ({
    ...options.settings,
    ...(JSON.parse(file.getValue('settings') ?? '{}') as GivenSettings),
  });

  const api = createApiServer(file, { ...options, secret, hubSettings });

  const faultFor = (request: CallRequest, target: Target, now: number, arrived: boolean): HubFault => {
    const object = target.record ?? target;
    const write = isWrite(request.op);
    const key = `${object.namespace}/${object.name}`;
    const own =
      request.op === 'create'
        ? settingsOrNone(request.kind, request.manifest)
        : (target.record?.faults ?? {});
    // Only where a fault may ask for it is anything counted.
    const source = (given: GivenSettings, counted: string, defaultSeed: string): FaultSource[] => {
      if (Object.keys(given).length === 0) return [];
      // A call that was held up on its way was counted when it set out.
      const counts = (arrived ? file.counts(counted) : undefined) ?? file.count(counted, now, write);
      return [{ given, counts, defaultSeed }];
    };
    const sources = [...source(own, key, key), ...source(hubSettings(), WHOLE_HUB, options.hubId)];
    const fault = decideFault(sources, now, write);
    return arrived ? { ...fault, lateMs: 0 } : fault;
  };

  const callInside = (request: CallRequest, meta: CallMeta): EngineAnswer => {
    const started = monotonicMs();
    const now = timeOf(meta.now);
    const target = api.targetOf(request, now);
    const fault = faultFor(request, target, now, meta.arrived);
    const note = (result: string, answer: CallRow['answer']): void =>
      file.addCall({
        at: now,
        effectId: meta.effectId,
        operation: request.op,
        kind: request.kind,
        namespace: target.namespace,
        object: target.name,
        result,
        answer,
        durationMs: Math.max(0, monotonicMs() - started),
        instance: options.instance,
      });
    const refuse = (error: HubError): EngineAnswer => {
      note(`refused: ${error.kind}`, fault.delayMs > 0 ? 'slow' : 'given');
      return { now, kind: 'answer', delayMs: fault.delayMs, outcome: { ok: false, error: errorData(error) } };
    };

    if (fault.silent) {
      note('not carried out', 'none');
      return { now, kind: 'silent' };
    }
    if (fault.refusal !== undefined) return refuse(fault.refusal);
    if (fault.lateMs > 0) {
      note('on its way', 'none');
      return { now, kind: 'late', afterMs: fault.lateMs };
    }
    let result: Result;
    try {
      result = api.execute(request, target, meta.effectId, now);
    } catch (error) {
      if (error instanceof HubError) return refuse(error);
      throw error;
    }
    note(result.text, fault.lostAnswer ? 'lost' : fault.delayMs > 0 ? 'slow' : 'given');
    const outcome: Outcome = fault.lostAnswer
      ? {
          ok: false,
          error: { kind: 'unknown-outcome', message: 'simulated: the answer of the hub was lost' },
        }
      : { ok: true, value: result.value };
    return { now, kind: 'answer', delayMs: fault.delayMs, outcome };
  };

  const tamperInside = (deed: Tampering, meta: CallMeta): { readonly now: number } => {
    const now = timeOf(meta.now);
    const where = deed.op === 'configure' ? { namespace: '', name: WHOLE_HUB } : deed.ref;
    if (deed.op === 'configure') {
      file.setValue('settings', JSON.stringify(deed.settings));
      file.resetCounts(WHOLE_HUB, now);
    } else api.tamper(deed, now);
    file.addCall({
      at: now,
      effectId: meta.effectId,
      operation: deed.op,
      kind: deed.op === 'configure' ? '' : deed.kind,
      namespace: where.namespace,
      object: where.name,
      result: 'done',
      answer: 'given',
      durationMs: 0,
      instance: options.instance,
    });
    return { now };
  };

  const hubIsDown = (now: number): boolean => {
    const given = hubSettings();
    if (Object.keys(given).length === 0) return false;
    const { firstAt } = file.counts(WHOLE_HUB) ?? { firstAt: now };
    const fault = decideFault(
      [{ given, counts: { firstAt, calls: 0, writes: 0 }, defaultSeed: '' }],
      now,
      false,
    );
    return fault.silent || fault.refusal !== undefined;
  };
  /** Beside the calls: no fault touches it, and the journal is of effects. */
  const readMark = (): StoredMark | undefined => {
    const text = file.getValue('mark');
    return text === undefined
      ? undefined
      : { mark: JSON.parse(text) as HubMark, version: file.getValue('mark_version') ?? '' };
  };

  const watches = createWatches(file, options.behaviours ?? BEHAVIOURS, timeOf, hubIsDown);

  return {
    /** Calls that wait at the same time, in their order. Throws when none of them was carried out. */
    calls: (waiting: readonly { readonly request: CallRequest; readonly meta: CallMeta }[]) =>
      file.transactions(
        waiting.map(
          ({ request, meta }) =>
            () =>
              callInside(request, meta),
        ),
        waiting.some(({ request }) => isWrite(request.op)),
      ),
    tamper: (deed: Tampering, meta: CallMeta) => file.transaction(() => tamperInside(deed, meta)),
    watches,
    readMark,
    /** Over exactly the version that was read. Undefined: another one stands there. */
    writeMark: (mark: HubMark, over: string | undefined): string | undefined =>
      file.transaction(() => {
        const stored = readMark();
        if (stored?.version !== over) return undefined;
        const version = String(Number(stored?.version ?? file.getValue('mark_version') ?? 0) + 1);
        file.setValue('mark_version', version);
        file.setValue('mark', JSON.stringify(mark));
        return version;
      }),
    synchronous: file.synchronous,
    close: file.close,
  };
};

/** For faults of the creating call: a bad annotation is refused by the creation itself. */
const settingsOrNone = (kind: string, manifest: Manifest): GivenSettings => {
  try {
    return ownSettings(kind, manifest);
  } catch {
    return {};
  }
};
