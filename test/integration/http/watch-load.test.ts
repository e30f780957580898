import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  type Caller,
  type TestService,
  type TestServiceOptions,
} from '../../support/http/service.ts';
import { checkAsync } from '../../support/property.ts';
import { idOf, PRIVATE_WATCH, PUBLIC_WATCH, watch, type Watching } from '../../support/http/watch-client.ts';
import { eventually } from '../../support/eventually.ts';

/** What the original does not survive. */
describe('watch under load', () => {
  let service: TestService;
  let adminToken: string;
  let userToken: string;
  let admin: Caller;
  let user: Caller;
  const open: Watching[] = [];

  const start = async (options: TestServiceOptions = {}): Promise<void> => {
    service = await startTestService({ forgetful: true, ...options });
    adminToken = await service.token({ user: 'root', admin: true });
    admin = callerOf(service, adminToken);
    await seedCatalogue(admin);
    userToken = await service.token({ user: 'alice', tenants: ['t1'] });
    user = callerOf(service, userToken);
  };
  afterEach(async () => {
    for (const one of open.splice(0)) one.close();
    await service.close();
  });

  const watching = async (
    path = PRIVATE_WATCH,
    token: string | undefined = adminToken,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Watching> => {
    const opened = await watch(service, token, path, headers);
    open.push(opened);
    return opened;
  };
  let descriptions = 0;
  /** One event, of an object that everybody sees; as long as asked for. */
  const change = async (characters = 0): Promise<void> => {
    const description = `${(descriptions += 1)} `.padEnd(characters, 'x');
    const reply = await admin('PATCH', `${PRIVATE}/host_types/gpu`, { description });
    expect(reply.status, reply.text).to.equal(200);
  };

  it('a thousand who come and go while writes go on harm nobody', async () => {
    await start();
    const steady = await watching();
    let writes = 0;
    let churning = true;
    const writing = (async () => {
      while (churning) {
        await change();
        writes += 1;
      }
    })();
    const comeAndGo = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1) {
        const guest = await watch(service, adminToken, i % 2 === 0 ? PRIVATE_WATCH : PUBLIC_WATCH);
        expect(guest.status).to.equal(200);
        guest.close();
      }
    };
    await Promise.all(Array.from({ length: 10 }, () => comeAndGo(100)));
    churning = false;
    await writing;
    await change();
    const events = await steady.count(writes + 1);
    expect(events).to.have.length(writes + 1);
    expect(new Set(events.map(idOf)).size).to.equal(writes + 1);
    const newcomer = await watching();
    await change();
    expect(await newcomer.count(1)).to.have.length(1);
    await eventually('the others are gone', () => service.watch.status().watchers <= 2);
    expect(service.watch.status()).to.deep.equal({ watchers: 2, groups: 1, waiting: 0 });
  }).timeout(30_000);

  it('one who stops reading is closed with its last id; all others get everything meanwhile', async () => {
    await start({ watch: { stallMs: 300, sweepMs: 50 } });
    const stopped = await watching();
    const reader = await watching();
    stopped.pause();
    let writes = 0;
    // Network buffers take a few megabytes before the service notices anything.
    while (service.watch.status().watchers === 2 && writes < 2000) {
      await change(60_000);
      writes += 1;
    }
    expect(service.watch.status().watchers, `after ${writes} writes`).to.equal(1);
    await reader.count(writes);
    expect(reader.events()).to.have.length(writes);
    stopped.resume();
    await stopped.ended();
    const told = stopped.lines();
    const error = told.at(-1)?.['error'];
    const sent = stopped.events();
    expect(error?.['code']).to.equal(8);
    expect(error?.['details']).to.have.nested.property('[0].reason', 'WATCH_TOO_SLOW');
    expect(error?.['details']).to.have.nested.property('[0].metadata.last_id', idOf(sent.at(-1)));
    const rest = await watching(`${PRIVATE_WATCH}?from=${idOf(sent.at(-1))}`);
    await rest.count(writes - sent.length);
    expect([...sent, ...rest.events()].map(idOf)).to.deep.equal(reader.events().map(idOf));
  }).timeout(60_000);

  it('property: resumed anywhere while writes go on, the parts together are the whole', async () => {
    await start();
    const whole = await watching(PUBLIC_WATCH, userToken);
    let before = 0;
    await checkAsync(
      fc.asyncProperty(fc.array(fc.nat({ max: 8 }), { minLength: 1, maxLength: 5 }), async (cuts) => {
        const first = await watch(service, userToken, PUBLIC_WATCH);
        const begin = first.headers['x-ledger-watch-id'];
        first.close();
        const total = cuts.reduce((sum, cut) => sum + cut, 0) + 3;
        const writing = Promise.all(
          [0, 1, 2].map(async (w) => {
            for (let i = w; i < total; i += 3)
              await user('POST', `${PUBLIC}/clusters`, {
                metadata: { name: `c${before + i}` },
                spec: { template: { id: 'osac.templates.small' } },
              });
          }),
        );
        const ids: string[] = [];
        let from = String(begin);
        for (const cut of cuts) {
          const part = await watch(
            service,
            userToken,
            `${PUBLIC_WATCH}?from=${from}`,
            cut % 2 === 0 ? {} : { accept: 'text/event-stream' },
          );
          await part.count(cut);
          const seen = part.events().slice(0, cut).map(idOf);
          ids.push(...seen);
          from = seen.at(-1) ?? from;
          part.close();
        }
        const last = await watch(service, userToken, `${PUBLIC_WATCH}?from=${from}`);
        await last.count(total - ids.length);
        ids.push(...last.events().map(idOf));
        last.close();
        await writing;
        const all = await whole.count(before + total);
        expect(ids).to.deep.equal(all.slice(before).map(idOf));
        before += total;
      }),
      { numRuns: 10 },
    );
  }).timeout(30_000);

  it('refuses to resume where changes are no longer kept, and says what to do', async () => {
    let days = 0;
    const now = (): string => new Date(Date.now() + days * 86_400_000).toISOString();
    await start({ store: createMemoryEventStore({ now }), retentionDays: 10 });
    const early = await watching();
    const begin = String(early.headers['x-ledger-watch-id']);
    await change();
    await change();
    const [first, second] = (await early.count(2)).map(idOf);
    days = 11;
    for (let i = 0; i < 10; i += 1) await change();
    for (const from of [begin, first]) {
      const refused = await watching(`${PRIVATE_WATCH}?from=${from}`);
      await refused.ended();
      expect(refused.status).to.equal(410);
      const body = JSON.parse(refused.text());
      expect(body.error.code).to.equal(11);
      expect(body.error.message).to.contain("'from'").and.contain('list');
      expect(body.error.details[0]).to.include({ reason: 'FROM_TOO_OLD' });
      expect(
        (await watching(`${PRIVATE_WATCH}?from=${body.error.details[0].metadata.oldest_id}`)).status,
      ).to.equal(200);
    }
    const kept = await watching(`${PRIVATE_WATCH}?from=${second}`);
    expect(kept.status).to.equal(200);
    expect(await kept.count(10)).to.have.length(10);
  });

  it('ends when the service stops, and says where to resume', async () => {
    const ending = new AbortController();
    await start({ ending: ending.signal });
    const lines = await watching();
    const events = await watching(PRIVATE_WATCH, adminToken, { accept: 'text/event-stream' });
    await change();
    const [event] = await lines.count(1);
    await events.count(1);
    ending.abort();
    await Promise.all([lines.ended(), events.ended()]);
    for (const one of [lines, events])
      expect(one.lines().at(-1)).to.have.nested.property('error.details[0].metadata.last_id', idOf(event));
    const refused = await watching();
    expect(refused.status).to.equal(503);
  });

  it('ends when the token is over, and says so', async () => {
    await start({ watch: { recheckMs: 50 } });
    // Accepted for a second more: clocks may differ by five.
    const seen = await watching(
      PUBLIC_WATCH,
      await service.token({ user: 'alice', tenants: ['t1'], expiresIn: -4 }),
    );
    const other = await watching(PUBLIC_WATCH, userToken);
    expect(seen.status).to.equal(200);
    await seen.ended();
    expect(seen.lines().at(-1)).to.have.nested.property('error.code', 16);
    expect(seen.text()).to.contain('expired').and.contain('last_id');
    await change();
    expect(await other.count(1)).to.have.length(1);
  });

  it('ends when the tenant is gone', async () => {
    await start({ watch: { recheckMs: 50 } });
    await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'leaving' } });
    const seen = await watching(PUBLIC_WATCH, await service.token({ user: 'carol', tenants: ['leaving'] }));
    expect(seen.status).to.equal(200);
    const projects = await admin('GET', `${PRIVATE}/projects?limit=1000`);
    for (const { id, tenant } of ownersIn(projects.text))
      if (tenant === 'leaving') await admin('DELETE', `${PRIVATE}/projects/${id}`);
    expect((await admin('DELETE', `${PRIVATE}/tenants/leaving`)).status).to.equal(200);
    await seen.ended();
    expect(seen.lines().at(-1)).to.have.nested.property('error.code', 3);
    expect(seen.text()).to.contain("doesn't exist");
  });
});

const ownersIn = (text: string): { id: string; tenant: string }[] => {
  const { items = [] } = JSON.parse(text) as { items?: { id: string; metadata: { tenant: string } }[] };
  return items.map(({ id, metadata }) => ({ id, tenant: metadata.tenant }));
};
