import { expect } from 'chai';
import { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openAuditKeyFiles } from '../../../src/adapters/keys/audit-keys.ts';
import { SealBroken } from '../../../src/adapters/keys/seal.ts';
import { UnsafePermissions } from '../../../src/adapters/keys/private-files.ts';
import { systemClock, systemIds } from '../../../src/adapters/system/system-ports.ts';
import { AuditKeyMissing, createAuditKeys } from '../../../src/app/audit/audit-keys.ts';
import { keyChain } from '../../../src/app/audit/merkle/key-chain.ts';
import { signNote, verifyNote } from '../../../src/app/audit/merkle/note.ts';
import { rejection } from '../../support/eventstoredb-peer/fixture.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';

const ORIGIN = 'fulfillment-ledger/a-store';
const KEK = Buffer.alloc(32, 5);

describe('files of audit keys', () => {
  const folders = temporaryFolders();
  afterEach(() => folders.clean());
  const openIn = (directory: string, kek = KEK) =>
    openAuditKeyFiles({ directory: join(directory, 'audit'), kek, origin: ORIGIN });
  const fileIn = (directory: string): string => {
    const [name = ''] = readdirSync(join(directory, 'audit'));
    return join(directory, 'audit', name);
  };

  it('hold a key that signs, for this user only, and open with the key of the deployment only', async () => {
    const directory = folders.make();
    const files = await openIn(directory);
    const { vkey } = await files.create();
    const privateKey = await (await openIn(directory)).find(vkey);
    if (privateKey === undefined) throw new Error('the key is not there');
    const note = signNote('text\n', { name: ORIGIN, privateKey });
    expect(verifyNote(note, [vkey]).signers).to.deep.equal([vkey]);
    expect(statSync(join(directory, 'audit')).mode & 0o777).to.equal(0o700);
    expect(statSync(fileIn(directory)).mode & 0o777).to.equal(0o600);
    const other = await openIn(directory, Buffer.alloc(32, 6));
    expect(await rejection(other.find(vkey))).to.be.instanceOf(SealBroken);
  });

  it('are refused when others may read them, or when they were changed', async () => {
    const directory = folders.make();
    const files = await openIn(directory);
    const { vkey } = await files.create();
    const path = fileIn(directory);
    chmodSync(path, 0o644);
    expect(await rejection(files.find(vkey))).to.be.instanceOf(UnsafePermissions);
    chmodSync(path, 0o600);
    const stored = JSON.parse(readFileSync(path, 'utf8')) as { ct: string };
    const changed = { ...stored, ct: `${stored.ct.startsWith('A') ? 'B' : 'A'}${stored.ct.slice(1)}` };
    writeFileSync(path, JSON.stringify(changed));
    expect(await rejection(files.find(vkey))).to.be.instanceOf(SealBroken);
  });

  it('are gone when they were destroyed, and the log then refuses any other key', async () => {
    const directory = folders.make();
    const files = await openIn(directory);
    const store = createMemoryEventStore();
    const keys = createAuditKeys({
      store,
      files,
      origin: ORIGIN,
      clock: systemClock(),
      ids: systemIds(),
      instance: 'one',
    });
    const { vkey } = await keys.current();
    await files.destroy(vkey);
    expect(readdirSync(join(directory, 'audit'))).to.deep.equal([]);
    expect(await files.find(vkey)).to.equal(undefined);
    expect(await rejection(keys.current())).to.be.instanceOf(AuditKeyMissing);
    expect(await rejection(keys.rotate())).to.be.instanceOf(AuditKeyMissing);
    expect(readdirSync(join(directory, 'audit'))).to.deep.equal([]);
    expect(await keys.chain()).to.have.length(1);
    const next = await keys.rotate({ lost: true });
    expect(next).not.to.have.property('rotation');
    expect((await keys.current()).vkey).to.equal(next.vkey);
    const { problems } = keyChain(ORIGIN, await keys.chain());
    expect(problems).to.deep.equal(['key 2 of the chain came without a note of the key before it']);
    expect(await keys.rotate({ lost: true }), 'a key that is there announces the next one').to.have.property(
      'rotation',
    );
  });
});
