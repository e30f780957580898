import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { download } from '../../../src/cli/audit/download.ts';
import { checkEventProof } from '../../../src/cli/audit/event-proof.ts';
import { checkpointText } from '../../../src/app/audit/merkle/checkpoint.ts';
import { signRotation, type Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import { createMemoryTree } from '../../../src/app/audit/merkle/memory-tree.ts';
import { signNote } from '../../../src/app/audit/merkle/note.ts';
import { inclusionPath } from '../../../src/app/audit/merkle/proofs.ts';
import { splitOf } from '../../../src/app/log/metadata.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import { eventsOf, keyOf, ORIGIN, vkey } from '../../support/audit/signed-history.ts';

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
    expect(String(stuck)).to.include('broke off; nothing of the file has come');
    expect(await readdir(folder)).to.deep.equal([]);
    const other = { ...of, sha256: '0'.repeat(64) };
    const wrong = await download(breaking(100), '/file', target, other).catch((error: unknown) => error);
    expect(String(wrong)).to.contain('the file is not the one that was exported');
    await download(breaking(100), '/file', target, of);
    expect((await readFile(target)).equals(content)).to.equal(true);
  });
});

describe('a download that cannot be finished', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-download-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const content = Buffer.from('0123456789'.repeat(10));
  const of = { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
  const thrown = (action: Promise<unknown>): Promise<unknown> =>
    action.then(
      () => undefined,
      (error: unknown) => error,
    );
  const whole = {
    bytes: async (_path: string, { range = 'bytes=0-' }: Record<string, string> = {}) => {
      const from = Number(/bytes=(\d+)-/.exec(range)?.[1]);
      return new Response(content.subarray(from), { status: from === 0 ? 200 : 206 });
    },
  };

  it('says how much it has, and keeps it for the next time', async () => {
    const target = join(folder, 'export.tar');
    let sent = false;
    const once = {
      bytes: async () => {
        if (sent) throw new Error('the line is gone');
        sent = true;
        return new Response(content.subarray(0, 30));
      },
    };
    const error = await thrown(download(once, '/file', target, of));
    expect(String(error)).to.include(`the line is gone; ${target}.part keeps the first 30 of 100 bytes`);
    expect(await readdir(folder)).to.deep.equal(['export.tar.part']);
    await download(whole, '/file', target, of);
    expect(await readdir(folder)).to.deep.equal(['export.tar']);
  });

  it('begins anew where what lies there is of another file, or is longer', async () => {
    for (const rest of ['something else', 'x'.repeat(1000)]) {
      const target = join(folder, `export-${rest.length}.tar`);
      await writeFile(`${target}.part`, rest);
      await download(whole, '/file', target, of);
      expect((await readFile(target)).equals(content)).to.equal(true);
    }
  });

  it('asks for the rest of the very file that was begun: of another one it takes all', async () => {
    const target = join(folder, 'export.tar');
    const tags: (string | undefined)[] = [];
    // What lies there is of an export that was made anew since.
    const other = Buffer.from('abcdefghij'.repeat(10));
    const changed = {
      bytes: async (_path: string, { range, 'if-range': tag }: Record<string, string> = {}) => {
        tags.push(tag);
        const isSame = tag === undefined || tag === '"sha256-of another"';
        const from = isSame ? Number(/bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0) : 0;
        return new Response(content.subarray(from), { status: from === 0 ? 200 : 206 });
      },
    };
    await writeFile(`${target}.part`, other.subarray(0, 40));
    await download(changed, '/file', target, of);
    expect((await readFile(target)).equals(content)).to.equal(true);
    expect(tags, 'at once: nothing was fetched twice').to.deep.equal([`"sha256-${of.sha256}"`]);
  });

  it('is not tried again where nothing can be written', async () => {
    const target = join(folder, 'export.tar');
    await mkdir(`${target}.part`);
    let asked = 0;
    const counting = {
      bytes: async () => {
        asked += 1;
        return new Response(content);
      },
    };
    const error = await thrown(download(counting, '/file', target, of));
    expect(String(error)).to.include(`cannot write ${target}.part: it is a directory`);
    expect(asked).to.equal(1);
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

  type Given = Parameters<typeof checkEventProof>[0];
  const problemsOf = async (proof: Given, own: Trust = trust): Promise<readonly string[]> =>
    (await checkEventProof(proof, { trust: own })).findings.map(({ message }) => message);

  it('is right for every event, and for nothing else', async () => {
    for (let index = 0; index < 20; index += 1)
      expect(await checkEventProof(proofOf(index), { trust })).to.deep.include({
        ok: true,
        findings: [],
        proven: 'content',
      });
    const proof = proofOf(7);
    const problems = (changed: object): Promise<readonly string[]> => problemsOf({ ...proof, ...changed });
    const { v, stream, revision, id, type, occurredAt } = proof.leaf;
    const inPart = { v, stream, revision, id, type, occurredAt };
    const { stored: _stored, ...redacted } = { ...proof, leaf: inPart };
    expect(await checkEventProof(redacted, { trust })).to.deep.include({ ok: true, proven: 'hash' });
    for (const leaf_hash of [proofOf(6).leaf_hash, '', 'AAAA'])
      expect(await problemsOf({ ...redacted, leaf_hash })).to.deep.equal([
        'the leaf is not in the tree of the signed head',
      ]);
    expect(await problems({ leaf: inPart })).to.deep.equal(['the shown event does not match its leaf']);
    expect(await problems({ stored: undefined })).to.deep.equal([]);
    expect(await problems({ index: 8 })).to.deep.equal(['the leaf is not in the tree of the signed head']);
    expect(await problems({ path: proof.path.slice(1) })).to.have.length(1);
    expect(await problems({ leaf: { ...proof.leaf, type: 'Other' } })).to.have.length(1);
    expect(await problems({ event: 'cluster-other@0' })).to.deep.equal(['the leaf is of another event']);
    expect(await problems({ stored: { ...proof.stored, data: { a: 1 } } })).to.deep.equal([
      'the shown event does not match its leaf',
    ]);
    expect((await problems({ checkpoint: { note: note.replace('20\n', '21\n') } }))[0]).to.match(
      /^the signed head does not count: /,
    );
  });

  it('is under a head that a key of the auditor signed while it was in force', async () => {
    const proof = proofOf(7);
    const stated = { vkey: vkey(keyOf('next')), since: '2026-11-21T13:00:00.000Z' };
    const replacedAt = (size: number): Trust => {
      const rotation = signRotation(ORIGIN, { ...stated, size }, signer);
      return { ...trust, keys: [...trust.keys, { ...stated, rotation }] };
    };
    expect(await problemsOf(proof, replacedAt(20))).to.deep.equal([]);
    expect(await problemsOf(proof, replacedAt(19))).to.deep.equal([
      'the signed head does not count: it was signed with a key that was replaced at size 19',
    ]);
    const others = { ...trust, keys: [{ vkey: vkey(keyOf('others')), since: '' }] };
    expect((await problemsOf(proof, others))[0]).to.match(/none of the keys that are trusted/);
    const elsewhere = { ...trust, origin: `${ORIGIN}2` };
    expect(await problemsOf(proof, elsewhere)).to.deep.equal([
      `the signed head does not count: it is of ${ORIGIN}, not of ${ORIGIN}2`,
    ]);
    // Neither keys of one's own nor of the service: nothing is proven.
    expect((await checkEventProof(proof, {})).ok).to.equal(false);
    for (const shipped of [trust, { ...trust, pin: 'of the service' }])
      expect(await checkEventProof(proof, { shipped })).to.include({ ok: true, pin: 'none' });
  });

  it('of an event that hides something is right for what its tenant may see, and for that alone', async () => {
    const hiding = events.findIndex(({ metadata }) => Object.hasOwn(metadata, 'hidden'));
    const proof = proofOf(hiding);
    const { data, metadata } = splitOf(proof.stored) ?? proof.stored;
    expect(data).to.not.have.property('hub');
    expect(await checkEventProof({ ...proof, stored: { data, metadata } }, { trust })).to.deep.include({
      findings: [],
      proven: 'part',
    });
    const hidden = objectAt(proof.stored.metadata, 'hidden');
    for (const stored of [
      { data: { ...data, note: 'forged' }, metadata },
      { data, metadata: { ...metadata, tenant: 'globex' } },
      { data: { ...data, hub: 'hub-1' }, metadata },
      { data, metadata: { ...metadata, hidden } },
      { data: { ...proof.stored.data, hub: 'hub-2' }, metadata: proof.stored.metadata },
      {
        ...proof.stored,
        metadata: { ...proof.stored.metadata, hidden: { ...hidden, salt: '0'.repeat(32) } },
      },
    ])
      expect(await problemsOf({ ...proof, stored }), JSON.stringify(stored)).to.deep.equal([
        'the shown event does not match its leaf',
      ]);
  });
});
