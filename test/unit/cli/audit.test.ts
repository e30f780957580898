import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { download, WrongDigest } from '../../../src/cli/audit/download.ts';
import { checkEventProof } from '../../../src/cli/audit/event-proof.ts';
import { checkpointText } from '../../../src/app/audit/merkle/checkpoint.ts';
import { signRotation } from '../../../src/app/audit/merkle/key-chain.ts';
import { leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import { createMemoryTree } from '../../../src/app/audit/merkle/memory-tree.ts';
import { signNote } from '../../../src/app/audit/merkle/note.ts';
import { inclusionPath } from '../../../src/app/audit/merkle/proofs.ts';
import { eventsOf, keyOf, ORIGIN, vkey } from '../../support/audit/signed-history.ts';
import { startCliStub, type CliStub } from '../../support/cli-stub.ts';

const EVENT = {
  id: 'e-1',
  event: 'cluster-a@0',
  type: 'ClusterOrdered',
  tenant: 'acme',
  kind: 'cluster',
  resource_id: 'a',
  outcome: 'accepted',
  recorded_at: '2026-11-21T00:00:00.000Z',
  actor: { subject: 's-1', roles: [], personal: { user_name: 'alice' } },
  data: {},
};

describe('ledgerctl audit', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  beforeEach(() => {
    stub.asked.length = 0;
  });

  it('keeps a trust file that is there: what an auditor trusts is not replaced by what a service says', async () => {
    const trust = { origin: ORIGIN, keys: [{ vkey: vkey(keyOf('one')), since: '' }] };
    stub.answers(() => ({ body: { ...trust } }));
    const folder = await mkdtemp(join(tmpdir(), 'ledger-trust-'));
    try {
      const file = join(folder, 'trust.json');
      expect((await stub.run(['audit', 'trust', '-o', file])).code).to.equal(0);
      await writeFile(file, 'mine');
      const { code, err } = await stub.run(['audit', 'trust', '-o', file]);
      expect(code).to.equal(2);
      expect(err).to.include('is there already').and.include('--update-pin').and.include('--force');
      expect(await readFile(file, 'utf8')).to.equal('mine');
      expect((await stub.run(['audit', 'trust', '-o', file, '--force'])).code).to.equal(0);
      expect(JSON.parse(await readFile(file, 'utf8'))).to.deep.equal(trust);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('lists events over pages, up to a limit', async () => {
    stub.answers(({ query }) =>
      query.get('cursor') === null
        ? { body: { items: [EVENT, EVENT], next_cursor: 'c' } }
        : {
            body: { items: [{ ...EVENT, actor: { subject: 's-1', roles: [], personal: { erased: true } } }] },
          },
    );
    const { out, code, err } = await stub.run([
      'audit',
      'events',
      '--kind',
      'cluster',
      '--id',
      'a',
      '--tenant',
      'acme',
    ]);
    expect([code, err]).to.deep.equal([0, '']);
    expect(out.split('\n').slice(0, 4)).to.deep.equal([
      'RECORDED                  TENANT  WHO           TYPE            ABOUT      OUTCOME   EVENT',
      '2026-11-21T00:00:00.000Z  acme    alice         ClusterOrdered  cluster/a  accepted  cluster-a@0',
      '2026-11-21T00:00:00.000Z  acme    alice         ClusterOrdered  cluster/a  accepted  cluster-a@0',
      '2026-11-21T00:00:00.000Z  acme    s-1 (erased)  ClusterOrdered  cluster/a  accepted  cluster-a@0',
    ]);
    expect(Object.fromEntries(stub.asked[1]?.query ?? [])).to.deep.equal({
      kind: 'cluster',
      id: 'a',
      tenant: 'acme',
      limit: '98',
      cursor: 'c',
    });
    const limited = await stub.run(['audit', 'events', '--limit', '2', '--json']);
    expect(limited.out).to.equal(`${JSON.stringify(EVENT)}\n`.repeat(2));
    expect(limited.err).to.equal('--limit 2 reached; there is more\n');
    stub.answers(() => ({ body: { items: [] } }));
    expect((await stub.run(['audit', 'events'])).err).to.equal('no such events\n');
  });

  it('shows events and objects, and says what changed', async () => {
    stub.answers(() => ({ body: EVENT }));
    expect(JSON.parse(await stub.succeeds(['audit', 'show', 'cluster-a@0']))).to.deep.equal(EVENT);
    await stub.succeeds(['audit', 'show', 'cluster', 'a/b', '--as-of', '2026-11-01T00:00:00Z']);
    expect(stub.calls()).to.deep.equal([
      'GET /api/audit/v1/events/cluster-a%400',
      'GET /api/audit/v1/resources/cluster/a%2Fb',
    ]);
    expect((await stub.run(['audit', 'show', 'e-1', '--as-of', 'x'])).code).to.equal(2);
    const changes = [
      { path: '/spec/size', op: 'replace', before: 1, after: 2 },
      { path: '/metadata/labels', op: 'add', after: { a: 'b' } },
      { path: '/spec/old', op: 'remove', before: null },
    ];
    stub.answers(() => ({ body: { changes } }));
    const text = await stub.succeeds(['audit', 'diff', 'cluster', 'a', '--from', '2026-11-01T00:00:00Z']);
    expect(text).to.equal('~ /spec/size: 1 -> 2\n+ /metadata/labels: {"a":"b"}\n- /spec/old: null\n');
    stub.answers(() => ({ body: { changes: [] } }));
    expect((await stub.run(['audit', 'diff', 'cluster', 'a', '--from', 'x'])).err).to.equal(
      'nothing changed\n',
    );
  });

  it('asks for holds, erasures and grants with a key, and for what it needs to know', async () => {
    stub.answers(() => ({ body: { id: 'h-1', state: 'complete' } }));
    expect(await stub.succeeds(['audit', 'hold', '--tenant', 'acme', '--reason', 'case'])).to.equal('h-1\n');
    expect(stub.asked[0]?.body).to.deep.equal({ scope: { kind: 'tenant', id: 'acme' }, reason: 'case' });
    expect(stub.asked[0]?.headers['idempotency-key']).to.be.a('string');
    expect((await stub.run(['audit', 'hold', '--reason', 'case'])).code).to.equal(2);
    expect((await stub.run(['audit', 'hold', '--all', '--tenant', 'a', '--reason', 'x'])).code).to.equal(2);
    await stub.succeeds(['audit', 'release', 'h-1', '--reason', 'over']);
    expect(stub.asked.at(-1)?.query.get('reason')).to.equal('over');
    const erase = ['audit', 'erase', 's-1', '--tenant', 'acme', '--reason', 'asked'];
    expect((await stub.run(erase)).code).to.equal(2);
    expect(await stub.succeeds([...erase, '--yes'])).to.equal('h-1\n');
    await stub.succeeds(['audit', 'grant', 's-1', '--all', '--reason', 'year']);
    expect(stub.asked.at(-1)?.body).to.deep.equal({ subject: 's-1', tenants: 'all', reason: 'year' });
    expect((await stub.run(['audit', 'grant', 's-1', '--reason', 'year'])).code).to.equal(2);
  });

  it('says why there is no export', async () => {
    const failed = { id: 'x-1', state: 'failed', reason: 'there is no space left for exports' };
    stub.answers(() => ({ status: 202, body: failed }));
    const { code, err } = await stub.run(['audit', 'export', '--tenant', 'acme']);
    expect(code).to.equal(1);
    expect(err).to.equal('ledgerctl: export x-1 is failed: there is no space left for exports\n');
  });
});

describe('the download of an export', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-download-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const content = Buffer.from('0123456789'.repeat(10));
  const of = { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
  /** A service whose answers break off after some bytes, each time. */
  const breaking = (after: number, asked: (string | undefined)[] = []) => ({
    asked,
    bytes: async (_path: string, headers: Record<string, string> = {}) => {
      asked.push(headers['range']);
      const from = Number(/bytes=(\d+)-/.exec(headers['range'] ?? '')?.[1] ?? 0);
      let sent = false;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (sent) {
            if (from + after < content.length) controller.error(new Error('broke off'));
            else controller.close();
            return;
          }
          sent = true;
          controller.enqueue(content.subarray(from, from + after));
        },
      });
      return new Response(body, { status: from === 0 ? 200 : 206 });
    },
  });

  it('goes on where it broke off, in the same run and in the next', async () => {
    const target = join(folder, 'export.tar');
    const service = breaking(30);
    await writeFile(`${target}.part`, content.subarray(0, 20));
    await download(service, '/file', target, of);
    expect((await readFile(target)).equals(content)).to.equal(true);
    expect(service.asked).to.deep.equal(['bytes=20-', 'bytes=50-', 'bytes=80-']);
  });

  it('gives up when it comes no further, and keeps nothing that is wrong', async () => {
    const target = join(folder, 'export.tar');
    const stuck = await download(breaking(0), '/file', target, of).catch((error: unknown) => error);
    expect(String(stuck)).to.include('broke off');
    const other = { ...of, sha256: '0'.repeat(64) };
    const wrong = await download(breaking(100), '/file', target, other).catch((error: unknown) => error);
    expect(wrong).to.be.instanceOf(WrongDigest);
    await download(breaking(100), '/file', target, of);
    expect((await readFile(target)).equals(content)).to.equal(true);
  });
});

describe('the proof of one event', () => {
  const events = eventsOf(20);
  const tree = createMemoryTree(events.map((event) => leafHashOf(leafOf(event))));
  const signer = keyOf('proof');
  const trust = { origin: ORIGIN, keys: [{ vkey: vkey(signer), since: '2026-11-21T00:00:00.000Z' }] };
  const note = signNote(
    checkpointText({
      origin: ORIGIN,
      size: 20,
      root: tree.rootAt(20),
      tenants: { count: 1, root: tree.rootAt(1) },
      position: '0000000000000040',
      time: '2026-11-21T12:00:00.000Z',
    }),
    signer,
  );
  const proofOf = (index: number) => {
    const event = events[index] as (typeof events)[number];
    const { $correlationId: _left, ...metadata } = event.metadata;
    return {
      event: `${event.stream}@${event.revision}`,
      leaf: leafOf(event),
      leaf_hash: leafHashOf(leafOf(event)).toString('base64'),
      index,
      path: inclusionPath(index, 20, tree.hashAt).map((hash) => hash.toString('base64')),
      checkpoint: { note },
      stored: { data: event.data, metadata },
    };
  };

  it('is right for every event, and for nothing else', () => {
    for (let index = 0; index < 20; index += 1)
      expect(checkEventProof(proofOf(index), trust)).to.deep.include({
        problems: [],
        size: 20,
        proven: 'content',
      });
    const proof = proofOf(7);
    const problems = (changed: object): readonly string[] =>
      checkEventProof({ ...proof, ...changed }, trust).problems;
    const { data: _data, metadata: _metadata, ...inPart } = proof.leaf;
    const { stored: _stored, ...redacted } = { ...proof, leaf: inPart };
    expect(checkEventProof(redacted, trust)).to.deep.include({ problems: [], proven: 'hash' });
    for (const leaf_hash of [proofOf(6).leaf_hash, '', 'AAAA'])
      expect(checkEventProof({ ...redacted, leaf_hash }, trust).problems).to.deep.equal([
        'the leaf is not in the tree of the signed head',
      ]);
    expect(problems({ leaf: inPart })).to.deep.equal(['what is shown is not what the leaf was made of']);
    expect(problems({ stored: undefined })).to.deep.equal([]);
    expect(problems({ index: 8 })).to.deep.equal(['the leaf is not in the tree of the signed head']);
    expect(problems({ path: proof.path.slice(1) })).to.have.length(1);
    expect(problems({ leaf: { ...proof.leaf, type: 'Other' } })).to.have.length(1);
    expect(problems({ event: 'cluster-other@0' })).to.deep.equal(['the leaf is of another event']);
    expect(problems({ stored: { ...proof.stored, data: { a: 1 } } })).to.deep.equal([
      'what is shown is not what the leaf was made of',
    ]);
    expect(problems({ checkpoint: { note: note.replace('20\n', '21\n') } })[0]).to.match(
      /^the head is not signed/,
    );
    const stated = { vkey: vkey(keyOf('next')), since: '2026-11-21T13:00:00.000Z' };
    const replacedAt = (size: number) => {
      const rotation = signRotation(ORIGIN, { ...stated, size }, signer);
      return { ...trust, keys: [...trust.keys, { ...stated, rotation }] };
    };
    expect(checkEventProof(proof, replacedAt(20)).problems).to.deep.equal([]);
    expect(checkEventProof(proof, replacedAt(19)).problems).to.deep.equal([
      'the head does not count: it was signed with a key that was replaced at size 19',
    ]);
    const others = { ...trust, keys: [{ vkey: vkey(keyOf('others')), since: '' }] };
    expect(checkEventProof(proof, others).problems[0]).to.match(/none of the keys that are trusted/);
  });
});
