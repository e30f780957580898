import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { directorySink, tarOf } from '../../../src/adapters/audit/bundle-files.ts';
import { createLineThreads } from '../../../src/adapters/audit/line-threads.ts';
import { writeBundle } from '../../../src/app/audit/bundle/writer.ts';
import { contentOf, type ExportSource } from '../../../src/app/audit/exports/content.ts';
import { checkpointText, originOf } from '../../../src/app/audit/merkle/checkpoint.ts';
import { rootAt } from '../../../src/app/audit/merkle/compact-range.ts';
import { signNote, vkeyOf } from '../../../src/app/audit/merkle/note.ts';
import { createTenantHeads } from '../../../src/app/audit/tenant-heads.ts';
import type { TreeHead } from '../../../src/app/audit/tree-heads.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { eventTypes, registry } from '../../../src/domain/registry.ts';
import type { AuditReader } from '../../../src/projections/audit/audit-reader.ts';

/** Milliseconds of the thread until others get it, as the service does it. */
const SLICE_MS = 5;
const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const run = promisify(execFile);
/** As `src/main.ts` is started. */
const LEDGERCTL_FLAGS = ['--max-semi-space-size=8'];

/** Exports the whole log, which lies in `folder`, as for the provider and verifies it in a process of its own, as a directory and as a tar. */
export const measureBundle = async (
  store: EventStore,
  tree: AuditReader,
  folder: string,
  note: (name: string, value: number) => void,
): Promise<void> => {
  const directory = mkdtempSync(join(folder, 'bundle-'));
  const { head, source } = await sourceOf(store, tree, folder);
  const started = performance.now();
  const before = process.threadCpuUsage();
  const content = await contentOf(
    { format: 'native', audience: 'provider', filter: {} },
    { head, pins: [], at: head.at },
    source,
    { line: slices(), signal: new AbortController().signal },
  );
  await writeBundle(content, directorySink(directory));
  note('export of the whole log: events/s', (head.size / (performance.now() - started)) * 1000);
  const { user, system } = process.threadCpuUsage(before);
  note('export: processor µs of the HTTP thread per event', (user + system) / head.size);
  note('export: bytes/event', statSync(join(directory, 'events.ndjson')).size / head.size);
  const tar = `${directory}.tar`;
  await pipeline(await tarOf(directory), createWriteStream(tar));
  for (const [what, path] of [
    ['directory', directory],
    ['tar', tar],
  ] as const) {
    const { stdout } = await run(process.execPath, [
      ...LEDGERCTL_FLAGS,
      join(import.meta.dirname, 'verify-bundle.ts'),
      path,
    ]);
    const report = JSON.parse(stdout) as {
      ok: boolean;
      events: number;
      ms: number;
      processorMs: number;
      peakMb: number;
    };
    if (!report.ok || report.events !== head.size) throw new Error(`the export is not right: ${stdout}`);
    note(`verifying the export (${what}): s per million events`, (report.ms * 1000) / report.events);
    note(
      `verifying the export (${what}): processor s per million`,
      (report.processorMs * 1000) / report.events,
    );
    note(`verifying the export (${what}): peak MB`, report.peakMb);
  }
  rmSync(directory, { recursive: true });
  rmSync(tar);
};

/** What the service makes exports of, with a head over everything. */
const sourceOf = async (
  store: EventStore,
  tree: AuditReader,
  folder: string,
): Promise<{ readonly head: TreeHead; readonly source: ExportSource }> => {
  const { head, origin, key } = await signedHead(store, tree);
  const source: ExportSource = {
    store,
    tree,
    proofs: {
      trust: async () => ({ origin, keys: [{ vkey: key.vkey, since: head.at }] }),
    },
    words: {
      codec: createEventCodec(eventTypes),
      registry,
      open: (values) => values.map(() => undefined),
    },
    schemas: async () => ({}),
    productVersion: 'bench',
    keys: { current: async () => key },
    makePages: createLineThreads({
      module: new URL('../../../src/composition/export-lines-module.ts', import.meta.url).href,
      config: {
        log: { kind: 'sqlite', dataDir: folder },
        subjectKeys: { directory: join(folder, 'subjects'), kek: Buffer.alloc(32).toString('base64') },
      },
      tree: tree.source,
    }),
  };
  return { head, source };
};

/** Lets others have the thread every few milliseconds, as the service does it. */
const slices = (): (() => Promise<void>) => {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < SLICE_MS) return;
    await rest();
    since = performance.now();
  };
};

/** Pins of an export that shows many: as many as signed heads of an hour and a half. */
const PINS = 512;

/** Exports a tenant's last event with a proof for each of so many pins: nearly all of it is proofs. */
export const measurePins = async (
  store: EventStore,
  tree: AuditReader,
  folder: string,
  note: (name: string, value: number) => void,
): Promise<void> => {
  const directory = mkdtempSync(join(folder, 'pins-'));
  const { head, source } = await sourceOf(store, tree, folder);
  const tenant = 'tenant-3';
  const last = tree.tenantTree(tenant).size() - 1;
  const from = tree.leaves(tree.tenantTree(tenant).mainIndexOf(last) ?? 0, 1)[0]?.recordedAt ?? head.at;
  const pins = Array.from({ length: PINS }, (_, n) => Math.floor((head.size * (n + 1)) / (PINS + 1)));
  const started = performance.now();
  const turns = watchTurns();
  const content = await contentOf(
    { format: 'native', audience: 'provider', filter: {}, tenant, from, pins },
    { head, pins: [], at: head.at },
    source,
    { line: slices(), signal: new AbortController().signal },
  );
  await writeBundle(content, directorySink(directory));
  const { longestMs, processorMs } = turns.end();
  note(`export with ${PINS} pins: s`, (performance.now() - started) / 1000);
  note(`export with ${PINS} pins: processor ms of the HTTP thread`, processorMs);
  note(`export with ${PINS} pins: longest turn of the HTTP thread, processor ms`, longestMs);
  note(`export with ${PINS} pins: bytes of proofs`, statSync(join(directory, 'proofs.json')).size);
  rmSync(directory, { recursive: true });
};

/** Processor time of this thread, and the most of it in one turn. */
const watchTurns = () => {
  const begin = process.threadCpuUsage();
  let used = begin;
  let longestMs = 0;
  const looking = setInterval(() => {
    longestMs = Math.max(longestMs, spent(used));
    used = process.threadCpuUsage();
  }, 1);
  return {
    end: () => {
      clearInterval(looking);
      return { longestMs: Math.max(longestMs, spent(used)), processorMs: spent(begin) };
    },
  };
};
const spent = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.threadCpuUsage(since);
  return (user + system) / 1000;
};

/** A head of all leaves, signed by a key that is made for it. */
const signedHead = async (store: EventStore, tree: AuditTree) => {
  const origin = originOf(store.storeId);
  const { privateKey } = generateKeyPairSync('ed25519');
  const tenants = createTenantHeads(tree, rest);
  const size = tree.size();
  await tenants.advance(size);
  const [root, tenantsRoot] = [rootAt(size, tree.hashAt), await tenants.root()];
  const position = tree.leaf(size - 1)?.position ?? '-';
  // Behind every event: the store wrote them by the same clock.
  const at = new Date().toISOString();
  const checkpoint = {
    origin,
    size,
    root,
    tenants: { count: tenants.count(), root: tenantsRoot },
    position,
    time: at,
  };
  const head: TreeHead = {
    at,
    size,
    position,
    root: root.toString('base64'),
    tenantsRoot: tenantsRoot.toString('base64'),
    tenants: tenants.count(),
    note: signNote(checkpointText(checkpoint), { name: origin, privateKey }),
    keyId: '',
    revision: 0,
  };
  return { head, origin, key: { vkey: vkeyOf(origin, privateKey), keyId: '', privateKey } };
};
