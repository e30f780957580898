import { expect } from 'chai';
import { join } from 'node:path';
import { ApiError } from '../../../src/cli/api-client.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { streamName } from '../../../src/domain/stream-name.ts';
import { readHubObjects } from '../../support/hubs/hub-journal.ts';
import { createStack, E2E_STORE, PRIVATE, until, type Stack } from '../../support/service/stack.ts';
import { readLog } from '../../support/service/stored-log.ts';
import { wrongBill } from '../../support/simulation/machines.ts';

const ALL = '/api/fulfillment/v1';
const MACHINE = 'killed-vm';
const AT = `${PRIVATE}/compute_instances/${MACHINE}`;
/** A hub tells times in whole seconds: each way takes three of them. */
const SLOW = { simulation: 'factor=5' };
/** A failpoint that nothing comes to: it is killed from outside. */
const PATIENCE_MS = 4_000;

type Shown = {
  readonly status?: { readonly state?: string; readonly hub?: string; readonly last_restarted_at?: string };
};

describe('a virtual machine, and kill -9 while it is made, stopped, started, restarted and deleted', function () {
  this.timeout(300_000);
  let stack: Stack;
  before(async () => {
    stack = await createStack(E2E_STORE);
    await stack.start();
  });
  after(() => stack.dispose());

  const alice = () => stack.client({ tenant: 'acme', user: 'alice' });
  const shown = async (path: string): Promise<Shown | undefined> => {
    try {
      return await (await stack.client({ admin: true, user: 'root' })).get<Shown>(path);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  };
  const shows = (path: string, state: string): Promise<void> =>
    until(
      `${path} is ${state}`,
      async () => (await shown(path))?.status?.state?.endsWith(`_STATE_${state}`) === true,
    );
  const make = async (kind: string, name: string, spec: object, metadata: object = {}): Promise<void> => {
    const body = { id: name, metadata: { name, ...metadata }, spec };
    await (await alice()).send('POST', `${ALL}/${kind}`, body);
  };
  /** The service dies of an effect that it has sent and not recorded; it dies at the second one of its orders. */
  const killedWhile = async (ask: () => Promise<unknown>): Promise<void> => {
    await stack.stop('SIGKILL');
    const failpoint = { LEDGER_TEST_FAILPOINT: 'after-effect-before-record' };
    await stack.start(failpoint, { until: 'listening' });
    const { ended } = stack.service();
    const first = ask().then(
      () => true,
      () => false,
    );
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
    await stack.stop('SIGKILL');
    const isAnswered = await first;
    await stack.start();
    // What was not answered is asked again: it may have been stored.
    if (!isAnswered)
      await ask().catch((error: unknown) => {
        if (!(error instanceof ApiError) || ![404, 409].includes(error.status)) throw error;
      });
  };
  const change = (spec: object) => async (): Promise<unknown> =>
    (await alice()).send('PATCH', `${ALL}/compute_instances/${MACHINE}`, { spec });

  it('is one object on its hub, comes to what was asked, and is billed for the time in which it ran', async () => {
    await make('virtual_networks', 'killed-net', { ipv4_cidr: '10.0.0.0/16' });
    await shows(`${PRIVATE}/virtual_networks/killed-net`, 'READY');
    const inNet = { virtual_network: { id: 'killed-net' }, ipv4_cidr: '10.0.1.0/24' };
    await make('subnets', 'killed-subnet', inNet);
    await shows(`${PRIVATE}/subnets/killed-subnet`, 'READY');

    const order = {
      template: { name: 'vm' },
      network_attachments: [{ subnet: { id: 'killed-subnet' } }],
      user_data: '#cloud-config',
    };
    await killedWhile(() => make('compute_instances', MACHINE, order, { annotations: SLOW }));
    await shows(AT, 'RUNNING');
    const hub = (await shown(AT))?.status?.hub ?? '';
    await killedWhile(change({ run_strategy: 'Halted' }));
    await shows(AT, 'STOPPED');
    await killedWhile(change({ run_strategy: 'Always' }));
    await shows(AT, 'RUNNING');
    await killedWhile(change({ restart_requested_at: new Date().toISOString() }));
    await until('it is restarted', async () => {
      const { status } = (await shown(AT)) ?? {};
      return status?.last_restarted_at !== undefined && status.state?.endsWith('_RUNNING') === true;
    });
    await killedWhile(async () => (await alice()).send('DELETE', `${ALL}/compute_instances/${MACHINE}`));
    await until('it is gone', async () => (await shown(AT)) === undefined);

    const objects = readHubObjects(join(stack.dataDir, 'hubs', `${hub}.sqlite`));
    const made = objects.filter(({ id }) => id === MACHINE);
    expect(made.map(({ kind }) => kind).toSorted()).to.deep.equal(['ComputeInstance', 'UserDataSecret']);
    const stream = streamName('computeInstance', MACHINE);
    const events = (await readLog(stack))
      .filter((event) => event.stream === stream)
      .map(({ type, data }) => ({ type, data: data as unknown as JsonObject }));
    expect(stringAt(events.at(-1)?.data ?? {}, 'at')).not.to.equal('');
    expect(
      wrongBill(
        events,
        made.filter(({ kind }) => kind === 'ComputeInstance'),
        Date.now(),
      ),
    ).to.equal(undefined);
    expect(made.flatMap(({ ran }) => ran).length).to.be.greaterThan(1);
  });
});
