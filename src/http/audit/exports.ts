import { isMadeHere } from '../../app/audit/known-ids.ts';
import { ExportsBusy } from '../../app/audit/exports/exports.ts';
import type { AuditExportState } from '../../domain/audit/export.ts';
import type { ExportRequest } from '../../domain/audit/events.ts';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError, invalid } from '../errors.ts';
import { fieldsOf, NO_QUERY, readBody, readQuery, rendered } from '../ledger/forms.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import type { Principal } from '../osac/principal.ts';
import { once } from '../ledger/osac-call.ts';
import { AUDIT_EXPORT, type Export } from './answers.ts';
import { lookAt, looking, reaches, reachOf, type Look, type Reach } from './access.ts';
import { TENANTS_TYPES } from './tenant-question.ts';
import { categoryOf } from './events.ts';
import { firstFound } from './first-match.ts';
import { assertNames } from './names.ts';
import { EXPORT_BODY } from './operations.ts';
import { assertReach } from './reach.ts';
import { AUDIT_VIEW, type AuditServices } from './services.ts';
import { takenIn } from './subject-tenants.ts';
import { subjectOf } from './subjects.ts';
import { answered, writing } from './writes.ts';

/** Exports that are checked without this service: asked for, made behind the answer, fetched, discarded. */
export const auditExportRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  {
    verb: 'POST',
    path: 'exports',
    fields: fieldsOf(EXPORT_BODY),
    handler: (call) => ask(call, services),
  },
  lookAt(services, 'exports', ({ principal, signal }, reach) => ({
    what: 'exports',
    query: {},
    answer: async () => ({ json: { items: await listed(principal, reach, services, signal) } }),
  })),
  lookAt(services, 'exports/{id}', showOne),
  { verb: 'GET', path: 'exports/{id}/file', handler: (call) => fetchFile(call, services) },
  { verb: 'DELETE', path: 'exports/{id}', handler: (call) => discard(call, services) },
];

type Asked = Exclude<AuditExportState, { readonly status: 'none' }>;

const notFound = (): ApiError =>
  new ApiError('NOT_FOUND', 'no export with this id, or you may no longer read its history');

/** Exports are for who asked for them, for as long as they may read that history, and as much of it; admins see all. */
const mine = async (
  id: string,
  { admin, subjectId }: Principal,
  reach: Reach,
  { exports }: AuditServices,
): Promise<Asked> => {
  const state = await exports.state(id);
  if (state.status === 'none' || (!admin && state.subjectId !== subjectId)) throw notFound();
  const { tenant, audience } = state.request;
  if (tenant === undefined ? reach.tenants !== 'all' : !reaches(reach, tenant)) throw notFound();
  // Of a tenant, too, the provider sees more than others do.
  if (audience === 'provider' && reach.audience !== 'provider') throw notFound();
  return state;
};

const MAX_LISTED = 100;

const listed = async (
  principal: Principal,
  reach: Reach,
  services: AuditServices,
  signal: AbortSignal,
): Promise<Export[]> => {
  const items: Export[] = [];
  const all = await services.exports.list(signal);
  for (const { id, subjectId } of all.toReversed()) {
    if (items.length >= MAX_LISTED) break;
    if (!principal.admin && subjectId !== principal.subjectId) continue;
    const state = await mine(id, principal, reach, services).catch((error: unknown) => {
      if (error instanceof ApiError) return undefined;
      throw error;
    });
    if (state !== undefined) items.push(exportJson(id, state, services));
  }
  return items;
};

const exportJson = (id: string, state: Asked, { exports }: AuditServices): Export => {
  const progress = exports.progress(id);
  const done = state.status === 'complete' ? state : undefined;
  return rendered(AUDIT_EXPORT, {
    ...done,
    id,
    state: state.status === 'running' && progress?.waiting === true ? 'waiting' : state.status,
    request: { ...state.request, audience: state.request.audience ?? 'tenant' },
    requestedBy: state.subjectId,
    requestedAt: state.requestedAt,
    eventsDone: progress?.done,
    sha256: done?.digest,
    file: done && `/api/audit/v1/exports/${id}/file`,
    reason: 'reason' in state ? state.reason : undefined,
  });
};

const ask = async (call: LedgerCall, services: AuditServices): Promise<LedgerAnswer> => {
  const reach = await reachOf(call.principal, services, call.signal);
  const asked = await readRequest(call, reach, services);
  try {
    const { state, write, headers } = await writing(
      call,
      services,
      asked.tenant ?? '',
      async (context, { creationId }) => {
        // Asked for again, it is answered as it was asked for then: names may lead to nobody, or to others, by now.
        const known = await services.exports.state(creationId);
        const request =
          known.status === 'none' ? await resolved(asked, reach, services, call.signal) : known.request;
        return services.exports.request(creationId, request, context);
      },
    );
    if (state.status === 'none') throw notFound();
    const { creationId: id } = write;
    return answered(
      exportJson(id, state, services),
      { ...headers, location: `/api/audit/v1/exports/${id}`, 'retry-after': '1' },
      202,
    );
  } catch (error) {
    if (error instanceof ExportsBusy)
      throw new ApiError('RESOURCE_EXHAUSTED', 'too many exports are waiting to be made; try again later', {
        reason: 'EXPORTS_BUSY',
        retryAfterSeconds: 30,
        cause: error,
      });
    throw error;
  }
};

const showOne = ({ path, principal }: LedgerCall, reach: Reach, services: AuditServices): Look => {
  const id = path['id'] ?? '';
  return {
    what: 'export',
    query: { id: id.slice(0, 100) },
    answer: async () => ({ json: exportJson(id, await mine(id, principal, reach, services), services) }),
  };
};

/** What is exported, of a request that is new: whose tenant has a history, and who and what is meant. Throws ApiError 400. */
const resolved = async (
  asked: ExportRequest,
  reach: Reach,
  services: AuditServices,
  signal: AbortSignal,
): Promise<ExportRequest> => {
  // An export shows what had happened when it was asked for.
  const last = await services.store.lastPosition(signal);
  if (last !== undefined) await services.waitFor(AUDIT_VIEW, last, { timeoutMs: 5_000 });
  const { tenant } = asked;
  if (tenant !== undefined && services.reader.tenantTree(tenant).size() === 0)
    throw new ApiError('FAILED_PRECONDITION', `tenant '${tenant}' has no events: nothing can be exported`, {
      reason: 'NOTHING_TO_EXPORT',
      violations: [{ field: 'tenant', description: 'check its spelling' }],
    });
  // In the history that is exported alone: its auditors read what was asked for, and others' names are not theirs to read.
  const exported = tenant === undefined ? reach : { ...reach, tenants: [tenant] };
  await assertPins(asked, services, signal);
  await assertResource(asked, exported, services, signal);
  return withSubject(asked, exported, services, signal);
};

/** A pin that the tree does not reach is no size of a head of it; an export could show nothing of it. Throws ApiError 400 or 503. */
const assertPins = async (
  { pins = [] }: Pick<ExportRequest, 'pins'>,
  services: AuditServices,
  signal: AbortSignal,
): Promise<void> => {
  const largest = Math.max(0, ...pins);
  if (largest <= services.reader.size()) return;
  await takenIn(services, signal);
  const size = services.reader.size();
  if (largest > size)
    throw invalid(
      `field 'pins': ${largest} is larger than the tree, which has ${size} leaves. Either no head of that size was signed here, ` +
        'or history is missing: export without it, and check the export against your trust.json (ledgerctl audit verify --trust)',
      'pins',
    );
};

const readRequest = async (
  { body, principal, signal }: LedgerCall,
  reach: Reach,
  services: AuditServices,
): Promise<ExportRequest> => {
  const { format, from, to, pins, ...asked } = readBody(body, EXPORT_BODY);
  if (from !== undefined && to !== undefined && from > to)
    throw invalid("field 'from' must not be later than 'to'", 'from');
  const tenant = tenantOf(asked.tenant, reach, principal, services);
  const { types = [], kind: named = '' } = asked.filter;
  const kind = categoryOf(named);
  const fields = { types: 'filter.types', kind: 'filter.kind' };
  await assertNames({ types, kind }, fields, reach, services, signal);
  return {
    format,
    audience: reach.audience,
    ...(tenant === undefined ? {} : { tenant }),
    filter: { ...asked.filter, ...(kind === '' ? {} : { kind }) } as JsonObject,
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(pins.length === 0 ? {} : { pins }),
  };
};

const tenantOf = (
  asked: string | undefined,
  reach: Reach,
  principal: Principal,
  services: AuditServices,
): string | undefined => {
  if (reach.tenants === 'all') return asked;
  assertReach(asked === undefined ? [] : [asked], reach, principal, { ...services, field: "field 'tenant'" });
  if (asked !== undefined) return asked;
  const [only, ...others] = reach.tenants;
  if (only !== undefined && others.length === 0) return only;
  const which = reach.tenants.slice(0, 5).join(', ');
  throw invalid(`field 'tenant' is needed: whose history (you may read ${which})`, 'tenant');
};

/**
 * What an export was asked for by stands in the history in clear, for everybody whose history it is: no text that somebody
 * has only typed, and of one tenant no object that its own auditors find nothing about. Throws ApiError 400.
 */
const assertResource = async (
  { filter, tenant }: Pick<ExportRequest, 'filter' | 'tenant'>,
  { tenants, audience }: Reach,
  { reader }: Pick<AuditServices, 'reader'>,
  signal: AbortSignal,
): Promise<void> => {
  const field = 'filter.resource_id';
  const [kind, resourceId] = [stringAt(filter, 'kind'), stringAt(filter, 'resource_id')];
  if (resourceId === '' || isMadeHere(resourceId)) return;
  if (kind === '') throw invalid(`field '${field}' needs 'filter.kind': the kind of the object`, field);
  const shown = tenant === undefined ? { provider: audience === 'provider' } : { types: [...TENANTS_TYPES] };
  if ((await firstFound({ tenants, kind, resourceId, ...shown }, { reader }, signal)) !== undefined) return;
  const of = `about a ${kind} of this id`;
  throw invalid(
    tenant !== undefined && audience === 'provider'
      ? `field '${field}': nothing that tenant '${tenant}' may read is ${of}; ids are exact. A tenant's history ` +
          "records the filters of its exports: leave out 'tenant' for objects that only the provider reads"
      : `field '${field}': nothing that you may read is ${of}; ids are exact`,
    field,
  );
};

/** With the id of who is meant by a name. Throws ApiError 400. */
const withSubject = async (
  request: ExportRequest,
  reach: Reach,
  services: AuditServices,
  signal: AbortSignal,
): Promise<ExportRequest> => {
  const asked = stringAt(request.filter, 'subject');
  if (asked === '') return request;
  const field = "field 'filter.subject'";
  const subject = await subjectOf(asked, reach, { ...services, field }, signal);
  return { ...request, filter: { ...request.filter, subject } };
};

/** The download is an event of the export, appended before the first byte; what hands out none is a look at it. */
const fetchFile = async (call: LedgerCall, services: AuditServices): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  readQuery(call.query, NO_QUERY);
  const reach = await reachOf(call.principal, services, call.signal);
  const state = await mine(id, call.principal, reach, services);
  const found = (): ReturnType<typeof services.exports.file> => services.exports.file(id);
  const file = await found();
  if (state.status === 'complete' && file === undefined)
    throw new ApiError(
      'NOT_FOUND',
      'the file of this export is not on this instance; ask the one that made it',
      { reason: 'EXPORT_ELSEWHERE' },
    );
  const record = async (): Promise<void> => {
    await writing(once(call), services, state.request.tenant ?? '', (context) =>
      services.exports.recordDownload(id, context),
    );
  };
  if (file === undefined || state.status !== 'complete') {
    // It refuses, and says why.
    await record();
    throw notFound();
  }
  return {
    file: {
      bytes: file.bytes,
      contentType: 'application/x-tar',
      etag: `"sha256-${state.digest}"`,
      name: `audit-export-${id}.tar`,
      before: async (handsOut) => {
        if (handsOut) await record();
        else await looking(services, showOne, NO_QUERY)(call);
        if ((await found()) === undefined) throw notFound();
      },
      read: file.read,
    },
  };
};

const discard = async (call: LedgerCall, services: AuditServices): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const reach = await reachOf(call.principal, services, call.signal);
  const { request } = await mine(id, call.principal, reach, services);
  const { state, headers } = await writing(call, services, request.tenant ?? '', (context) =>
    services.exports.discard(id, 'no longer needed', context),
  );
  if (state.status === 'none') throw notFound();
  return answered(exportJson(id, state, services), headers);
};
