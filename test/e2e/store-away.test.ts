import { expect } from 'chai';
import { callerOf, readiness, type Caller, type Reply } from '../support/service/caller.ts';
import { metadataText, readLog } from '../support/service/stored-log.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  createStack,
  isReady,
  until,
  untilCluster,
  type ClusterBody,
  type Stack,
} from '../support/service/stack.ts';

const order = (name: string): object => ({
  metadata: { name, annotations: { simulation: 'factor=0.05' } },
  spec: { template: { id: 'osac.templates.ocp_ci_small' } },
});

/** Milliseconds that an append may take in this suite. */
const DEADLINE_MS = 3_000;

/** Every 503 left no event, every 504 is settled by its retry. */
describe('an event store that is away or late', function () {
  this.timeout(180_000);
  let stack: Stack;
  let alice: Caller;
  let existing: string;

  before(async () => {
    stack = await createStack('eventstoredb-peer', AS_DEPLOYED);
    await stack.start({ LEDGER_STORE_DEADLINE_MS: String(DEADLINE_MS) });
    alice = await callerOf(stack, { tenant: 'acme', user: 'alice' });
    existing = await post('existing', '"existing"').then((reply) => String(reply.json()['id']));
  });
  after(() => stack.dispose());
  afterEach(async () => {
    await stack.peer.heal();
    await stack.peer.up();
    await until('the service is ready again', async () => (await readiness(stack)).status === 200);
  });

  const post = (name: string, key?: string): Promise<Reply> =>
    alice('POST', CLUSTERS, {
      body: order(name),
      headers: {
        'x-request-id': `request-${name}`,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
    });
  /** Events of the log that a request left, whatever the service says about it. */
  const leftBy = async (name: string): Promise<string[]> =>
    (await readLog(stack))
      .filter(
        (event) =>
          metadataText(event, 'correlationId') === `request-${name}` && event.stream.startsWith('cluster-'),
      )
      .map(({ type }) => type);
  const untilAnswered = async (call: () => Promise<Reply>): Promise<Reply> => {
    let reply: Reply | undefined;
    await until('a success', async () => {
      reply = await call();
      return reply.status === 200;
    });
    return reply as Reply;
  };

  it('refuses connections: 503 with Retry-After, not ready, reads go on; then goes on by itself', async () => {
    await stack.peer.down();
    // What went out on a connection that was ending at that moment may have been stored.
    await until('it says so itself', async () => (await readiness(stack)).failing.includes('event store'));
    const refused = await post('away', '"away"');
    expect(refused.status, refused.text).to.equal(503);
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
    expect(refused.headers.get('x-ledger-reason')).to.equal('STORE_UNAVAILABLE');
    expect(refused.json()).to.include({ code: 14 });
    expect((await readiness(stack)).status).to.equal(503);
    expect((await fetch(`${stack.http()}/healthz`)).status, 'the process itself is well').to.equal(200);
    const read = await alice('GET', `${CLUSTERS}/${existing}`);
    expect(read.status, 'read models need no store').to.equal(200);
    for (const [verb, body] of [
      ['PATCH', { metadata: { labels: { a: 'b' } } }],
      ['DELETE', undefined],
    ] as const) {
      const reply = await alice(verb, `${CLUSTERS}/${existing}`, body === undefined ? {} : { body });
      expect(reply.status, `${verb}: ${reply.text}`).to.equal(503);
    }

    await stack.peer.up();
    expect(await leftBy('away')).to.deep.equal([]);
    await until('the service is ready again', async () => (await readiness(stack)).status === 200);
    await untilAnswered(() => post('away', '"away"'));
    expect((await leftBy('away')).filter((type) => type === 'ClusterOrdered')).to.have.length(1);
    expect((await alice('GET', `${CLUSTERS}/${existing}`)).json()['metadata']).not.to.have.property(
      'deletion_timestamp',
    );
  });

  it('never answers an append: 504 with the command id, settled by the same key', async () => {
    await stack.peer.fault({ on: 'append', stream: 'cluster-', do: { kind: 'never-answer' } });
    const lost = await post('silent', '"silent"');
    expect(lost.status, lost.text).to.equal(504);
    expect(lost.headers.get('x-ledger-reason')).to.equal('OUTCOME_UNKNOWN');
    expect(lost.headers.get('retry-after')).to.equal('1');
    expect(lost.json()).to.include({ code: 4 });
    expect(lost.json()['message']).to.match(/repeat it unchanged with the same Idempotency-Key/);
    expect(commandIdOf(lost)).to.match(/^[0-9a-f-]{36}$/);
    await stack.peer.heal();
    const settled = await untilAnswered(() => post('silent', '"silent"'));
    expect(String(settled.json()['id'])).to.have.length(36);
    expect((await leftBy('silent')).filter((type) => type === 'ClusterOrdered')).to.have.length(1);
  });

  it('stores and never answers: 504 for a call without a key, settled by its command id', async () => {
    const lose = { kind: 'lose-answer' } as const;
    await stack.peer.fault({ on: 'append', event: 'ClusterOrdered', do: lose });
    await stack.peer.fault({ on: 'read', stream: 'cluster-', do: { kind: 'never-answer' } });
    const lost = await post('stored');
    expect(lost.status, lost.text).to.equal(504);
    const commandId = lost.headers.get('x-ledger-command-id') ?? '';
    expect(commandId).to.equal(commandIdOf(lost));
    await stack.peer.heal();
    expect((await leftBy('stored')).filter((type) => type === 'ClusterOrdered')).to.have.length(1);
    const again = { body: order('stored'), headers: { 'x-ledger-command-id': commandId } };
    const settled = await untilAnswered(() => alice('POST', CLUSTERS, again));
    const repeated = await untilAnswered(() => alice('POST', CLUSTERS, again));
    expect(repeated.json()['id']).to.equal(settled.json()['id']);
    const named = (await alice('GET', `${CLUSTERS}?limit=1000`)).json()['items'] as ClusterBody[];
    expect(named.filter(({ metadata }) => metadata.name === 'stored')).to.have.length(1);
    const other = await alice('POST', CLUSTERS, { ...again, body: order('another') });
    expect(other.status, 'the id belongs to that body').to.equal(422);
  });

  // What an order refers to is announced in its stream first (src/app/references/referrals.ts).
  for (const event of ['ReferencesAnnounced', 'ClusterOrdered'])
    it(`loses the answer to ${event} and the connection with it: the same request finds out by itself`, async () => {
      const name = `cut-${event.toLowerCase()}`;
      const cut = { kind: 'lose-answer', cut: true } as const;
      await stack.peer.fault({ on: 'append', event, times: 1, do: cut });
      const reply = await post(name, `"${name}"`);
      expect(reply.status, reply.text).to.equal(200);
      const left = await leftBy(name);
      expect(left.slice(0, 2)).to.deep.equal(['ReferencesAnnounced', 'ClusterOrdered']);
      expect(left.filter((type) => type === 'ClusterOrdered')).to.have.length(1);
    });

  it('is slow, but in time: everything is answered as usual', async () => {
    await stack.peer.fault({ on: 'append', do: { kind: 'late-work', ms: DEADLINE_MS / 30 } });
    const reply = await post('slow', '"slow"');
    expect(reply.status, reply.text).to.equal(200);
  });

  it('cuts subscriptions: read models and orders go on, and nothing was lost on the way', async () => {
    await stack.peer.down();
    await stack.peer.up();
    const reply = await untilAnswered(() => post('resumed', '"resumed"'));
    const client = await stack.client({ tenant: 'acme', user: 'alice' });
    await untilCluster(client, String(reply.json()['id']), isReady);
    await untilCluster(client, existing, isReady);
  });
});

const commandIdOf = (reply: Reply): string => {
  const details = reply.json()['details'] as { metadata?: { command_id?: string } }[];
  return details.find(({ metadata }) => metadata?.command_id !== undefined)?.metadata?.command_id ?? '';
};
