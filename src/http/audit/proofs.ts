import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { z } from 'zod';
import { leavesOf, parseTilePath } from '../../app/audit/merkle/tiles.ts';
import { headWhen, type AuditHalt, type TreeHead } from '../../app/audit/tree-heads.ts';
import type { JsonObject } from '../../domain/json.ts';
import { prefersGzip } from '../encodings.ts';
import { ApiError, denied, invalid, notReached, unavailable } from '../errors.ts';
import { rendered } from '../ledger/forms.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import { shownTo } from '../../app/audit/shown-event.ts';
import type { LeafRecord } from '../../app/audit/merkle/leaf.ts';
import { CHECKPOINT, type Checkpoint } from './answers.ts';
import { lookAt, type Look, type Reach } from './access.ts';
import { eventNotFound, findEvent, objectOf, showing } from './events.ts';
import { CONSISTENCY_QUERY, HEADS_QUERY, TRUST_QUERY } from './operations.ts';
import { assertSomeReach } from './reach.ts';
import type { AuditServices } from './services.ts';

/** That it is so: proofs of events, signed heads, consistency between them, and what auditors pin. */
export const auditProofRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  lookAt(services, 'events/{id}/proof', proof),
  lookAt(services, 'checkpoints', heads, HEADS_QUERY),
  lookAt(services, 'checkpoint', ({ signal }) => ({
    what: 'checkpoint',
    query: {},
    answer: async () => {
      const { note } = await latestHead(services, signal);
      return { bytes: note, contentType: 'text/plain; charset=utf-8' };
    },
  })),
  lookAt(services, 'consistency', consistency, CONSISTENCY_QUERY),
  lookAt(services, 'trust.json', trust, TRUST_QUERY),
  lookAt(services, 'tile/{path*}', tile),
];

const latestHead = async ({ proofs }: AuditServices, signal: AbortSignal): Promise<TreeHead> => {
  const head = await proofs.heads.latest(signal);
  if (head === undefined) throw notSigned('nothing has been signed yet; the first head comes within seconds');
  return head;
};

/** Milliseconds: heads are signed every 10 seconds, and by whoever takes over from an instance that died a little later. */
const PIN_WITHIN_MS = 25_000;

/**
 * What an auditor keeps. Its pin covers everything that was recorded when it was asked for, the asking included: so it is
 * never older than the first event of the tenant who asks, and later exports of this tenant can be held against it.
 */
const trust = (
  { signal, ending }: LedgerCall,
  _reach: Reach,
  services: AuditServices,
  { newest }: z.infer<typeof TRUST_QUERY>,
): Look => {
  return {
    what: 'trust',
    query: newest ? { newest } : {},
    answer: async ({ recorded }) => {
      const { heads } = services.proofs;
      const within = {
        withinMs: newest ? 0 : PIN_WITHIN_MS,
        halted: () => services.halted() !== undefined,
        signal: ending === undefined ? signal : AbortSignal.any([signal, ending]),
      };
      const covers = ({ position }: TreeHead): boolean => position >= recorded;
      const head = await headWhen({ ...services, heads }, covers, within).catch((error: unknown) => {
        if (ending?.aborted === true) throw stopping();
        throw error;
      });
      const uncovered = !newest && (head === undefined || head.position < recorded);
      const halt = uncovered ? services.halted() : undefined;
      if (halt !== undefined) throw neverSigned(halt);
      if (uncovered)
        throw notSigned(
          'nobody has signed what is recorded by now: see `ledgerctl audit tree`; GET /api/audit/v1/trust.json?newest=true ' +
            'answers at once with the newest head that there is',
        );
      const { origin, keys, pin } = await services.proofs.trust(signal);
      return { json: { origin, keys, pin } };
    },
  };
};

const stopping = (): ApiError => unavailable('this instance stops; ask again', 'SHUTTING_DOWN', 1);

const notSigned = (message: string): ApiError => unavailable(message, 'NOT_SIGNED_YET', 5);

/** Of which event it is, tenants may not know more than its place; what to do about it is the operators' part. */
const neverSigned = ({ at }: AuditHalt): ApiError =>
  new ApiError(
    'DATA_LOSS',
    `signing has stopped: ${at === undefined ? 'the history of this service' : `the event that is stored at position ${at.position}`} ` +
      'is not what was recorded; the operators of this service are alarmed. Keep your trust.json, exports and mirrors as ' +
      'evidence; GET /api/audit/v1/trust.json?newest=true answers with the newest head from before',
    at === undefined
      ? { reason: 'LOG_DAMAGED' }
      : { reason: 'EVENT_CHANGED', facts: { position: at.position } },
  );

const base64 = (hashes: readonly Buffer[]): string[] => hashes.map((hash) => hash.toString('base64'));

const headJson = (head: TreeHead, { positions }: AuditServices): Checkpoint =>
  rendered(CHECKPOINT, { ...head, time: head.at, position: positions.format(head.position) });

const proof = ({ path, signal, principal }: LedgerCall, reach: Reach, services: AuditServices): Look => {
  const id = path['id'] ?? '';
  assertSomeReach(reach, principal);
  return {
    what: 'proof',
    query: { id: id.slice(0, 500) },
    answer: async ({ shows }) => {
      const { leaf, event } = await findEvent(id, reach, services, signal);
      const visible = shownTo(event, reach.audience, services.words);
      if (visible === undefined) throw eventNotFound(id, reach);
      showing({ leaf, event }, { shows }, objectOf(leaf), services);
      const { proofs, reader } = services;
      const head = await proofs.heads.covering(leaf.index, signal);
      if (head === undefined)
        throw notSigned(
          'the event is recorded and not signed yet: heads are signed within 10 seconds; try again',
        );
      const main = proofs.proofOf(leaf.index, head);
      const tenant = await proofs.tenantProof(leaf.tenant, head);
      const inTenant =
        tenant &&
        proofs.inTenantTree(
          leaf.tenant,
          leaf.tenantIndex,
          reader.tenantTree(leaf.tenant).indexBelow(head.size),
        );
      if (main === undefined || tenant === undefined || inTenant === undefined)
        throw notReached('this instance does not have the tree of that head yet; try again');
      return {
        json: {
          id: event.id,
          event: `${event.stream}@${event.revision}`,
          leaf: shownLeaf(main.leaf, visible.stored !== undefined || reach.audience === 'provider'),
          leaf_hash: main.leafHash.toString('base64'),
          index: leaf.index,
          path: base64(main.path),
          tenant: {
            name: leaf.tenant,
            index: leaf.tenantIndex,
            size: tenant.tree.size,
            root: tenant.tree.root.toString('base64'),
            path: base64(inTenant),
            place: tenant.index,
            count: tenant.count,
            place_path: base64(tenant.path),
          },
          checkpoint: headJson(head, services),
          // With these, whoever asks can see that the leaf is that of what is shown.
          ...(visible.stored === undefined ? {} : { stored: { ...visible.stored } }),
        },
      };
    },
  };
};

const heads = (
  { signal }: LedgerCall,
  _reach: Reach,
  services: AuditServices,
  { after, limit }: z.infer<typeof HEADS_QUERY>,
): Look => {
  return {
    what: 'checkpoints',
    query: { ...(after === undefined ? {} : { after }), limit },
    answer: async () => {
      if (after === undefined) {
        const head = await services.proofs.heads.latest(signal);
        return { json: { items: head === undefined ? [] : [headJson(head, services)] } };
      }
      const items: Checkpoint[] = [];
      for await (const head of services.proofs.heads.all(after, signal)) {
        items.push(headJson(head, services));
        if (items.length >= limit) break;
      }
      return { json: { items } };
    },
  };
};

/**
 * The hashes of data and metadata are not salted: beside less than they were made of they would let a tenant find the
 * rest by guessing. Their place in the leaf hash stays.
 */
const shownLeaf = (leaf: LeafRecord, withHashes: boolean): JsonObject => {
  if (withHashes) return { ...leaf };
  const { v, stream, revision, id, type, occurredAt } = leaf;
  return { v, stream, revision, id, type, occurredAt };
};

const consistency = (
  _call: LedgerCall,
  _reach: Reach,
  { proofs, reader }: AuditServices,
  { from, to }: z.infer<typeof CONSISTENCY_QUERY>,
): Look => {
  if (from > to) throw invalid("query parameter 'from' must not be larger than 'to'", 'from');
  if (to > reader.size())
    throw invalid(`query parameter 'to' is larger than the tree, which has ${reader.size()} leaves`, 'to');
  return {
    what: 'consistency',
    query: { from, to },
    answer: (): LedgerAnswer => {
      const path = proofs.consistency(from, to);
      if (path === undefined) throw invalid('no such part of the tree', 'to');
      return { json: { from, to, path: base64(path) } };
    },
  };
};

/** A tile never changes once it was signed; others than who may read it must not be handed it. */
const KEPT = { 'cache-control': 'private, max-age=31536000, immutable' };

const compress = promisify(gzip);

/** C2SP tlog-tiles; they tell of everybody's events, so only who may read all of them gets them. */
const tile = (
  { path, headers = {}, signal }: LedgerCall,
  { tenants }: Reach,
  { proofs }: AuditServices,
): Look => {
  if (tenants !== 'all') throw denied('tiles hold the leaves of all tenants: they need a grant for all');
  const name = `tile/${path['path'] ?? ''}`;
  return {
    what: 'tile',
    query: { tile: name.slice(0, 100) },
    answer: async () => {
      const address = parseTilePath(name);
      const signed = (await proofs.heads.latest(signal))?.size ?? 0;
      const bytes =
        address === undefined || leavesOf(address).to > signed ? undefined : await proofs.tile(name);
      if (address === undefined || bytes === undefined)
        throw new ApiError('NOT_FOUND', 'no such tile under the signed heads');
      const answer = { bytes, contentType: 'application/octet-stream', headers: KEPT };
      if (address.level !== 'entries') return answer;
      const vary = { ...KEPT, vary: 'accept-encoding' };
      if (!prefersGzip(headers)) return { ...answer, headers: vary };
      return { ...answer, bytes: await compress(bytes), headers: { ...vary, 'content-encoding': 'gzip' } };
    },
  };
};
