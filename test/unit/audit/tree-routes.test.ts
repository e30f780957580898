import { expect } from 'chai';
import { AuditKeyMissing, AuditKeyReplaced } from '../../../src/app/audit/audit-keys.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { auditTreeRoutes, type AuditTreeServices } from '../../../src/http/ledger/routes.ts';
import type { LedgerCall } from '../../../src/http/ledger/serve.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const KEY = {
  vkey: 'fulfillment-ledger/s+00000001+AQ==',
  since: '2026-01-01T00:00:00.000Z',
  rotation: 'note',
};

const auditing = (more: object = {}): NonNullable<AuditTreeServices['auditing']> => ({
  origin: 'fulfillment-ledger/s',
  keys: { chain: async () => [KEY], rotate: async () => KEY },
  status: () => ({ state: 'signing', failures: 0 }),
  progress: async () => ({ signedSize: 7, unsignedLeaves: 2, headAgeSeconds: 3, caughtUp: true }),
  ...more,
});
/** With what was recorded. */
const acts: object[] = [];
const withTree = (auditor?: AuditTreeServices['auditing']): AuditTreeServices => ({
  recordAct: async (_call, act) => void acts.push(act),
  ...(auditor === undefined ? {} : { auditing: auditor }),
});
const ask = async (services: AuditTreeServices, path: string, body: object = {}): Promise<unknown> => {
  const route = auditTreeRoutes(services).find((one) => one.path === path);
  const answer = await route?.handler({ body } as unknown as LedgerCall);
  return answer !== undefined && 'json' in answer ? answer.json : undefined;
};
const refusal = async (services: AuditTreeServices, path: string): Promise<string> => {
  try {
    await ask(services, path);
  } catch (error) {
    if (error instanceof ApiError) return `${error.name} ${error.message}`;
    throw error;
  }
  throw new Error('nothing was refused');
};

describe('routes of the tree over the log', () => {
  it('say how far it is signed and with which keys', async () => {
    expect(await ask(withTree(auditing()), 'audit/tree')).to.deep.equal({
      origin: 'fulfillment-ledger/s',
      state: 'signing',
      failures: 0,
      signed_size: 7,
      unsigned_leaves: 2,
      head_age_seconds: 3,
      caught_up: true,
      keys: [{ vkey: KEY.vkey, since: KEY.since }],
    });
    const status = () => ({ state: 'mismatch', failures: 1, error: 'the tree at size 5 …' });
    expect(await ask(withTree(auditing({ status })), 'audit/tree')).to.include({
      state: 'mismatch',
      error: 'the tree at size 5 …',
    });
  });

  it('replace the key, and say why not', async () => {
    const { vkey, since } = KEY;
    expect(await ask(withTree(auditing()), 'audit/keys')).to.deep.equal({ vkey, since, announced: true });
    const begun = { keys: { rotate: async () => ({ vkey, since }) } };
    expect(await ask(withTree(auditing(begun)), 'audit/keys', { lost: true })).to.include({
      announced: false,
    });
    const asked: unknown[] = [];
    const rotate = async (how: unknown) => (asked.push(how), KEY);
    acts.length = 0;
    await ask(withTree(auditing({ keys: { rotate } })), 'audit/keys', { lost: true });
    expect(acts).to.deep.equal([{ act: 'audit/keys', on: 'lost' }]);
    expect(asked).to.deep.equal([{ lost: true }]);
    const failing = (error: Error): AuditTreeServices =>
      withTree(auditing({ keys: { chain: async () => [], rotate: () => Promise.reject(error) } }));
    expect(await refusal(failing(new AuditKeyReplaced()), 'audit/keys')).to.match(/by somebody else/);
    expect(await refusal(failing(new AuditKeyMissing('1a', '/secrets')), 'audit/keys')).to.match(/backup/);
  });

  it('are refused where there is no tree', async () => {
    for (const path of ['audit/tree', 'audit/keys'])
      expect(await refusal(withTree(), path)).to.match(/does not have the role auditor/);
  });
});

describe('ledgerctl audit tree and rotate-key', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  const tree = (more: object = {}) => ({
    origin: 'fulfillment-ledger/s',
    state: 'signing',
    signed_size: 7,
    unsigned_leaves: 2,
    head_age_seconds: 3,
    caught_up: true,
    keys: [KEY],
    ...more,
  });

  it('tell how far the heads are', async () => {
    stub.answers(() => ({ body: tree() }));
    const { code, out } = await stub.run(['audit', 'tree']);
    expect(code).to.equal(0);
    expect(out).to.equal(
      'fulfillment-ledger/s: signing\nsigned: 7 events, 3.0 s ago; not signed yet: 2\n' +
        `key ${KEY.vkey} since ${KEY.since}, signs\n`,
    );
  });

  it('tell that an instance which has not read all of the log does not know what is unsigned', async () => {
    stub.answers(() => ({ body: tree({ state: 'catching-up', unsigned_leaves: 0, caught_up: false }) }));
    expect((await stub.run(['audit', 'tree'])).out).to.include(
      'fulfillment-ledger/s: catching-up\nsigned: 7 events, 3.0 s ago; not signed yet: at least 0 ' +
        '(this instance has not read all of the log)\n',
    );
    stub.answers(() => ({ body: tree({ caught_up: true }) }));
    expect((await stub.run(['audit', 'tree'])).out).to.include('not signed yet: 2\n');
  });

  it('tell which of several keys signs', async () => {
    const next = { vkey: 'fulfillment-ledger/s+00000002+AQ==', since: '2026-02-01T00:00:00.000Z' };
    stub.answers(() => ({ body: tree({ keys: [KEY, next] }) }));
    expect((await stub.run(['audit', 'tree'])).out).to.include(
      `key ${KEY.vkey} since ${KEY.since}, replaced\nkey ${next.vkey} since ${next.since}, signs\n`,
    );
  });

  it('end with 1 when the tree is not what was signed', async () => {
    stub.answers(() => ({ body: tree({ state: 'mismatch', error: 'the tree at size 5' }) }));
    const { code, err } = await stub.run(['audit', 'tree']);
    expect([code, err]).to.deep.equal([1, 'ledgerctl: the tree at size 5\n']);
  });

  it('print the new key', async () => {
    const { vkey, since } = KEY;
    stub.answers(() => ({ body: { vkey, since, announced: true } }));
    const rotated = await stub.run(['audit', 'rotate-key', '--yes']);
    expect(rotated).to.include({ code: 0, out: `${KEY.vkey}\n` });
    expect(rotated.err).to.match(/auditors need to do nothing: the old key announces the new one/);
    // The one that was called lost was there: it has announced the new one.
    const found = await stub.run(['audit', 'rotate-key', '--lost', '--yes']);
    expect(found.err).to.equal(rotated.err);
    stub.answers(() => ({ body: { vkey, since, announced: false } }));
    const lost = await stub.run(['audit', 'rotate-key', '--lost', '--yes']);
    expect(lost.code).to.equal(0);
    expect(lost.err).to.match(/auditors refuse it until .* tell them this key by another way/);
    expect(stub.asked.at(-1)?.body).to.deep.equal({ lost: true });
  });

  it('replace no key unless somebody is sure', async () => {
    const before = stub.asked.length;
    const { code, err } = await stub.run(['audit', 'rotate-key']);
    expect([code, stub.asked.length]).to.deep.equal([2, before]);
    expect(err).to.include('--yes');
  });
});
