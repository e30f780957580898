import type { EventStore } from '../app/log/event-store.ts';
import type { Clock } from '../app/ports.ts';
import type { Role } from '../config.ts';
import { defined } from '../domain/json-tools.ts';
import type { Readiness } from '../http/app.ts';
import type { System } from './system.ts';

/** Seconds that a read model may be behind before this instance should get no traffic. */
const MAX_LAG_SECONDS = 30;
/** Milliseconds that an answer of the store counts: `/readyz` and every scrape ask. */
const PING_REMEMBERED_MS = 1000;
const PING_DEADLINE_MS = 2000;

export type ReadinessProbe = {
  check(): Promise<Readiness>;
  storeAnswers(): Promise<boolean>;
  /** The start is complete: the catalogue is loaded. */
  started(): void;
  /** From now on not ready: load balancers should send no more. */
  drain(): void;
};

/** `/readyz`: the store answers, the read models keep up, the processes run, nothing is draining. */
export const createReadiness = (options: {
  readonly system: System;
  readonly store: EventStore;
  /** Says what reads have found changed in the log. */
  readonly suspects: { status(): string | undefined };
  readonly roles: readonly Role[];
  readonly clock: Clock;
  /** Whether requests are told to come back because this read model lacks what was recorded before the start. */
  readonly isBuilding: (view: string) => boolean;
}): ReadinessProbe => {
  const { system, store, suspects, roles, clock, isBuilding } = options;
  let phase: 'starting' | 'serving' | 'draining' = 'starting';
  let last: { at: number; answer: Promise<string | undefined> } | undefined;

  const ping = async (): Promise<string | undefined> => {
    try {
      await store.ping(AbortSignal.timeout(PING_DEADLINE_MS));
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  const storeFault = (): Promise<string | undefined> => {
    const now = clock.monotonicMs();
    if (last === undefined || now - last.at > PING_REMEMBERED_MS) last = { at: now, answer: ping() };
    return last.answer;
  };

  const viewChecks = (): Readiness['checks'] =>
    system.readModels.status().map((view) => {
      const name = `read model ${view.name}`;
      if (view.state === 'failed' || view.state === 'stopped')
        return {
          name,
          ok: false,
          message: `${view.state}${view.error === undefined ? '' : `: ${view.error}`}`,
        };
      if (!view.caughtUp && view.lagSeconds > MAX_LAG_SECONDS)
        return { name, ok: false, message: `${Math.round(view.lagSeconds)} s behind` };
      if (isBuilding(view.name) || (view.position === undefined && !view.caughtUp))
        return { name, ok: false, message: 'being built' };
      return { name, ok: true };
    });

  const processCheck = (): Readiness['checks'] => {
    if (!roles.includes('processes')) return [];
    const { state, error } = system.processes.status();
    const ok = state === 'live' || state === 'standby' || state === 'catching-up';
    return [{ name: 'processes', ok, message: error ?? state }];
  };

  /**
   * A history that is not what was signed: nobody should be told that it is. What only keeps heads from being signed takes
   * no traffic away, and is told all the same.
   */
  const auditCheck = (): Readiness['checks'] => {
    if (system.auditing === undefined) return [];
    const { state, error } = system.auditing.status();
    const ok = state !== 'mismatch';
    if (ok && error !== undefined) return [{ name: 'audit tree', ok, message: state, warning: error }];
    return [{ name: 'audit tree', ok, message: error ?? state }];
  };

  /** An event that was changed is shown to nobody; the others are as they were, so that traffic may come. */
  const storeCheck = async (): Promise<Readiness['checks'][number]> => {
    const fault = await storeFault();
    if (fault !== undefined) return { name: 'event store', ok: false, message: fault };
    const warning = suspects.status();
    return { name: 'event store', ok: true, ...(warning !== undefined && { warning }) };
  };

  return {
    check: async () => {
      const checks = [
        { name: 'phase', ok: phase === 'serving', message: phase },
        await storeCheck(),
        ...viewChecks(),
        ...processCheck(),
        ...auditCheck(),
      ];
      return { ready: checks.every(({ ok }) => ok), checks: checks.map(unnamed) };
    },
    storeAnswers: async () => (await storeFault()) === undefined,
    started: () => {
      if (phase === 'starting') phase = 'serving';
    },
    drain: () => {
      phase = 'draining';
    },
  };
};

/** Nobody who asks here is known, and ids of objects are their tenants': of an event, its kind and place are told. */
const unnamed = (check: Readiness['checks'][number]): Readiness['checks'][number] => {
  const { message, warning, ...rest } = check;
  return {
    ...rest,
    ...defined({ message: message && withoutIds(message), warning: warning && withoutIds(warning) }),
  };
};

const withoutIds = (text: string): string =>
  text.replaceAll(/\b([a-z][A-Za-z0-9]*)-[A-Za-z0-9._~-]+@(\d+)/g, '$1-…@$2');
