import { expect } from 'chai';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLocalJWKSet, decodeJwt, jwtVerify, SignJWT, type JSONWebKeySet } from 'jose';
import { openConsoleKeyFiles } from '../../../src/adapters/keys/console-keys.ts';
import { SealBroken } from '../../../src/adapters/keys/seal.ts';
import { ConsoleRefused } from '../../../src/app/consoles/console-line.ts';
import { createTickets, type Ticket } from '../../../src/app/consoles/tickets.ts';
import { rejection } from '../../support/eventstoredb-peer/fixture.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';

const KEK = Buffer.alloc(32, 5);
const DAY_MS = 86_400_000;
const START = Date.parse('2026-11-23T09:00:00.000Z');
const TICKET: Ticket = {
  session: 's1',
  kind: 'computeInstance',
  id: 'vm',
  console: 'serial',
  clientId: 'c1',
  subject: 'ann',
  tokenUntil: '2026-11-23T10:00:00.000Z',
  requestId: 'r1',
  actor: { subjectId: 'ann', roles: ['client'], authMethod: 'jwt', via: 'http' },
};
const iso = (ms: number): string => new Date(ms).toISOString();

describe('tickets of consoles', () => {
  const folders = temporaryFolders();
  afterEach(() => folders.clean());
  const openIn = (directory: string, now: () => number, kek = KEK) =>
    openConsoleKeyFiles({ directory: join(directory, 'console'), kek, now });
  const refused = async (opening: Promise<unknown>): Promise<string> => {
    const error = await rejection(opening);
    expect(error).to.be.instanceOf(ConsoleRefused);
    expect(error).to.include({ refusal: 'invalid-ticket' });
    return (error as Error).message;
  };

  it('say what they are for, to every instance of the deployment, for 30 seconds', async () => {
    const directory = folders.make();
    const one = createTickets(await openIn(directory, () => START));
    const two = createTickets(await openIn(directory, () => START));
    const { ticket, expiresAt } = await one.issue(TICKET, iso(START));
    expect(expiresAt).to.equal(iso(START + 30_000));
    expect(await two.verify(ticket, iso(START + 29_000))).to.deep.equal({ ...TICKET, until: expiresAt });
    expect(await refused(two.verify(ticket, iso(START + 33_000)))).to.equal('invalid ticket: it has expired');
    const keys = JSON.parse(await two.keySet()) as JSONWebKeySet;
    await jwtVerify(ticket, createLocalJWKSet(keys), { currentDate: new Date(START) });
  });

  it('are refused when somebody else signed, changed or made them', async () => {
    const tickets = createTickets(await openIn(folders.make(), () => START));
    const foreign = createTickets(await openIn(folders.make(), () => START));
    const { ticket } = await tickets.issue(TICKET, iso(START));
    const [head = '', , signature = ''] = ticket.split('.');
    const claims = { ...decodeJwt(ticket), id: 'other' };
    const changed = [head, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
    const byHmac = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', typ: 'console-ticket+jwt' })
      .sign(Buffer.from(await tickets.keySet()));
    const wrong = [
      (await foreign.issue(TICKET, iso(START))).ticket,
      changed,
      byHmac,
      '',
      'a.b.c',
      'x'.repeat(10_000),
    ];
    for (const text of wrong) await refused(tickets.verify(text, iso(START)));
  });

  it('are signed by a new key after 30 days; the former one is good for as long as its tickets', async () => {
    const directory = folders.make();
    let now = START;
    const keys = await openIn(directory, () => now);
    const tickets = createTickets(keys);
    const old = await keys.current();
    now += 30 * DAY_MS;
    const { ticket } = await tickets.issue(TICKET, iso(now));
    now += 20_000;
    const fresh = await keys.current();
    expect(fresh.kid).not.to.equal(old.kid);
    expect((await tickets.verify(ticket, iso(now))).session).to.equal('s1');
    expect((await keys.all()).map(({ kid }) => kid)).to.deep.equal([fresh.kid, old.kid]);
    now += DAY_MS / 2;
    await keys.current();
    expect((await keys.all()).map(({ kid }) => kid)).to.deep.equal([fresh.kid]);
    expect(readdirSync(join(directory, 'console'))).to.have.length(1);
  });

  it('have keys that only this user reads, and only with the key of the deployment', async () => {
    const directory = folders.make();
    const { kid } = await (await openIn(directory, () => START)).current();
    const file = join(directory, 'console', `${kid}.key`);
    expect(statSync(join(directory, 'console')).mode & 0o777).to.equal(0o700);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(
      await rejection((await openIn(directory, () => START, Buffer.alloc(32, 6))).current()),
    ).to.be.instanceOf(SealBroken);
    const stored = JSON.parse(readFileSync(file, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...stored, since: iso(START + DAY_MS) }));
    expect(await rejection((await openIn(directory, () => START)).current())).to.be.instanceOf(SealBroken);
  });
});
