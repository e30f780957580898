import { expect } from 'chai';
import { ApiError } from '../../src/cli/api-client.ts';
import { stringAt } from '../../src/domain/json-tools.ts';
import { FAILPOINTS } from '../../src/app/process-runner/types.ts';
import { eventually } from '../support/eventually.ts';
import { readLog } from '../support/service/stored-log.ts';
import { createStack, E2E_STORE, PRIVATE, until, type Stack } from '../support/service/stack.ts';

const IPS = '/api/fulfillment/v1/external_ips';
const CALLERS = 64;
/** `npm test` kills it once, the fault suites at three moments. */
const KILLED_AT = FAILPOINTS.slice(0, process.env['LEDGER_TEST_KILLS'] === undefined ? 1 : 3);

type Shown = {
  readonly id: string;
  readonly status?: { readonly state?: string; readonly address?: string };
};

describe(`external IPs for ${CALLERS} callers at once, and kill -9 at ${KILLED_AT.join(', ')}`, function () {
  this.timeout(240_000);
  let stack: Stack;
  before(async () => {
    stack = await createStack(E2E_STORE);
    await stack.start();
  });
  after(() => stack.dispose());

  it('no address is lost, and none is given twice', async () => {
    const pool = 'pool-of-many';
    const poolPath = `${PRIVATE}/external_ip_pools/${pool}`;
    const admin = () => stack.client({ admin: true, user: 'root' });
    const metadata = {
      name: pool,
      annotations: { simulation: 'factor=0.05', 'fulfillment-ledger/quarantine': 'PT0S' },
    };
    const spec = { cidrs: ['203.0.113.0/25'], ip_family: 'IP_FAMILY_IPV4' };
    await (await admin()).send('POST', `${PRIVATE}/external_ip_pools`, { id: pool, metadata, spec });
    await until('the pool is ready', async () => {
      const { status } = await (await admin()).get<Shown>(poolPath);
      return status?.state === 'EXTERNAL_IP_POOL_STATE_READY';
    });
    const ids = Array.from({ length: CALLERS }, (_, n) => `ip-of-caller-${n}`);
    /** What a killed service did not answer is sent again. */
    const order = async (wanted: readonly string[]): Promise<void> => {
      const tenant = await stack.client({ tenant: 'acme', user: 'alice' });
      await Promise.all(
        wanted.map((id) =>
          tenant
            .send('POST', IPS, {
              id,
              metadata: { name: id, annotations: { simulation: 'factor=0.05' } },
              spec: { pool: { id: pool } },
            })
            .catch((error: unknown) => {
              // There already, or nobody answers any more.
              if (error instanceof ApiError && error.status !== 409 && error.status < 500) throw error;
            }),
        ),
      );
    };
    for (const [kill, failpoint] of KILLED_AT.entries()) {
      await stack.stop('SIGKILL');
      await stack.start({ LEDGER_TEST_FAILPOINT: `${failpoint}:${5 + 7 * kill}` }, { until: 'listening' });
      const { ended } = stack.service();
      void order(ids);
      await ended;
    }
    await stack.start();
    const shown = async (): Promise<readonly Shown[]> => {
      const { items = [] } = await (await admin()).get<{ items?: Shown[] }>(
        `${PRIVATE}/external_ips?limit=200`,
      );
      return items;
    };
    // A name that a killed creation reserved is free again after a while.
    await until('all are ordered', async () => {
      const there = new Set((await shown()).map(({ id }) => id));
      await order(ids.filter((id) => !there.has(id)));
      return there.size === CALLERS;
    });
    let states: readonly (string | undefined)[] = [];
    const last = () => `all have an address: ${states.join(' ')}`;
    await eventually(last, async () => {
      states = (await shown()).map(({ status }) => status?.state?.replace(/^.*_/, ''));
      return states.length === CALLERS && states.every((state) => state === 'ALLOCATED');
    });
    const addresses = (await shown()).map(({ status }) => status?.address ?? '');
    expect(new Set(addresses).size).to.equal(CALLERS);
    const counted = (await (await admin()).get<{ status: object }>(poolPath)).status;
    expect(counted).to.include({ allocated: String(CALLERS), available: String(126 - CALLERS) });
    // The lowest ones: none was taken for an attempt that came to nothing.
    const expected = Array.from({ length: CALLERS }, (_, n) => `203.0.113.${n + 1}`);
    expect(addresses.toSorted()).to.deep.equal(expected.toSorted());

    const tenant = await stack.client({ tenant: 'acme', user: 'alice' });
    await Promise.all(ids.map((id) => tenant.send('DELETE', `${IPS}/${id}`)));
    await until('all are gone', async () => (await shown()).length === 0);
    const { status } = await (await admin()).get<{ status: object }>(poolPath);
    expect(status).to.not.have.property('allocated');
    await stack.stop();
    const given = new Set<string>();
    for (const { stream, type, data } of await readLog(stack)) {
      if (stream !== `externalIpPool-${pool}`) continue;
      const address = stringAt(data, 'address');
      if (type === 'AddressAssigned') {
        expect(given.has(address), `${address} is given to one at a time`).to.equal(false);
        given.add(address);
      }
      if (type === 'AddressReleased') given.delete(address);
    }
    expect([...given]).to.deep.equal([]);
  });
});
