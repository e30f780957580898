import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createAutomations } from '../../../src/adapters/automation/automations.ts';
import { MAX_BODY_BYTES } from '../../../src/adapters/automation/eda/eda-automation.ts';
import type { Automation } from '../../../src/app/automation/automation.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { loopbackTls } from '../../support/http/loopback-tls.ts';
import {
  startRulebook,
  type RulebookOptions,
  type RulebookStandIn,
} from '../../support/rulebook/rulebook-server.ts';
import { standInServer } from '../../support/stand-in/server.ts';
import { startStandIn } from '../../support/stand-in/process.ts';
import {
  callBy,
  connectionTo,
  describeAutomationContract,
  HMAC_SECRET,
  nameOf,
  orderCalled,
  refusedWith,
  secretStore,
  TOKEN,
  type Credentials,
  type Given,
} from './contract.ts';
import { eventually } from '../../support/eventually.ts';

const RIGHT: Credentials = { token: TOKEN, hmacSecret: HMAC_SECRET };

const givenTo = ({ runs }: RulebookStandIn): readonly Given[] =>
  runs.map(({ payload, meta }) => ({
    purpose: meta.endpoint.startsWith('create') ? 'provision' : 'deprovision',
    order: payload as JsonObject,
  }));

describeAutomationContract(
  'Event-Driven Ansible, stand-in',
  async () => {
    const rulebook = await startRulebook({ token: TOKEN, hmacSecret: HMAC_SECRET });
    const automations = createAutomations({ secrets: secretStore });
    return {
      connect: (change) => automations.of(connectionTo('eda', rulebook.url, { ...RIGHT, ...change })),
      connectNowhere: () => automations.of(connectionTo('eda', 'http://127.0.0.1:1', RIGHT)),
      given: async () => givenTo(rulebook),
      patienceMs: 2_000,
      close: rulebook.close,
    };
  },
  { signed: true },
);

describe('Event-Driven Ansible', function () {
  this.timeout(10_000);
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  const start = async (more: RulebookOptions = {}): Promise<RulebookStandIn> => {
    const rulebook = await startRulebook({ token: TOKEN, hmacSecret: HMAC_SECRET, ...more });
    closing.push(rulebook.close);
    return rulebook;
  };
  const automations = createAutomations({ secrets: secretStore });
  const connect = ({ url }: { url: string }, ca?: string): Automation =>
    automations.of(connectionTo('eda', url, RIGHT, ca === undefined ? {} : { ca }));
  const post = (automation: Automation, order: JsonObject, more = {}) =>
    automation.trigger({ purpose: 'provision', orderName: nameOf(order), order }, callBy(more));

  it('sends the effect id as idempotency key and a signature of the very bytes', async () => {
    const rulebook = await start();
    await post(connect(rulebook), orderCalled('order-a'), { effectId: 'run-1/trigger:1' });
    const [request] = rulebook.requests;
    expect(request?.headers['idempotency-key']).to.equal('run-1/trigger:1');
    expect(request?.headers['x-hub-signature-256']).to.match(/^sha256=[0-9a-f]{64}$/);
    expect(request?.headers['content-type']).to.equal('application/json');
  });

  it('has at most eight requests in flight, of which no two are of one order', async () => {
    const rulebook = await start();
    rulebook.always({ late: 20 });
    const automation = connect(rulebook);
    const orders = Array.from({ length: 30 }, (_, n) => orderCalled(`order-${n % 15}`));
    await Promise.all(orders.map((order) => post(automation, order)));
    expect(rulebook.requests).to.have.length(30);
    expect(rulebook.most).to.deep.equal({ open: 8, ofOneOrder: 1 });
  });

  it('shares those places among hubs of one listener', async () => {
    const rulebook = await start();
    rulebook.always({ late: 20 });
    const hubs = ['a', 'b'].map((hub) =>
      automations.of({ ...connectionTo('eda', rulebook.url, RIGHT), hub }),
    );
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => post(hubs[n % 2] as Automation, orderCalled(`order-${n}`))),
    );
    expect(rulebook.most.open).to.equal(8);
  });

  it('waits for an answer longer than a caller of ten seconds would', async () => {
    // The deadline of its caller is raised to the listener's; here it is 20 ms.
    const rulebook = await start();
    rulebook.always({ late: 150 });
    expect(await post(connect(rulebook), orderCalled('order-late'), { deadlineMs: 20 })).to.deep.equal({
      kind: 'queued',
    });
  });

  it('a listener that answers 200 twice was asked once, and the second answer is nobody’s', async () => {
    const answers = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'.repeat(2);
    let connections = 0;
    const listener = createServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write(answers));
    });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    closing.push(async () => void listener.close());
    const { port } = listener.address() as AddressInfo;
    const automation = connect({ url: `http://127.0.0.1:${port}` });
    for (const name of ['order-a', 'order-a', 'order-b'])
      expect(await post(automation, orderCalled(name))).to.deep.equal({ kind: 'queued' });
    expect(connections).to.equal(3);
  });

  it('does not send an order that a listener would refuse for its size, and sends the largest that it takes', async () => {
    const rulebook = await start();
    const empty = Buffer.byteLength(JSON.stringify(orderCalled('order-big', { sshPublicKey: '' })));
    const sized = (bytes: number): JsonObject =>
      orderCalled('order-big', { sshPublicKey: 'k'.repeat(bytes - empty) });
    const error = await refusedWith(post(connect(rulebook), sized(MAX_BODY_BYTES + 1)));
    expect(error.kind).to.equal('invalid');
    expect(error.message).to.include('1048577');
    expect(rulebook.requests).to.deep.equal([]);
    await post(connect(rulebook), sized(MAX_BODY_BYTES));
    expect(rulebook.requests.map(({ bytes, status }) => [bytes, status])).to.deep.equal([
      [MAX_BODY_BYTES, 200],
    ]);
  });

  for (const [behaviour, kind] of [
    ['cut', 'unknown-outcome'],
    ['drop', 'unknown-outcome'],
    [{ status: 500 }, 'unknown-outcome'],
    [{ status: 502 }, 'unknown-outcome'],
    [{ status: 503 }, 'unavailable'],
    [{ status: 429 }, 'throttled'],
    [{ status: 413 }, 'invalid'],
    [{ status: 400, text: 'Invalid JSON payload' }, 'invalid'],
    [{ status: 400, text: 'Signature header not found' }, 'unauthorized'],
    [{ status: 401 }, 'unauthorized'],
    [{ status: 403 }, 'forbidden'],
    [{ status: 404 }, 'not-found'],
    [{ status: 405 }, 'not-found'],
    [{ status: 302 }, 'not-found'],
  ] as const) {
    it(`answered with ${JSON.stringify(behaviour)} it says ${kind}`, async () => {
      const rulebook = await start();
      rulebook.next(behaviour);
      const error = await refusedWith(post(connect(rulebook), orderCalled('order-a')));
      expect(error.kind).to.equal(kind);
      expect(rulebook.requests).to.have.length(1);
    });
  }

  it('hides what a listener repeats of its credentials', async () => {
    const rulebook = await start();
    rulebook.next({ status: 400, text: `bad header Authorization: Bearer ${TOKEN}, secret=${HMAC_SECRET}` });
    const { message } = await refusedWith(post(connect(rulebook), orderCalled('order-a')));
    expect(message).to.include('bad header').and.not.include(TOKEN).and.not.include(HMAC_SECRET);
  });

  it('does not know what became of a request whose caller gave up', async () => {
    const rulebook = await start();
    rulebook.next({ late: 5_000 });
    const stop = new AbortController();
    const posted = post(connect(rulebook), orderCalled('order-a'), { signal: stop.signal });
    await eventually('the playbook has begun', () => rulebook.runs.length === 1);
    stop.abort();
    expect((await refusedWith(posted)).kind).to.equal('unknown-outcome');
  });

  it('gives up waiting for its place without having sent anything', async () => {
    const rulebook = await start();
    rulebook.next({ late: 300 });
    const automation = connect(rulebook);
    const first = post(automation, orderCalled('order-a'));
    const stop = new AbortController();
    const second = post(automation, orderCalled('order-a'), { signal: stop.signal });
    stop.abort();
    expect((await refusedWith(second)).kind).to.equal('unavailable');
    await first;
    expect(rulebook.requests).to.have.length(1);
  });

  it('trusts the authority that the hub names and no other', async () => {
    const [tls, other] = await Promise.all([loopbackTls(), loopbackTls()]);
    const rulebook = await start({ tls });
    await post(connect(rulebook, tls.cert), orderCalled('order-a'));
    for (const ca of [undefined, other.cert]) {
      const error = await refusedWith(post(connect(rulebook, ca), orderCalled('order-b')));
      expect(error.kind).to.equal('unavailable');
      expect(error.message).to.match(/certificate/i);
    }
    expect(rulebook.runs).to.have.length(1);
  });

  it('says so when something else answers there', async () => {
    const page = await standInServer(async (_request, response) => {
      response.end('<html>welcome</html>');
    });
    closing.push(page.close);
    const { problems } = await connect(page).check(callBy());
    expect(problems.join()).to.include('no rulebook webhook');
  });

  it('is checked while it is busy, and is not kept busier by that', async () => {
    const rulebook = await start();
    rulebook.always({ late: 500 });
    const automation = connect(rulebook);
    const posts = Array.from({ length: 9 }, (_, n) => post(automation, orderCalled(`order-${n}`)));
    await eventually('all places are taken', () => rulebook.most.open === 8);
    expect(await automation.check(callBy())).to.deep.equal({ problems: [] });
    expect(rulebook.requests.map(({ status }) => status)).to.deep.equal([405]);
    await Promise.all(posts);
    expect(rulebook.runs).to.have.length(9);
  });

  it('takes over changed credentials', async () => {
    const rulebook = await start();
    const before = automations.of(connectionTo('eda', rulebook.url, { ...RIGHT, token: 'former' }));
    expect((await refusedWith(post(before, orderCalled('order-a')))).kind).to.equal('unauthorized');
    await post(connect(rulebook), orderCalled('order-a'));
    expect(connect(rulebook)).to.equal(connect(rulebook));
  });

  it('works with a listener in a process of its own, whose queue dies with it', async () => {
    const main = new URL('../../support/rulebook/main.ts', import.meta.url).pathname;
    const rulebook = await startStandIn(main, { token: TOKEN, hmacSecret: HMAC_SECRET });
    closing.push(rulebook.kill);
    await rulebook.command('hold');
    await post(connect(rulebook), orderCalled('order-a'));
    expect(await rulebook.command('queued')).to.equal(1);
    await rulebook.command('kill');
    expect((await refusedWith(post(connect(rulebook), orderCalled('order-a')))).kind).to.equal('unavailable');
    await rulebook.command('restart');
    await post(connect(rulebook), orderCalled('order-b'));
    await eventually(
      'the second one runs',
      async () => (await rulebook.command<unknown[]>('runs')).length === 1,
    );
  });
});
