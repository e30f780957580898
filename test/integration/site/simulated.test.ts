import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSiteChannel, type SiteChannel } from '../../../src/adapters/site/simulated/channel.ts';
import {
  createSimulatedSite,
  type SimulatedSite,
} from '../../../src/adapters/site/simulated/simulated-site.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { SiteUnderTest } from './contract-kit.ts';
import { describeAgentsContract, describeDiscoveryContract } from './contract-agents.ts';
import { describeDnsContract } from './contract-dns.ts';
import { describeL3Contract } from './contract-l3.ts';
import { describeNetworkFabricContract } from './contract-network-fabric.ts';
import { describeTasksContract } from './contract-tasks.ts';

/** Long enough to be seen, short enough for a suite. */
const QUICK = 'switch=10,router=10,propagation=20,address=10,cleaning=20,discovery=20,task=20';

/** A thread for each instance of a site, as two processes have them; those of one suite share them. */
const threads: SiteChannel[] = [];
after(() => Promise.all(threads.map((thread) => thread.close())));

const underTest = (inline: boolean) => async (): Promise<SiteUnderTest> => {
  const dir = mkdtempSync(join(tmpdir(), 'site-contract-'));
  const opened: SimulatedSite[] = [];
  const open = (): SimulatedSite => {
    const site = createSimulatedSite({
      zone: 'east',
      file: join(dir, 'east.sqlite'),
      clock: systemClock(),
      timers: systemTimers(),
      settings: QUICK,
      ...(inline ? { inline } : { channel: (threads[opened.length] ??= createSiteChannel()) }),
    });
    opened.push(site);
    return site;
  };
  const site = open();
  return {
    site,
    another: async () => open(),
    patienceMs: 30_000,
    misbehave: {
      loseNextAnswer: (operation) => site.control.configure({ [operation]: 'lostAnswer=1' }),
      neverAnswer: () => site.control.configure('silent=forever'),
      refuseConnections: () => site.control.configure('dead=forever'),
      healthy: () => site.control.configure({}),
    },
    close: async () => {
      for (const one of opened) await one.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

for (const [name, inline] of [
  ['simulated site in a worker thread', false],
  ['simulated site in the same thread', true],
] as const) {
  describeNetworkFabricContract(name, underTest(inline));
  describeL3Contract(name, underTest(inline));
  describeDnsContract(name, underTest(inline));
  describeAgentsContract(name, underTest(inline));
  describeDiscoveryContract(name, underTest(inline));
  describeTasksContract(name, underTest(inline));
}
