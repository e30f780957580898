import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createWorkerChannel,
  type EngineChannel,
} from '../../../src/adapters/management-cluster/simulated/channel.ts';
import {
  createSimulatedHub,
  type SimulatedHub,
} from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { ManagementClusterUnderTest } from './contract-kit.ts';
import { describeDeclaredKindContract } from './contract-kinds.ts';
import { describeManagementClusterContract } from './contract.ts';

/** Stages long enough to be seen, short enough for a suite: an order is Ready after some 150 ms. */
const QUICK = { factor: '0.05' };

/** A thread for each instance of a hub, as two processes have them; those of one suite share them. */
const threads: EngineChannel[] = [];
after(() => Promise.all(threads.map((thread) => thread.close())));

const underTest = (inline: boolean) => (): Promise<ManagementClusterUnderTest> => {
  const dir = mkdtempSync(join(tmpdir(), 'sim-contract-'));
  const opened: SimulatedHub[] = [];
  const open = (): SimulatedHub => {
    const hub = createSimulatedHub({
      hubId: 'sim-contract',
      file: join(dir, 'sim-contract.sqlite'),
      clock: systemClock(),
      timers: systemTimers(),
      namespaces: ['osac-hub'],
      settings: QUICK,
      watchPollMs: 20,
      ...(inline ? { inline } : { channel: (threads[opened.length] ??= createWorkerChannel()) }),
    });
    opened.push(hub);
    return hub;
  };
  const cluster = open();
  return Promise.resolve({
    cluster,
    another: () => Promise.resolve(open()),
    namespace: 'osac-hub',
    missingNamespace: 'nope',
    patienceMs: 60_000,
    misbehave: {
      loseNextAnswer: () => cluster.control.configure('lostAnswer=1'),
      neverAnswer: () => cluster.control.configure('silent=forever'),
      refuseConnections: () => cluster.control.configure('dead=forever'),
      healthy: () => cluster.control.configure(''),
    },
    close: async () => {
      for (const hub of opened) await hub.close();
      rmSync(dir, { recursive: true, force: true });
    },
  });
};

describeManagementClusterContract('simulated hub in a worker thread', underTest(false));
describeManagementClusterContract('simulated hub in the same thread', underTest(true));
describeDeclaredKindContract('simulated hub', underTest(true), 'ready');
