import type { CallOptions } from '../../../src/app/hubs/management-cluster.ts';
import { answer, latency, type Life } from './life.ts';

/** Chances (0 to 1) of each misfortune on the way to a hub and back; what the hub itself does is its own setting. */
export type NetworkFaults = {
  /** The call certainly does not arrive. */
  readonly refused: number;
  readonly lostRequest: number;
  readonly lostAnswer: number;
  /** It arrives only after its caller gave up. */
  readonly late: number;
  /** It arrives twice; the second answer comes back. */
  readonly twice: number;
  readonly slow: number;
  /** An event of the watch is told twice, or after its successor. */
  readonly shuffled: number;
};

export const NO_NETWORK_FAULTS: NetworkFaults = {
  refused: 0,
  lostRequest: 0,
  lostAnswer: 0,
  late: 0,
  twice: 0,
  slow: 0,
  shuffled: 0,
};

/** How much later than its deadline a call may still arrive: less than any hub takes to delete an object. */
const LATEST_MS = 600;
/** The hub never gives up by itself here. */
const HUB_PATIENCE_MS = 3_600_000;

/** Told of every call; see invariants. */
export type HubWitness = {
  sent(life: Life, hub: string, operation: string, effectId: string): void;
  /** The caller knows what became of it. */
  settled(effectId: string): void;
};

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

export type CallerOptions = {
  readonly life: Life;
  readonly faults: () => NetworkFaults;
  readonly witness: HubWitness;
  /** What is called, for the trace. */
  readonly where: string;
  /** The far side's own error: `unavailable`: it did certainly not arrive. */
  readonly failure: (
    kind: 'unknown-outcome' | 'unavailable',
    why: string,
  ) => Error & { readonly kind: string };
  readonly describe: (outcome: Outcome) => string;
};

export type Caller = <T>(
  operation: string,
  isWrite: boolean,
  invoke: (options: CallOptions) => Promise<T>,
  options: CallOptions,
) => Promise<T>;

/** Calls from one incarnation to a system far away, over a network that loses, delays and repeats them. */
export const createCaller = ({ life, faults, witness, where, failure, describe }: CallerOptions): Caller => {
  const { random, agenda } = life;
  const way = (): number => latency(random, faults().slow);

  return <T>(
    operation: string,
    isWrite: boolean,
    invoke: (options: CallOptions) => Promise<T>,
    { effectId, deadlineMs, signal }: CallOptions,
  ): Promise<T> =>
    new Promise((resolve, reject) => {
      const what = `${where} ${operation} (${shortly(effectId)})`;
      if (isWrite && !life.survives('before effect')) return;
      witness.sent(life, where, operation, effectId);
      let over = false;
      const finish = (outcome: Outcome): void => {
        if (over) return;
        over = true;
        cancel();
        signal.removeEventListener('abort', abort);
        if ('value' in outcome) {
          witness.settled(effectId);
          // The hub answers each operation with that operation's own type.
          resolve(outcome.value as T);
          return;
        }
        const { error } = outcome;
        if ((error as { kind?: string }).kind !== 'unknown-outcome') witness.settled(effectId);
        reject(error as Error);
      };
      const giveUp = (why: string): void => {
        life.note(`${what}: ${why}`);
        finish({ error: failure(isWrite ? 'unknown-outcome' : 'unavailable', why) });
      };
      const cancel = agenda.after(life.owner, deadlineMs, () => giveUp('no answer in time'));
      const abort = (): void => giveUp('given up by the caller');
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) return abort();

      const deliver = async (heard: boolean): Promise<void> => {
        const outcome = await invoke({
          effectId,
          deadlineMs: HUB_PATIENCE_MS,
          signal: new AbortController().signal,
        }).then(
          (value): Outcome => ({ value }),
          (error: unknown): Outcome => ({ error }),
        );
        life.note(`${what}: ${describe(outcome)}${heard ? '' : ', unheard'}`);
        if (isWrite && !life.survives('after effect')) return;
        if (heard) answer(life, way(), () => finish(outcome));
      };
      const arrive = (ms: number, heard: boolean): void =>
        void agenda.after(life.network, ms, () => void deliver(heard));

      const { refused, lostRequest, lostAnswer, late, twice } = faults();
      const fate = random.next();
      if (fate < refused) {
        life.note(`${what}: refused on the way`);
        return answer(life, way(), () => finish({ error: failure('unavailable', 'connection refused') }));
      }
      if (fate < refused + lostRequest) return life.note(`${what}: request lost`);
      if (fate < refused + lostRequest + lostAnswer) return arrive(way(), false);
      if (fate < refused + lostRequest + lostAnswer + late) {
        return arrive(deadlineMs + random.int(1, LATEST_MS), false);
      }
      if (isWrite && random.chance(twice)) arrive(0, false);
      arrive(way(), true);
    });
};

/** Effect ids begin with the run's stream, which holds a whole cluster id. */
const shortly = (effectId: string): string =>
  effectId.replace(/[0-9a-f]{8}-[0-9a-f-]{18,22}([0-9a-f]{6})/, '…$1');
