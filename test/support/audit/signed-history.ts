import { createPrivateKey } from 'node:crypto';
import { canonicalText, hashedMetadata, leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import { checkpointText, type Checkpoint } from '../../../src/app/audit/merkle/checkpoint.ts';
import { sha256 } from '../../../src/app/audit/merkle/hashing.ts';
import type { Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { createMemoryTree, type MemoryTree } from '../../../src/app/audit/merkle/memory-tree.ts';
import { signNote, vkeyOf, type NoteSigner } from '../../../src/app/audit/merkle/note.ts';
import {
  standingOf,
  tenantKey,
  tenantLeafHash,
  type TenantHead,
  type TenantStanding,
} from '../../../src/app/audit/merkle/tenants.ts';
import { tenantsTree, type TenantsTree } from './tenants-tree.ts';
import {
  manifestText,
  proofsText,
  type BundleLine,
  type BundleProofs,
  type BundleSink,
  type BundleSource,
  type Shown,
} from '../../../src/app/audit/bundle/format.ts';
import { headProofs, pinProof, pinsBelow, type ProofParts } from '../../../src/app/audit/bundle/proofs.ts';
import { fullLine, lineText, redactedLine, withheldLine } from '../../../src/app/audit/bundle/lines.ts';
import {
  writeBundle as writePages,
  type BundleContent,
  type LinePage,
} from '../../../src/app/audit/bundle/writer.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { splitOf } from '../../../src/app/log/metadata.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';

/** A small history with its trees and a signing key, all from a seed; and bundles of it in memory. */
export const ORIGIN = 'fulfillment-ledger/0190fdc2-bf52-71b8-8c36-977f348f4436';

/** The Ed25519 key of a name: the same in every run. PKCS #8 is a fixed head and the seed. */
export const keyOf = (name: string, origin = ORIGIN): NoteSigner => ({
  name: origin,
  privateKey: createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), sha256(name)]),
    format: 'der',
    type: 'pkcs8',
  }),
});

/** Verifier key of a signer. */
export const vkey = ({ name, privateKey }: NoteSigner): string => vkeyOf(name, privateKey);

const TENANTS = ['acme', 'globex', ''];
const TYPES = ['ClusterOrdered', 'NodeSetResized', 'ClusterReady', 'LeaseActivated'];

/** What every third event hides from tenants, of its data and its metadata. */
const HIDDEN_PATHS = ['/data/hub', '/data/sets/1/image', '/metadata/hub'];

const ENCRYPTED: JsonObject = { alg: 'A256GCM', keyId: 's1.1', nonce: 'bm9uY2U', ct: 'Y3Q', tag: 'dGFn' };

/** `count` events of three tenants; `seed` makes another history with the same tenants. */
export const eventsOf = (count: number, seed = 0): RecordedEvent[] => {
  const revisions = new Map<string, number>();
  return Array.from({ length: count }, (_, n) => {
    const chance = sha256(`${seed} ${n}`);
    const tenant = TENANTS[chance.readUInt8(0) % TENANTS.length] as string;
    const stream = `cluster-${tenant || 'own'}${chance.readUInt8(1) % 3}`;
    const revision = revisions.get(stream) ?? 0;
    revisions.set(stream, revision + 1);
    const at = new Date(Date.UTC(2026, 10, 21, 12, 0, n)).toISOString();
    const isHiding = chance.readUInt8(4) % 3 === 0;
    return {
      position: String(2 * n + 1).padStart(16, '0'),
      stream,
      revision,
      id: chance.toString('hex', 0, 16),
      type: TYPES[chance.readUInt8(2) % TYPES.length] as string,
      data: {
        name: ENCRYPTED,
        size: chance.readUInt8(3),
        note: `n ${n}`,
        10: 'ten',
        9: ['nine', { b: 1, a: null }],
        ...(isHiding && { hub: 'hub-1', sets: [{ size: 1 }, { size: 2, image: `image ${n}` }] }),
      },
      metadata: {
        tenant,
        occurredAt: at,
        actor: { subjectId: 's1' },
        $correlationId: 'c',
        ...(isHiding && { hub: 'hub-1', hidden: { paths: HIDDEN_PATHS, salt: chance.toString('hex', 16) } }),
      },
      recordedAt: at,
    };
  });
};

export type History = {
  readonly signer: NoteSigner;
  readonly events: readonly RecordedEvent[];
  readonly tree: MemoryTree;
  readonly tenantTree: (tenant: string) => MemoryTree;
  readonly tenantsAt: (size: number) => TenantsTree;
  readonly standingAt: (tenant: string, size: number) => TenantStanding;
  readonly checkpointAt: (size: number) => Checkpoint;
  readonly noteAt: (size: number, signer?: NoteSigner) => string;
  readonly trust: Trust;
  /** Main places of a tenant's events. */
  readonly placesOf: (tenant: string) => readonly number[];
  /** Place of an event in the tree of its tenant. */
  readonly tenantIndexOf: (place: number) => number;
};

/** How a tenant is shown its own events: those that hide something, as far as they may be seen. */
export const asTenant: ShowEvent = ({ metadata }) =>
  Object.hasOwn(metadata, 'hidden') ? 'redacted' : 'full';

export const tenantOf = (event: RecordedEvent | undefined): string => stringAt(event?.metadata, 'tenant');

/** `treeOf`: in whose tree the signer puts an event; default: where it belongs. */
export const historyOf = (
  events: readonly RecordedEvent[],
  signer: NoteSigner = keyOf('first'),
  treeOf: (event: RecordedEvent, place: number) => string = tenantOf,
): History => {
  const leaves = events.map((event) => leafHashOf(leafOf(event)));
  const tree = createMemoryTree(leaves);
  const tenants = new Map<string, { places: number[]; tree: MemoryTree }>();
  const tenantIndices: number[] = [];
  for (const [place, event] of events.entries()) {
    const tenant = treeOf(event, place);
    const own = tenants.get(tenant) ?? { places: [], tree: createMemoryTree() };
    tenants.set(tenant, own);
    tenantIndices.push(own.places.length);
    own.places.push(place);
    own.tree.append(leaves[place] as Buffer);
  }
  const placesOf = (tenant: string): readonly number[] => tenants.get(tenant)?.places ?? [];
  const tenantTree = (tenant: string): MemoryTree => tenants.get(tenant)?.tree ?? createMemoryTree();
  const headsAt = (size: number): TenantHead[] =>
    [...tenants]
      .map(([tenant, own]) => {
        const there = own.places.filter((place) => place < size).length;
        return { key: tenantKey(tenant), size: there, root: own.tree.rootAt(there) };
      })
      .filter((head) => head.size > 0);
  const tenantsAt = (size: number): TenantsTree => tenantsTree(headsAt(size));
  const standingAt = (tenant: string, size: number): TenantStanding => {
    const heads = headsAt(size).sort((left, right) => left.key.compare(right.key));
    const { hashAt } = createMemoryTree(heads.map(tenantLeafHash));
    return standingOf(tenant, { count: heads.length, headAt: (n) => heads[n] as TenantHead, hashAt });
  };
  const checkpointAt = (size: number): Checkpoint => {
    const { count, root } = tenantsAt(size);
    return {
      origin: ORIGIN,
      size,
      root: tree.rootAt(size),
      tenants: { count, root },
      position: events[size - 1]?.position ?? '-',
      time: new Date(Date.UTC(2026, 10, 21, 12, 0, size)).toISOString(),
    };
  };
  return {
    signer,
    events,
    tree,
    tenantTree,
    tenantsAt,
    standingAt,
    checkpointAt,
    placesOf,
    tenantIndexOf: (place) => tenantIndices[place] ?? 0,
    noteAt: (size, by = signer) => signNote(checkpointText(checkpointAt(size)), by),
    trust: {
      origin: ORIGIN,
      keys: [{ vkey: vkey(signer), since: '2026-11-21T00:00:00.000Z' }],
    },
  };
};

/** How an event is shown in these bundles: all of them in full, unless said otherwise. */
export type ShowEvent = (event: RecordedEvent, place: number) => Shown;

export const lineOf = (history: History, place: number, shown: Shown = 'full'): BundleLine => {
  const event = history.events[place] as RecordedEvent;
  const at = { index: place, tenantIndex: history.tenantIndexOf(place), record: leafOf(event) };
  if (shown === 'withheld') return withheldLine(at, 'audience');
  if (shown === 'redacted') {
    const part = splitOf({ data: event.data, metadata: hashedMetadata(event.metadata) });
    return redactedLine(at, event, part ?? { ...event, data: { note: event.data['note'] ?? null } });
  }
  return fullLine(at, event, { '/data/name': 'Alice' });
};

export type Ask = {
  readonly tenant?: string;
  readonly from?: number;
  readonly to?: number;
  /** Size of the checkpoint; default: the whole history. */
  readonly at?: number;
  readonly pins?: readonly number[];
  readonly show?: ShowEvent;
  readonly signer?: NoteSigner;
};

/** What a bundle is written of, line by line. */
export type LineContent = Omit<BundleContent, 'proofs' | 'lines' | 'more'> & {
  readonly proofs: BundleProofs;
  readonly lines: Iterable<BundleLine> | AsyncIterable<BundleLine>;
  readonly more?: readonly { readonly name: string; readonly lines: Iterable<string> }[];
};

async function* texts(lines: Iterable<string>): AsyncGenerator<Pick<LinePage, 'text'>> {
  for (const line of lines) yield { text: Buffer.from(line) };
}

/** Hash of the leaf that a line stands for. */
export const lineHash = ({ leaf, hash = '' }: BundleLine): Buffer =>
  leaf === null ? Buffer.from(hash, 'hex') : leafHashOf(leaf);

/** A page for each line. */
async function* pages(lines: LineContent['lines']): AsyncGenerator<LinePage> {
  for await (const line of lines)
    yield {
      text: Buffer.from(`${lineText(line)}\n`),
      hashes: lineHash(line),
      counts: { events: 1, full: 0, redacted: 0, withheld: 0, [line.shown]: 1 },
    };
}

export const writeBundle = ({ proofs, lines, more = [], ...content }: LineContent, sink: BundleSink) =>
  writePages(
    {
      ...content,
      proofs: texts([proofsText(proofs)]),
      lines: pages(lines),
      more: more.map(({ name, lines: each }) => ({
        name,
        lines: texts([...each].map((line) => `${line}\n`)),
      })),
    },
    sink,
  );

export const contentOf = (history: History, ask: Ask = {}): LineContent => {
  const at = ask.at ?? history.events.length;
  const scope =
    ask.tenant === undefined ? { kind: 'log' as const } : { kind: 'tenant' as const, tenant: ask.tenant };
  const places =
    ask.tenant === undefined
      ? history.events.map((_, place) => place)
      : history.placesOf(ask.tenant).filter((place) => place < at);
  const size = ask.tenant === undefined ? at : places.length;
  const range = { from: ask.from ?? 0, to: ask.to ?? size };
  const show = ask.show ?? (() => 'full' as const);
  return {
    scope,
    range,
    checkpoint: history.checkpointAt(at),
    note: ask.signer === undefined ? history.noteAt(at) : history.noteAt(at, ask.signer),
    trust: history.trust,
    hashAt: history.tree.hashAt,
    ...(ask.tenant === undefined ? {} : { tenant: { hashAt: history.tenantTree(ask.tenant).hashAt } }),
    proofs: bundleProofsOf(history, ask, { scope, range, size: at, hashAt: history.tree.hashAt }, size),
    lines: places
      .slice(range.from, range.to)
      .map((place) => lineOf(history, place, show(history.events[place] as RecordedEvent, place))),
    schemas: { ClusterOrdered: { type: 'object' } },
    filter: { tenant: ask.tenant ?? null },
    asOf: { position: history.events[at - 1]?.position ?? '-' },
    createdAt: '2026-11-21T14:00:00.000Z',
    sign: (text) => signNote(text, ask.signer ?? history.signer),
  };
};

const bundleProofsOf = (
  history: History,
  { tenant, pins = [] }: Ask,
  log: ProofParts,
  size: number,
): BundleProofs => {
  const parts: ProofParts =
    tenant === undefined
      ? log
      : {
          ...log,
          tenant: {
            hashAt: history.tenantTree(tenant).hashAt,
            size,
            place: history.tenantsAt(log.size).proofOf(tenant),
          },
        };
  const shown = pinsBelow(log.size, pins).map((pin) =>
    pinProof(pin, parts, tenant === undefined ? undefined : history.standingAt(tenant, pin)),
  );
  return { ...headProofs(parts), pins: shown };
};

/** A bundle in memory: its files by name. */
export type MemoryBundle = Map<string, Buffer>;

export const memorySink = (): { sink: BundleSink; files: MemoryBundle } => {
  const files: MemoryBundle = new Map();
  return {
    files,
    sink: {
      file: (name) => {
        files.set(name, Buffer.alloc(0));
        return Promise.resolve({
          write: (bytes) => {
            files.set(name, Buffer.concat([files.get(name) as Buffer, bytes]));
            return Promise.resolve();
          },
          close: () => Promise.resolve(),
        });
      },
    },
  };
};

/** `chunk`: bytes that come at a time. */
export const memorySource = (files: MemoryBundle, chunk = 64 * 1024): BundleSource => ({
  names: () => Promise.resolve([...files.keys()]),
  read: async function* (name) {
    const bytes = files.get(name);
    if (bytes === undefined) throw new Error(`there is no ${name}`);
    for (let at = 0; at < bytes.length; at += chunk)
      yield await Promise.resolve(bytes.subarray(at, at + chunk));
  },
});

export const bundleOf = async (history: History, ask: Ask = {}): Promise<MemoryBundle> => {
  const { sink, files } = memorySink();
  await writeBundle(contentOf(history, ask), sink);
  return files;
};

/** Changes lines of events.ndjson as JSON, and writes them in canonical form again. */
export const editLines = (files: MemoryBundle, edit: (lines: JsonObject[]) => JsonObject[]): void => {
  const lines = textOf(files, 'events.ndjson')
    .split('\n')
    .slice(0, -1)
    .map((text) => JSON.parse(text) as JsonObject);
  files.set(
    'events.ndjson',
    Buffer.from(
      edit(lines)
        .map((line) => `${canonicalText(line)}\n`)
        .join(''),
    ),
  );
};

export const editJson = (
  files: MemoryBundle,
  name: string,
  edit: (value: JsonObject) => JsonObject,
): void => {
  files.set(
    name,
    Buffer.from(`${JSON.stringify(edit(JSON.parse(textOf(files, name)) as JsonObject), null, 2)}\n`),
  );
};

export const textOf = (files: MemoryBundle, name: string): string => files.get(name)?.toString('utf8') ?? '';

/** As a forger who has the key would: digests and counts of the manifest fit what is there, and are signed. */
export const fitManifest = (files: MemoryBundle, signer: NoteSigner = keyOf('first')): void => {
  editJson(files, 'manifest.json', (manifest) => ({
    ...manifest,
    files: [...files]
      .filter(([name]) => !name.startsWith('manifest.'))
      .map(([name, bytes]) => ({ name, bytes: bytes.length, sha256: sha256(bytes).toString('hex') })),
    counts: countsOf(files),
  }));
  signManifest(files, signer);
};

/** The manifest as it is, signed. */
export const signManifest = (files: MemoryBundle, signer: NoteSigner = keyOf('first')): void => {
  const digest = sha256(files.get('manifest.json') ?? Buffer.alloc(0)).toString('hex');
  files.set('manifest.note', Buffer.from(signNote(manifestText(ORIGIN, digest), signer)));
};

const countsOf = (files: MemoryBundle): JsonObject => {
  const counts = { events: 0, full: 0, redacted: 0, withheld: 0 };
  for (const text of textOf(files, 'events.ndjson').split('\n').slice(0, -1)) {
    counts.events += 1;
    counts[(JSON.parse(text) as { shown: Shown }).shown] += 1;
  }
  return counts;
};
