import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { callerOf, readiness, type Reply } from '../../support/service/caller.ts';
import { metadataText, readLog } from '../../support/service/stored-log.ts';
import { runMain } from '../../support/service/run-main.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  createStack,
  PRIVATE,
  until,
  type Stack,
} from '../../support/service/stack.ts';

const PAGE = 4096;
/** Blocks of 1 KiB that no file of the service may outgrow: above what a start needs, soon reached by orders. */
const LIMIT_KB = 8_192;
const PADDING = 200_000;
const AT_ONCE = 16;
const MOST = 800;
/** Lifting the limit of a running process takes util-linux, which is on every Linux but on nothing else. */
const PRLIMIT = '/usr/bin/prlimit';
const LIFTS = existsSync(PRLIMIT);

/** Posts orders by their number. */
const ordersOf = async (stack: Stack): Promise<(n: number) => Promise<Reply>> => {
  const call = await callerOf(stack, { tenant: 'acme', user: 'alice' });
  const asAdmin = await callerOf(stack, { admin: true, user: 'root' });
  // Nothing reaches this hub: orders for its zone are taken, and wait. It may be there already.
  await asAdmin('POST', `${PRIVATE}/hubs`, {
    body: { id: 'hub-nowhere', spec: { namespace: 'osac-hub', zone: 'nowhere' } },
  });
  /** Padded, so that a few dozen orders reach the limit. */
  const annotations = { note: 'x'.repeat(PADDING), 'fulfillment-ledger/zone': 'nowhere' };
  return (n: number): Promise<Reply> =>
    call('POST', CLUSTERS, {
      body: {
        metadata: { name: `order-${n}`, annotations },
        spec: { template: { id: 'osac.templates.ocp_ci_small' } },
      },
      headers: { 'idempotency-key': `"key-${n}"`, 'x-request-id': `request-${n}` },
    });
};

describe('a disk that is full or cut short', function () {
  this.timeout(90_000);
  let stack: Stack;

  beforeEach(async () => {
    stack = await createStack('sqlite', AS_DEPLOYED);
  });
  afterEach(() => stack.dispose());

  const limited = ['bash', '-c', `ulimit -S -f ${LIMIT_KB}; exec "$0" "$@"`];
  const orders = () => ordersOf(stack);
  type Full = {
    readonly acknowledged: ReadonlyMap<number, string>;
    readonly refused: ReadonlyMap<number, Reply>;
  };
  /** Orders, several at once, until nothing is stored any more; what became of each by its number. */
  const orderUntilFull = async (): Promise<Full> => {
    const order = await orders();
    const acknowledged = new Map<number, string>();
    const refused = new Map<number, Reply>();
    for (let n = 0; n < MOST; n += AT_ONCE) {
      const numbers = Array.from({ length: AT_ONCE }, (_, i) => n + i);
      const replies = await Promise.all(numbers.map(order));
      for (const [i, reply] of replies.entries()) {
        if (reply.status === 200) acknowledged.set(n + i, String(reply.json()['id']));
        else refused.set(n + i, reply);
      }
      if (replies.every(({ status }) => status === 503)) return { acknowledged, refused };
    }
    throw new Error(`${MOST} orders did not fill ${LIMIT_KB} KiB`);
  };
  const ordered = async (): Promise<Map<string, string>> => {
    const log = (await readLog(stack)).filter(({ type }) => type === 'ClusterOrdered');
    return new Map(log.map((event) => [metadataText(event, 'correlationId'), event.stream]));
  };

  const assertFull = ({ acknowledged, refused }: Full): void => {
    expect(acknowledged.size).to.be.greaterThan(10);
    for (const reply of refused.values()) {
      // An order whose name was still reserved, but not itself stored, is settled by its retry.
      if (reply.status === 504) expect(reply.headers.get('x-ledger-reason')).to.equal('OUTCOME_UNKNOWN');
      else {
        expect(reply.status, reply.text).to.equal(503);
        expect(reply.headers.get('x-ledger-reason')).to.equal('STORE_FULL');
        expect(Number(reply.headers.get('retry-after'))).to.be.greaterThan(0);
        expect(reply.json()['message']).to.match(/no space left; nothing was stored/);
      }
    }
  };
  /** Every order is there once, whatever was said about it before. */
  const assertSettled = async ({ acknowledged, refused }: Full): Promise<void> => {
    const order = await orders();
    for (const n of refused.keys()) expect((await order(n)).status).to.equal(200);
    for (const [n, id] of acknowledged) expect((await order(n)).json()['id']).to.equal(id);
    const client = await stack.client({ tenant: 'acme', user: 'alice' });
    const { total } = await client.get<{ total: number }>(`${CLUSTERS}?limit=0`);
    expect(total).to.equal(acknowledged.size + refused.size);
  };

  it('at a file-size limit orders are refused with 503; all acknowledged ones are there after a start with space', async () => {
    // What waits for space at the end is cut after a second, not after the default of ten.
    await stack.start({ LEDGER_SHUTDOWN_MS: '1000' }, { launcher: limited });
    const full = await orderUntilFull();
    assertFull(full);
    expect((await fetch(`${stack.http()}/healthz`)).status, 'the process stays up').to.equal(200);
    await stack.stop('SIGTERM');
    const stored = await ordered();
    for (const [n, id] of full.acknowledged) expect(stored.get(`request-${n}`)).to.equal(`cluster-${id}`);
    expect(stored.size, 'what was refused left nothing').to.equal(full.acknowledged.size);

    await stack.start();
    await assertSettled(full);
  });

  if (LIFTS)
    it('goes on in the same process when space returns', async () => {
      await stack.start({}, { launcher: limited });
      const full = await orderUntilFull();
      assertFull(full);
      execFileSync(PRLIMIT, ['--pid', String(stack.service().pid), '--fsize=unlimited:unlimited']);
      const order = await orders();
      const [first = 0] = full.refused.keys();
      await until('a refused order is accepted', async () => (await order(first)).status === 200);
      await until('the service is ready', async () => (await readiness(stack)).status === 200);
      await assertSettled(full);
    });

  it('with a truncated write-ahead log it starts with a prefix of what was acknowledged', async () => {
    await stack.start();
    const order = await orders();
    const ids: string[] = [];
    for (let n = 0; n < 30; n += 1) ids.push(String((await order(n)).json()['id']));
    await stack.stop('SIGKILL');
    const wal = `${logFile(stack.dataDir)}-wal`;
    truncateSync(wal, Math.floor(statSync(wal).size * 0.6));
    const left = [...(await ordered()).values()].map((stream) => stream.replace('cluster-', ''));
    expect(left.length).to.be.within(1, 29);
    expect(left).to.deep.equal(ids.slice(0, left.length));
    await stack.start();
    const client = await stack.client({ tenant: 'acme', user: 'alice' });
    const { total } = await client.get<{ total: number }>(`${CLUSTERS}?limit=0`);
    expect(total, 'the read models know no more than the log').to.equal(left.length);
    const next = await (await orders())(100);
    expect(next.status, next.text).to.equal(200);
  });
});

describe('a directory that is taken, of another deployment, or damaged', function () {
  this.timeout(90_000);
  let stack: Stack;

  before(async () => {
    stack = await createStack('sqlite', AS_DEPLOYED);
  });
  after(() => stack.dispose());

  it('a second process on the directory is refused with the sentence that says why, and harms nothing', async () => {
    await stack.start();
    const refused = await runMain(['serve'], stack.environment);
    expect(refused.code).to.equal(1);
    expect(refused.err).to.include(
      `the data directory ${stack.dataDir} is in use by process ${stack.service().pid}: one process writes to it at a time. ` +
        'Stop that process, or give this one another LEDGER_DATA_DIR.',
    );
    expect((await (await ordersOf(stack))(1)).status).to.equal(200);
  });

  it('the secrets of another deployment are refused', async () => {
    await stack.stop('SIGTERM');
    const secrets = mkdtempSync(join(tmpdir(), 'ledger-e2e-secrets-'));
    try {
      const refused = await runMain(['serve'], { ...stack.environment, LEDGER_SECRETS_DIR: secrets });
      expect(refused.code).to.equal(1);
      expect(refused.err).to.include(
        'LEDGER_SECRETS_DIR: the keys in this directory are not those of this event log',
      );
    } finally {
      rmSync(secrets, { recursive: true });
    }
    await stack.start();
  });

  it('with a flipped page it refuses to start, and `store check` finds it', async () => {
    const order = await ordersOf(stack);
    for (let n = 0; n < 20; n += 1) await order(n);
    await stack.stop('SIGTERM');
    const sound = await runMain(['store', 'check', '--data-dir', stack.dataDir]);
    expect(sound.out).to.match(/^\d+ events, nothing wrong\n$/);
    expect(sound.code).to.equal(0);

    const file = logFile(stack.dataDir);
    const bytes = readFileSync(file);
    const page = Math.floor(bytes.length / PAGE / 2);
    for (let at = page * PAGE; at < (page + 1) * PAGE; at += 1)
      bytes.writeUInt8(bytes.readUInt8(at) ^ 0xff, at);
    writeFileSync(file, bytes);
    const refused = await runMain(['serve'], stack.environment);
    expect(refused.code).to.equal(1);
    expect(refused.err).to.include(file).and.to.include('is damaged').and.to.include('ledgerctl store check');
    expect(refused.out).not.to.include('"listening"');
    const found = await runMain(['store', 'check', '--data-dir', stack.dataDir]);
    expect(found.code).to.equal(1);
    expect(found.out).to.match(/\d+ findings\n$/);
  });
});
