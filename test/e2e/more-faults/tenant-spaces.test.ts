import { expect } from 'chai';
import { join } from 'node:path';
import { createSimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { ApiError, type ApiClient } from '../../../src/cli/api-client.ts';
import { FAILPOINTS, type FailpointName } from '../../../src/app/process-runner/types.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { TENANT } from '../../../src/domain/tenancy/hub-objects.ts';
import { TENANT_SPACE_CATEGORY } from '../../../src/domain/tenancy/tenant-space.ts';
import { readHubCalls } from '../../support/hubs/hub-journal.ts';
import { readLog } from '../../support/service/stored-log.ts';
import { createStack, E2E_STORE, PRIVATE, until, type Stack } from '../../support/service/stack.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';

const POOLS = `${PRIVATE}/external_ip_pools`;
const IPS = '/api/fulfillment/v1/external_ips';
const POOL = 'pool-of-drills';
const QUICK = { simulation: 'factor=0.05', 'fulfillment-ledger/quarantine': 'PT0S' };
/** Moments of one failpoint; a life of a tenant with one address passes fewer. */
const MOST = 60;
/** Every sixth one, since each kill costs two starts. */
const EVERY = process.env['LEDGER_TEST_DRILLS'] === 'all' ? 6 : 9;
const POINTS = FAILPOINTS.filter((name) => name.startsWith('after-'));

type Shown = { readonly id: string; readonly status?: { readonly state?: string; readonly hub?: string } };

describe('a tenant on a hub, killed between every two steps of its making and its removal', function () {
  this.timeout(900_000);
  let stack: Stack;
  let hub = '';
  let lives = 0;
  let eye: ReturnType<typeof createSimulatedHub>;
  before(async () => {
    stack = await createStack(E2E_STORE);
    await stack.start();
    const spec = { cidrs: ['203.0.113.0/24'], ip_family: 'IP_FAMILY_IPV4' };
    const root = await admin();
    await root.send('POST', POOLS, { id: POOL, metadata: { name: POOL, annotations: QUICK }, spec });
    await until('the pool is ready', async () => {
      const { status } = await root.get<Shown>(`${POOLS}/${POOL}`);
      hub = status?.hub ?? '';
      return status?.state === 'EXTERNAL_IP_POOL_STATE_READY';
    });
    eye = createSimulatedHub({ hubId: hub, file: hubFile(), clock: systemClock(), timers: systemTimers() });
  });
  after(async () => {
    await eye?.close();
    await stack.dispose();
  });

  const admin = (): Promise<ApiClient> => stack.client({ admin: true, user: 'root' });
  const hubFile = (): string => join(stack.dataDir, 'hubs', `${hub}.sqlite`);
  const tenantsMade = (name: string): number =>
    readHubCalls(hubFile()).filter(
      ({ kind, object, operation, result }) =>
        kind === 'Tenant' && object === name && operation === 'create' && result === 'created',
    ).length;
  /** By another instance on the hub's file: what it holds, not what our service makes of it. */
  const isOnHub = async (name: string): Promise<boolean> => {
    const by = { effectId: 'look', deadlineMs: 10_000, signal: new AbortController().signal };
    return (await eye.get(TENANT, { namespace: 'osac-hub', name }, by)) !== undefined;
  };
  /** An answer that is no answer, and one that says that it was done before, are both asked again. */
  const insist = (what: string, ask: (root: ApiClient) => Promise<boolean>): Promise<void> =>
    until(what, async () => {
      try {
        return await ask(await admin());
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) throw error;
        await revive();
        return false;
      }
    });
  /** Starts the service again, without anything planted, once it was killed. */
  const revive = async (): Promise<void> => {
    const ended = await Promise.race([
      stack.service().ended,
      new Promise((resolve) => setImmediate(() => resolve(undefined))),
    ]);
    if (ended !== undefined) await stack.start({ LEDGER_TEST_FAILPOINT: '' });
  };
  const taken = (error: unknown): void => {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  };
  const absent = (error: unknown): undefined => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    return undefined;
  };

  /** From a tenant's first address to its end. */
  const live = async (name: string): Promise<void> => {
    const id = `ip-of-${name}`;
    const metadata = { name: id, annotations: QUICK };
    const at = `${PRIVATE}/external_ips/${id}`;
    const tenantAt = `${PRIVATE}/tenants/${name}`;
    await insist('the tenant is there', async (root) => {
      await root.send('POST', `${PRIVATE}/tenants`, { metadata: { name } }).catch(taken);
      return true;
    });
    await insist('its address is ordered', async () => {
      const user = await stack.client({ tenant: name, user: 'alice' });
      await user.send('POST', IPS, { id, metadata, spec: { pool: { id: POOL } } }).catch(taken);
      return true;
    });
    await insist('its address is allocated', async (root) => {
      const shown = await root.get<Shown>(at).catch(absent);
      return shown?.status?.state === 'EXTERNAL_IP_STATE_ALLOCATED';
    });
    expect(tenantsMade(name)).to.equal(1);
    await insist('its address is gone', async (root) => {
      await root.send('DELETE', at).catch(absent);
      return (await root.get<Shown>(at).catch(absent)) === undefined;
    });
    expect(await isOnHub(name), 'it stays with its tenant').to.equal(true);
    await insist('the tenant is gone', async (root) => {
      await root.send('DELETE', tenantAt).catch(absent);
      return (await root.get<Shown>(tenantAt).catch(absent)) === undefined;
    });
    await until('the hub holds nothing of it', async () => {
      await revive();
      return !(await isOnHub(name));
    });
  };

  const killed = async (failpoint: FailpointName, moment: number): Promise<boolean> => {
    await stack.stop();
    await stack.start({ LEDGER_TEST_FAILPOINT: `${failpoint}:${moment}` }, { until: 'listening' });
    let died = false;
    void stack.service().ended.then(() => (died = true));
    lives += 1;
    await live(`t-${lives}`);
    return died;
  };

  for (const failpoint of POINTS)
    it(`${failpoint}: there is one Tenant while it has a use, and none after its tenant`, async () => {
      let deaths = 0;
      for (let moment = 1; moment <= MOST; moment += EVERY) {
        if (!(await killed(failpoint, moment))) break;
        deaths += 1;
      }
      expect(deaths).to.be.greaterThan(0);
    });

  it('outlasts a hub that answers nothing, and everything that waits goes on when it is back', async () => {
    await stack.stop();
    await stack.start({ LEDGER_TEST_FAILPOINT: '' });
    await eye.control.configure('dead=8s');
    await live('t-away');
    await eye.control.configure('');
  });

  it('a tenant that is removed while its objects are ordered keeps none, or stays with them', async () => {
    for (let round = 0; round < 8; round += 1) {
      const name = `t-race-${round}`;
      const root = await admin();
      await root.send('POST', `${PRIVATE}/tenants`, { metadata: { name } });
      const user = await stack.client({ tenant: name, user: 'alice' });
      const ids = [1, 2, 3].map((n) => `ip-${name}-${n}`);
      const orders = ids.map((id) =>
        user.send('POST', IPS, {
          id,
          metadata: { name: id, annotations: QUICK },
          spec: { pool: { id: POOL } },
        }),
      );
      const removal = root.send('DELETE', `${PRIVATE}/tenants/${name}`);
      const ordered = await Promise.allSettled(orders);
      const isRemoved = (await Promise.allSettled([removal]))[0].status === 'fulfilled';
      const made = ids.filter((_id, n) => ordered[n]?.status === 'fulfilled');
      expect(isRemoved && made.length > 0, `${name} was removed with ${made.join(' ')}`).to.equal(false);
      for (const id of made) {
        const at = `${PRIVATE}/external_ips/${id}`;
        await until(`${id} is allocated`, async () => {
          const { status } = await root.get<Shown>(at);
          return status?.state === 'EXTERNAL_IP_STATE_ALLOCATED';
        });
        await root.send('DELETE', at);
      }
      if (!isRemoved)
        await until(`${name} goes once it has nothing`, async () => {
          const refused = await root.send('DELETE', `${PRIVATE}/tenants/${name}`).then(
            () => false,
            (error: unknown) => {
              if (error instanceof ApiError && error.status === 400) return true;
              absent(error);
              return false;
            },
          );
          return !refused;
        });
      await until(`the hub holds nothing of ${name}`, async () => !(await isOnHub(name)));
    }
  });

  it('leaves the streams of all of them at their end', async () => {
    await stack.stop();
    const last = new Map<string, string>();
    const tenants = new Map<string, string>();
    for (const { stream, type, data } of await readLog(stack)) {
      if (!stream.startsWith(`${TENANT_SPACE_CATEGORY}-`)) continue;
      last.set(stream, type);
      if (type === 'TenantSpaceRequested') tenants.set(stream, stringAt(data, 'tenant'));
    }
    for (const [stream, type] of last)
      if (tenants.get(stream) !== 'shared') expect(type, tenants.get(stream)).to.equal('TenantSpaceRemoved');
    expect(last.size).to.be.greaterThan(lives);
  });
});
