import { expect } from 'chai';
import { isStoredCluster } from '../../../src/domain/clusters/state.ts';
import { createClients } from '../../support/simulation/clients.ts';
import { planOfDrill } from '../../support/simulation/drill.ts';
import { playOut, settle, until } from '../../support/simulation/simulate.ts';
import { createWorkload, TENANTS } from '../../support/simulation/workload.ts';
import type { Plant } from '../../support/simulation/world.ts';

const MOST_EVENTS = 18;
const MOST_APPENDS = 14;
const MINUTE = 60_000;

/** The whole service on a log in memory, one simulated hub that does every step itself, and nothing that goes wrong. */
describe('an order that goes to READY', () => {
  it(`leaves at most ${MOST_EVENTS} events in at most ${MOST_APPENDS} appends, its name and capacity included`, async () => {
    const appends: string[][] = [];
    let isCounted = false;
    const counting: Plant = (ports) => ({
      ...ports,
      store: {
        ...ports.store,
        append: async (stream, expected, events, options) => {
          const appended = await ports.store.append(stream, expected, events, options);
          if (isCounted && !stream.startsWith('sys-') && !appended.duplicate)
            appends.push(events.map(({ type }) => `${stream.slice(0, stream.indexOf('-'))} ${type}`));
          return appended;
        },
      },
    });
    const plan = planOfDrill(1, {});
    const hubs = plan.hubs.map((hub) => ({ ...hub, delegated: true as const }));
    const { failure } = await playOut(
      { ...plan, hubs },
      async (world) => {
        const clients = createClients(world, world.random.fork('clients'));
        const workload = createWorkload(world, clients, world.random.fork('workload'));
        world.keepRunning(1);
        await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
        await settle(world, workload);
        isCounted = true;
        await until(world, 'an order is answered', workload.order(TENANTS[0], 2, 'counted'), MINUTE);
        await settle(world, workload);
        isCounted = false;
        const [id = ''] = world.ledger.clusterIds();
        const state = world.ledger.cluster(id);
        expect(isStoredCluster(state) && state.status === 'dispatched' && state.ready).to.equal(true);
        await until(world, 'everybody has stopped', world.stopAll(), 5 * MINUTE);
      },
      counting,
    );
    if (failure !== undefined) throw failure;
    const list = appends.map((types) => types.join(', ')).join('\n');
    expect(appends.flat().length, `events:\n${list}`).to.be.within(8, MOST_EVENTS);
    expect(appends.length, `appends:\n${list}`).to.be.at.most(MOST_APPENDS);
  });
});
