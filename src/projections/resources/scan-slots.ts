import { ListRefused } from '../read-models.ts';

/**
 * Which scans run. They wait in the order of their callers, one of each after the other; no caller has more than half
 * of what runs, and one who has none yet is let in whatever the others have waiting.
 */
export type ScanSlots = {
  /** Resolves with what gives the slot back. Rejects with ListRefused: `busy` at once, `cancelled` by the signal. */
  enter(caller: string, signal: AbortSignal): Promise<Leave>;
};
export type Leave = () => void;

export type ScanLimits = {
  /** Scans that take turns; more would all end late, one would make a short one wait for a long one. */
  readonly running: number;
  /** Scans that run or wait, of all and of one caller; beyond them a caller may have its first one only. */
  readonly held: number;
  readonly heldOfOne: number;
  /** Callers who have a scan that runs or waits. */
  readonly callers: number;
};
export const SCAN_LIMITS: ScanLimits = { running: 2, held: 32, heldOfOne: 16, callers: 256 };

type Lane = { running: number; readonly waiting: Set<() => void> };

export const createScanSlots = (limits: ScanLimits = SCAN_LIMITS): ScanSlots => {
  /** In the order of their turns. */
  const lanes = new Map<string, Lane>();
  const runningOfOne = Math.max(1, Math.floor(limits.running / 2));
  let running = 0;
  let held = 0;

  const laneOf = (caller: string): Lane => {
    const lane = lanes.get(caller);
    if (lane === undefined) {
      if (lanes.size >= limits.callers) throw new ListRefused('busy');
      const created: Lane = { running: 0, waiting: new Set() };
      lanes.set(caller, created);
      return created;
    }
    if (held >= limits.held || lane.running + lane.waiting.size >= limits.heldOfOne)
      throw new ListRefused('busy');
    return lane;
  };
  const strike = (caller: string, lane: Lane): void => {
    held -= 1;
    if (lane.running === 0 && lane.waiting.size === 0) lanes.delete(caller);
  };
  const behindOthers = (caller: string, lane: Lane): void => {
    lanes.delete(caller);
    lanes.set(caller, lane);
  };
  const fill = (): void => {
    for (const [caller, lane] of lanes) {
      if (running >= limits.running) return;
      const [next] = lane.waiting;
      if (next === undefined || lane.running >= runningOfOne) continue;
      behindOthers(caller, lane);
      lane.waiting.delete(next);
      lane.running += 1;
      running += 1;
      next();
    }
  };
  const leaveOf = (caller: string, lane: Lane): Leave => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      lane.running -= 1;
      running -= 1;
      behindOthers(caller, lane);
      strike(caller, lane);
      fill();
    };
  };

  return {
    enter: async (caller, signal) => {
      if (signal.aborted) throw new ListRefused('cancelled');
      const lane = laneOf(caller);
      held += 1;
      return new Promise((resolve, reject) => {
        const gone = (): void => {
          if (!lane.waiting.delete(go)) return;
          strike(caller, lane);
          reject(new ListRefused('cancelled'));
        };
        const go = (): void => {
          signal.removeEventListener('abort', gone);
          resolve(leaveOf(caller, lane));
        };
        lane.waiting.add(go);
        signal.addEventListener('abort', gone, { once: true });
        fill();
      });
    },
  };
};
