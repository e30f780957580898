import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mintToken } from '../../../src/adapters/identity/development-issuer.ts';
import { startService, type ServiceProcess } from '../../../src/cli/demo/service-process.ts';
import { readLog } from '../../support/service/stored-log.ts';
import { createStack, PRIVATE, SERVE, until, untilReady, type Stack } from '../../support/service/stack.ts';

const ROUNDS = 12;
/** Creations and changes that cross one deletion. */
const CROSSING = 4;

/** Two services on one EventStoreDB: what one refers to while the other one deletes it (`src/app/references/referrals.ts`). */
describe('references and deletions of two services on one log', function () {
  this.timeout(180_000);
  let stack: Stack;
  let second: ServiceProcess;
  let directory: string;
  let token: string;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ledger-e2e-second-'));
    stack = await createStack('eventstoredb-peer');
    await stack.start();
    second = await startService({
      command: SERVE,
      environment: {
        ...stack.environment,
        LEDGER_DATA_DIR: directory,
        LEDGER_SECRETS_DIR: join(stack.dataDir, 'secrets'),
        LEDGER_CATALOG: '',
      },
    });
    await untilReady(second);
    token = await mintToken(join(stack.dataDir, 'secrets'), {
      ttlSeconds: 3600,
      now: Date.now(),
      admin: true,
      user: 'root',
    });
  });
  after(async () => {
    await second.stop('SIGKILL');
    await stack.dispose();
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = async (
    at: string,
    method: string,
    path: string,
    { body, key, min }: { body?: object; key?: string; min?: string } = {},
  ): Promise<{ status: number; text: string; position: string }> => {
    const response = await fetch(`${at}${PRIVATE}/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(min === undefined ? {} : { 'x-ledger-min-position': min }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const position = response.headers.get('x-ledger-position') ?? '';
    return { status: response.status, text: await response.text(), position };
  };

  it('never end with an object whose target is gone; whoever is refused is refused again', async () => {
    const [one, two] = [stack.http(), second.http];
    const ways = { deleted: 0, kept: 0 };
    const template = (id: string, hostType: string): object => ({
      id,
      title: 'T',
      node_sets: { workers: { host_type: { id: hostType }, size: 1 } },
    });
    const always = await ask(one, 'POST', 'host_types', { body: { id: 'always', title: 'A' } });
    expect(always.status, always.text).to.equal(200);
    for (let round = 0; round < ROUNDS; round += 1) {
      const target = `crossed-${round}`;
      const changing = `changing_${round}`;
      const made = await ask(one, 'POST', 'host_types', { body: { id: target, title: 'X' } });
      expect(made.status, made.text).to.equal(200);
      const { position, ...first } = await ask(one, 'POST', 'cluster_templates', {
        body: template(changing, 'always'),
      });
      expect(first.status, first.text).to.equal(200);
      // Both know the target; then all comes at once. In the first round the deletion is announced before the others are
      // asked for, in the last one it comes behind them: so each way is gone at least once.
      expect((await ask(two, 'GET', `host_types/${target}`, { min: position })).status).to.equal(200);
      const remove = () => ask(two, 'DELETE', `host_types/${target}`);
      const early = round === 0 ? remove() : undefined;
      if (early !== undefined)
        await until('the deletion announces itself', async () =>
          (await readLog(stack)).some(({ type }) => type === 'DeletionAnnounced'),
        );
      const creations = Array.from({ length: CROSSING }, (_, i) => {
        const key = `round-${round}-${i}`;
        const body = template(`crossing_${round}_${i}`, target);
        return { key, body, reply: ask(one, 'POST', 'cluster_templates', { key, body }) };
      });
      const change = ask(one, 'PATCH', `cluster_templates/${changing}`, {
        body: { node_sets: { workers: { host_type: { id: target }, size: 1 } } },
      });
      if (round === ROUNDS - 1) await Promise.all(creations.map(({ reply }) => reply));
      else await new Promise((resolve) => setTimeout(resolve, round * 2));
      const deletion = await (early ?? remove());
      const changed = await change;
      const last = await ask(one, 'GET', `host_types/${target}`, { min: (await latest()) || position });
      const isGone = last.status === 404;
      expect([200, 400, 409, 503], deletion.text).to.include(deletion.status);
      expect(isGone, `${deletion.status} ${deletion.text}`).to.equal(deletion.status === 200);
      ways[isGone ? 'deleted' : 'kept'] += 1;
      let accepted = 0;
      for (const { key, body, reply } of creations) {
        const { status, text } = await reply;
        if (status === 200) accepted += 1;
        else expect([400, 409, 503], text).to.include(status);
        if (status === 409 || status === 503) continue; // nothing was decided
        const again = await ask(two, 'POST', 'cluster_templates', { key, body });
        expect(again.status, `${text}, then ${again.text}`).to.equal(status);
      }
      if (changed.status === 200) accepted += 1;
      expect(accepted > 0, `${accepted} refer to what is ${isGone ? 'gone' : 'there'}`).to.equal(!isGone);
    }
    expect(ways.deleted, JSON.stringify(ways)).to.be.greaterThan(0);
    expect(ways.kept, JSON.stringify(ways)).to.be.greaterThan(0);
    const types = new Set((await readLog(stack)).map(({ type }) => type));
    expect([...types]).to.include.members(['ReferencesAnnounced', 'DeletionAnnounced']);
  });

  /** Where the log stands, as the next write is told. */
  const latest = async (): Promise<string> => {
    const name = `latest-${crypto.randomUUID()}`;
    const { position } = await ask(second.http, 'POST', 'host_types', { body: { id: name, title: 'L' } });
    return position;
  };
});
