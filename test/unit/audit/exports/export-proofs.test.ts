import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../../src/adapters/event-store/memory/memory-event-store.ts';
import { proofsSchema, type BundleProofs } from '../../../../src/app/audit/bundle/format.ts';
import { exportProofs, type ProofsAsked } from '../../../../src/app/audit/exports/export-proofs.ts';
import { fromBase64 } from '../../../../src/app/audit/merkle/base64.ts';
import { rootAt, rootOf } from '../../../../src/app/audit/merkle/compact-range.ts';
import { leafHashOf } from '../../../../src/app/audit/merkle/leaf.ts';
import { verifyConsistency } from '../../../../src/app/audit/merkle/proofs.ts';
import {
  tenantKey,
  verifyAbsence,
  verifyPlace,
  type TenantHead,
} from '../../../../src/app/audit/merkle/tenants.ts';
import { tenantsTree } from '../../../support/audit/tenants-tree.ts';
import type { AuditTree } from '../../../../src/app/audit/tree.ts';
import type { AuditReader } from '../../../../src/projections/audit/audit-reader.ts';
import { audit, followed, openAuditView } from '../../../support/audit/open-audit.ts';
import { createHistoryWriter, histories, TENANTS, type Step } from '../../../support/audit/random-history.ts';
import { checkAsync } from '../../../support/property.ts';

const withHistory = async <T>(
  steps: readonly Step[],
  use: (reader: AuditReader) => Promise<T>,
): Promise<T> => {
  const store = createMemoryEventStore();
  const models = await openAuditView(store);
  try {
    await createHistoryWriter(store, 'p')(steps);
    await followed(models, store);
    return await use(audit(models));
  } finally {
    await models.close();
    await store.close();
  }
};

const made = async (
  asked: Omit<ProofsAsked, 'of'>,
  tree: AuditTree,
  line: () => Promise<void> = () => Promise.resolve(),
): Promise<BundleProofs> => {
  const texts: string[] = [];
  for await (const { text } of exportProofs({ of: 'proofs', ...asked }, { tree }, { line }))
    texts.push(Buffer.from(text).toString());
  return proofsSchema.parse(JSON.parse(texts.join('')));
};

const hash = (text = ''): Buffer => fromBase64(text) ?? Buffer.alloc(0);
const hashes = (texts: readonly string[] = []): Buffer[] => texts.map(hash);

/** Trees of all tenants when the log had so many leaves, from the leaves themselves. */
const headsAt = (reader: AuditReader, size: number): TenantHead[] => {
  const leaves = Array.from({ length: size }, (_, index) => reader.leaf(index)).filter(
    (leaf) => leaf !== undefined,
  );
  return [...Map.groupBy(leaves, ({ tenant }) => tenant)].map(([tenant, own]) => ({
    key: tenantKey(tenant),
    size: own.length,
    root: rootOf(own.map(({ record }) => leafHashOf(record))),
  }));
};

/** Checks one pin against roots that come from the leaves. */
const checkPin = (
  pin: BundleProofs['pins'][number],
  reader: AuditReader,
  { size, tenant }: { readonly size: number; readonly tenant: string },
): void => {
  const log = { fromRoot: rootAt(pin.size, reader.hashAt), toRoot: rootAt(size, reader.hashAt) };
  expect(verifyConsistency({ from: pin.size, to: size, ...log, path: hashes(pin.path) })).to.equal(true);
  const heads = headsAt(reader, pin.size);
  const { count, root } = tenantsTree(heads);
  const there = heads.find(({ key }) => key.equals(tenantKey(tenant)));
  if (there === undefined) {
    const between = (pin.between ?? []).map((place) => ({
      head: { key: hash(place.key), size: place.size, root: hash(place.root) },
      index: place.index,
      path: hashes(place.path),
    }));
    expect(pin.tenant).to.equal(undefined);
    expect(verifyAbsence(tenant, between, { count, root })).to.equal(true);
    return;
  }
  const place = { head: there, index: pin.tenant?.index ?? -1, path: hashes(pin.tenant?.path) };
  expect([pin.tenant?.size, pin.tenant?.root]).to.deep.equal([there.size, there.root.toString('base64')]);
  expect(verifyPlace(place, { count, root })).to.equal(true);
  const now = headsAt(reader, size).find(({ key }) => key.equals(there.key));
  if (now === undefined) throw new Error('the tenant has lost its events');
  const own = { fromRoot: there.root, toRoot: now.root, path: hashes(pin.tenant?.consistency) };
  expect(verifyConsistency({ from: there.size, to: now.size, ...own })).to.equal(true);
};

describe('the proofs of an export', () => {
  it('show for every pin that log and tenant are continued, or that the tenant had no events', () =>
    checkAsync(
      fc.asyncProperty(histories(30), fc.constantFrom(...TENANTS), fc.nat(), (steps, tenant, cut) =>
        withHistory(steps, async (reader) => {
          const size = reader.size() - (cut % 3);
          const own = reader.tenantTree(tenant).indexBelow(Math.max(0, size));
          if (own === 0) return;
          const pins = Array.from({ length: size + 2 }, (_, n) => n).toReversed();
          const scope = { kind: 'tenant', tenant } as const;
          const asked = { scope, range: { from: 0, to: own }, size, pins: [...pins, 1, 1] };
          const proofs = await made({ ...asked, audience: 'provider' }, reader);
          expect(proofs.pins.map((pin) => pin.size)).to.deep.equal(pins.slice(2, -1));
          for (const pin of proofs.pins) checkPin(pin, reader, { size, tenant });
          const theirs = await made({ ...asked, audience: 'tenant' }, reader);
          expect(theirs.pins, 'to a tenant nothing is shown of others').to.deep.equal(
            proofs.pins.map(({ between: _others, ...pin }) => pin),
          );
        }),
      ),
      { numRuns: 20 },
    ));

  it('are computed in small pieces, with rests between them, for 512 pins and 500 tenants, too', async function () {
    this.timeout(60_000);
    const [TENANT_COUNT, EACH, PINS] = [500, 4, 512];
    const steps = Array.from({ length: TENANT_COUNT * EACH }, (_, n) => ({
      stream: `cluster-c${n}`,
      tenant: `t${(n * 7) % TENANT_COUNT}`,
      subject: 'alice',
      types: ['ClusterLabelled'],
      data: { n },
    }));
    await withHistory(steps, async (reader) => {
      let [nodes, roots, mostNodes, mostRoots, rests] = [0, 0, 0, 0, 0];
      const counted: AuditTree = {
        ...reader,
        hashAt: (level, index) => {
          nodes += 1;
          return reader.hashAt(level, index);
        },
        tenantTree: (tenant) => {
          roots += 1;
          return reader.tenantTree(tenant);
        },
      };
      const line = (): Promise<void> => {
        [mostNodes, mostRoots] = [Math.max(mostNodes, nodes), Math.max(mostRoots, roots)];
        [nodes, roots, rests] = [0, 0, rests + 1];
        return Promise.resolve();
      };
      const size = reader.size();
      const pins = Array.from({ length: PINS }, (_, n) => Math.floor((size * (n + 1)) / (PINS + 1)));
      const scope = { kind: 'tenant', tenant: 't3' } as const;
      const proofs = await made({ scope, range: { from: 0, to: EACH }, size, pins }, counted, line);
      expect(proofs.pins).to.have.length(PINS);
      // One path is of log2(size) nodes, twice that where the right edge is ragged.
      expect(mostNodes, 'nodes of the log in one piece').to.be.at.most(2 * Math.ceil(Math.log2(size)));
      expect(mostRoots, 'tenants in one piece').to.be.at.most(8);
      expect(rests).to.be.greaterThan(2 * PINS);
    });
  });
});
