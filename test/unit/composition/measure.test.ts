import { expect } from 'chai';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import type { LaneStatus } from '../../../src/app/process-runner/types.ts';
import { measure } from '../../../src/composition/measure.ts';
import type { ReadinessProbe } from '../../../src/composition/readiness.ts';
import type { System } from '../../../src/composition/system.ts';

describe('what is measured when Prometheus asks', () => {
  it('shows no lane as open that has closed and is idle since', async () => {
    const open: LaneStatus = {
      lane: 'hub:hub-1',
      breaker: 'open',
      paused: false,
      inFlight: 0,
      waiting: 7,
      consecutiveFailures: 5,
    };
    let lanes: readonly LaneStatus[] = [open];
    const processes = { parkedRuns: [], timersDue: 0, timerLatenessSeconds: 0 };
    // Only what the scrape asks.
    const system = {
      readModels: { status: () => [], resources: { countMarked: () => 0 } },
      processes: { status: () => ({ ...processes, lanes }) },
      hubs: { hubs: () => [] },
      names: { pending: () => 0, skipped: () => 0 },
    } as unknown as System;
    const metrics = createMetrics();
    try {
      measure(metrics).follow(system, {
        storeAnswers: () => Promise.resolve(true),
      } as unknown as ReadinessProbe);
      expect(await metrics.text()).to.match(/ledger_process_lane_open\{lane="hub:hub-1"\} 1/);
      lanes = [];
      expect(await metrics.text()).to.not.match(/ledger_process_lane_(open|parked|in_flight)\{/);
    } finally {
      metrics.close();
    }
  });
});
