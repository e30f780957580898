import { expect } from 'chai';
import type { LaneStatus } from '../../../src/app/process-runner/types.ts';
import {
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';

const LEDGER = '/api/ledger/v1';
const COMMAND_ID = '018f0000-0000-7000-8000-00000000c0de';

/** The part of the process runner that operators reach, with one parked run and one lane. */
const operated = () => {
  const parked = new Map<string, string>();
  const lane: LaneStatus = {
    lane: 'hub:sim-1',
    breaker: 'open',
    paused: false,
    inFlight: 1,
    waiting: 7,
    consecutiveFailures: 5,
    failing: [{ order: 'o1', failures: 5, reason: 'Unavailable', message: '503', setAside: false }],
    failingOrders: 1,
    openedBy: { order: 'o1', reason: 'Unavailable', message: '503' },
    lastReason: 'Unavailable',
  };
  const lanes = new Map([[lane.lane, lane]]);
  const state = { epoch: 1 as number | undefined };
  const change = (name: string, to: Partial<LaneStatus>): void => {
    lanes.set(name, { ...(lanes.get(name) ?? { ...lane, lane: name, breaker: 'closed' }), ...to });
  };
  return {
    parked,
    state,
    runner: {
      parkedFor: (_workflow: string, id: string) => parked.get(id),
      retryRun: async (_workflow: string, id: string) => parked.delete(id),
      status: () => ({ epoch: state.epoch, lanes: [...lanes.values()] }),
      pauseLane: (name: string) => change(name, { paused: true }),
      resumeLane: (name: string) => change(name, { paused: false, breaker: 'closed' }),
    },
  };
};

/** Registered hubs, as far as lanes are named after them. */
const registryOf = (...ids: readonly string[]) => {
  const hubs = ids.map((id) => ({ facts: { id } }));
  return { hubs: () => hubs, get: () => undefined, onChange: () => () => undefined } as never;
};

describe('operations over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  const processes = operated();
  let orders = 0;
  const order = async (): Promise<string> => {
    const body = {
      metadata: { name: `operated-${(orders += 1)}` },
      spec: { template: { id: 'osac.templates.small' } },
    };
    return textAt((await user('POST', `${PUBLIC}/clusters`, body)).json, 'id');
  };

  before(async () => {
    const runner = processes.runner as never;
    service = await startTestService({
      ledger: {
        processes: runner,
        lanes: runner,
        runOf: async () => ({ closed: false }),
        hubRegistry: registryOf('sim-1', 'east', 'west'),
      },
    });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(() => service.close());

  it('a retry looks at a parked run again, although its order has not failed', async () => {
    const id = await order();
    processes.parked.set(id, 'a bug');
    const shown = await admin('GET', `${LEDGER}/orders/${id}`);
    expect(shown.json['run']).to.deep.equal({ closed: false, parked: 'a bug' });
    const retried = await admin('POST', `${LEDGER}/orders/${id}/retry`);
    expect(retried.status, retried.text).to.equal(200);
    expect(retried.json).to.deep.include({ id, resumed: true });
    expect(processes.parked.size).to.equal(0);
    expect((await admin('GET', `${LEDGER}/orders/${id}`)).json['run']).to.deep.equal({ closed: false });
    expect((await admin('POST', `${LEDGER}/orders/${id}/retry`)).status, 'nothing to retry').to.equal(400);
  });

  it('an operator’s command is repeatable by its id and says who acted from where, and why', async () => {
    const id = await order();
    const headers = { 'x-ledger-command-id': COMMAND_ID, 'x-ledger-ticket': 'CHG-7', 'user-agent': 'ops/1' };
    const first = await admin('POST', `${LEDGER}/orders/${id}/cancel`, undefined, headers);
    expect(first.status, first.text).to.equal(200);
    const again = await admin('POST', `${LEDGER}/orders/${id}/cancel`, undefined, headers);
    expect(again.json, again.text).to.deep.equal(first.json);
    const events = await readAll(service.store, `cluster-${id}`);
    expect(events.map(({ type }) => type)).to.deep.equal([
      'ClusterOrdered',
      'ClusterDeletionRequested',
      'ClusterDeleted',
    ]);
    expect(events[1]?.metadata).to.deep.include({ commandId: COMMAND_ID, ticket: 'CHG-7' });
    expect(events[1]?.metadata).to.have.property('source');
  });

  it('lanes are listed, paused and resumed, by the instance that has them', async () => {
    const listed = itemsOf(await admin('GET', `${LEDGER}/lanes`));
    expect(listed).to.deep.equal([
      {
        lane: 'hub:sim-1',
        breaker: 'open',
        paused: false,
        in_flight: 1,
        waiting: 7,
        consecutive_failures: 5,
        failing_orders: 1,
        failing: [{ order: 'o1', failures: 5, reason: 'Unavailable', message: '503', set_aside: false }],
        opened_by: { order: 'o1', reason: 'Unavailable', message: '503' },
        last_reason: 'Unavailable',
      },
    ]);
    const reason = 'upgrade';
    const paused = await admin('POST', `${LEDGER}/lanes/hub%3Asim-1/pause`, { reason });
    expect(paused.json, paused.text).to.include({ lane: 'hub:sim-1', paused: true });
    const long = await admin('POST', `${LEDGER}/lanes/hub%3Asim-1/pause`, { reason: 'x'.repeat(201) });
    expect(long.status).to.equal(400);
    const [event] = await readAll(service.store, 'lanePauses-all');
    expect(event?.data, 'by whom and why').to.include({ lane: 'hub:sim-1', reason });
    expect(event?.data['by']).to.match(/^[0-9a-f-]{36}$/);
    const resumed = await admin('POST', `${LEDGER}/lanes/hub:sim-1/resume`);
    expect(resumed.json).to.include({ paused: false, breaker: 'closed' });
    expect((await admin('POST', `${LEDGER}/lanes/nonsense/pause`)).status).to.equal(404);
    expect((await admin('POST', `${LEDGER}/lanes/__proto__/pause`)).status).to.equal(404);
    expect((await user('POST', `${LEDGER}/lanes/hub:sim-1/pause`)).status).to.equal(403);
    processes.state.epoch = undefined;
    const elsewhere = await admin('POST', `${LEDGER}/lanes/hub:sim-1/pause`);
    expect(elsewhere.status).to.equal(400);
    expect(textAt(elsewhere.json, 'detail')).to.match(/does not run the processes/);
    processes.state.epoch = 1;
  });

  it('a lane that there is not is neither paused nor resumed; the nearest ones are named', async () => {
    for (const verb of ['pause', 'resume']) {
      const refused = await admin('POST', `${LEDGER}/lanes/hub:wets/${verb}`);
      expect(refused.status, refused.text).to.equal(404);
      expect(textAt(refused.json, 'detail')).to.match(/lane 'hub:wets' not found; did you mean hub:west/);
    }
    const far = await admin('POST', `${LEDGER}/lanes/nonsense/pause`);
    expect(textAt(far.json, 'detail')).to.equal(
      "lane 'nonsense' not found; those of a hub are hub:<id> and hub:<id>:<kind of object>, those of a site are site:<zone>:<part>, and `ledgerctl lanes list` " +
        'shows what is at work',
    );
    const names = itemsOf(await admin('GET', `${LEDGER}/lanes`)).map(({ lane }) => lane);
    expect(names).to.not.include.members(['hub:wets']);
  });

  it('a lane of a registered hub, its automation and the scheduler may be paused before their first work', async () => {
    for (const lane of ['scheduler', 'hub:east', 'automation:eda:east', 'automation:aap:west']) {
      const path = `${LEDGER}/lanes/${encodeURIComponent(lane)}`;
      const paused = await admin('POST', `${path}/pause`);
      expect(paused.status, paused.text).to.equal(200);
      expect((await admin('POST', `${path}/resume`)).json).to.include({ lane, paused: false });
    }
  });
});
