import type { EventCodec } from '../../app/log/event-codec.ts';
import type { EventFilter, EventStore, RecordedEvent, UnreadableEvent } from '../../app/log/event-store.ts';
import { isNotice } from '../../domain/audit/events.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { kindOf } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { ResourceReader } from '../../projections/read-models.ts';
import {
  recordLook,
  type LookedAt,
  type LookServices,
  type RecordedLook,
  type Tell,
} from '../audit-reads.ts';
import type { Positions } from '../positions.ts';
import { readQuery } from './forms.ts';
import { once, osacCall } from './osac-call.ts';
import { breathe } from './query.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';
import {
  EVENTS_QUERY,
  type EventsQuery,
  type ListedEvent,
  type UnreadableLine,
} from './upkeep-operations.ts';

/** `GET events`: the log for operators, redacted as for the provider; newline-delimited, with `follow=true` live. */
export type EventServices = LookServices & {
  readonly store: EventStore;
  readonly codec: Pick<EventCodec, 'decode' | 'typeOf'>;
  readonly registry: Pick<Registry, 'redact' | 'get'>;
  readonly resources: Pick<ResourceReader, 'get'>;
  readonly positions: Positions;
};

const PAGE = 500;
const BREATHE_EVERY = 100;

export const eventRoutes = (services: EventServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'events',
    handler: async (call) => {
      const wanted = readWanted(call, services.positions);
      const { tell } = await recordLook(osacCall(once(call)), await lookOf(wanted, call, services), services);
      return {
        lines: toldOf(
          wanted.follow ? follow(wanted, services, call) : list(wanted, services, call.signal),
          wanted,
          tell,
          services,
        ),
      };
    },
  },
];

type Wanted = Omit<EventsQuery, 'from'> & { readonly after: string | undefined };

const readWanted = ({ query }: LedgerCall, positions: Positions): Wanted => {
  const { from = '', ...wanted } = readQuery(query, EVENTS_QUERY);
  return { ...wanted, after: from === '' ? undefined : positions.parse(from, 'from') };
};

/** The look as it is recorded: of what was typed only names that are there stand in it in clear. */
const lookOf = async (
  { after, stream, type, tenant, limit, follow: live }: Wanted,
  { principal }: LedgerCall,
  { store, registry, resources, positions, conceal }: EventServices,
): Promise<RecordedLook> => {
  const inClear = async (value: string, isThere: boolean): Promise<JsonValue> =>
    isThere ? value : { ...(await conceal(principal.subjectId, value)) };
  const hasTenant = tenant !== undefined && resources.get('tenant', tenant, { all: true }) !== undefined;
  const query: JsonObject = {
    ...(stream === undefined
      ? {}
      : { stream: await inClear(stream, (await store.currentRevision(stream)) !== 'no_stream') }),
    ...(type === undefined ? {} : { type: await inClear(type, registry.get(type) !== undefined) }),
    ...(tenant === undefined ? {} : { tenant: await inClear(tenant, hasTenant) }),
    ...(after === undefined ? {} : { from: positions.format(after) }),
    ...(live ? { follow: true } : { limit }),
  };
  return { what: 'log', query, tenants: hasTenant ? [tenant] : undefined };
};

/** Each tenant is told before the first of its events is shown that it may see itself. */
async function* toldOf(
  events: AsyncIterable<RecordedEvent | UnreadableEvent>,
  { stream }: Wanted,
  tell: Tell,
  services: EventServices,
): AsyncGenerator<ListedEvent | UnreadableLine> {
  for await (const event of events) {
    if ('reason' in event) {
      yield unreadable(event, services);
      continue;
    }
    const tenant = textOf(event.metadata['tenant']);
    // A notice about notices would beget another one.
    if (
      !isNotice(event.type) &&
      services.registry.redact(services.codec.decode(event), 'tenant') !== undefined
    )
      await tell([tenant], stream === undefined ? undefined : objectOf(event.stream));
    yield shown(event, services);
  }
}

const objectOf = (stream: string): LookedAt | undefined => {
  const { category: kind, id } = parseStreamName(stream);
  return kindOf(kind) === undefined ? undefined : { kind, id };
};

async function* list(
  wanted: Wanted,
  services: EventServices,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent> {
  let left = wanted.limit;
  if (left === 0) return;
  let seen = 0;
  for await (const event of source(wanted, services.store, signal)) {
    if ((seen += 1) % BREATHE_EVERY === 0) await breathe();
    if (!fits(event, wanted)) continue;
    yield event;
    if ((left -= 1) === 0) return;
  }
}

async function* source(
  wanted: Wanted,
  store: EventStore,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent> {
  const { stream } = wanted;
  if (stream !== undefined) {
    for await (const event of store.readStream(stream, { signal })) {
      if (wanted.after === undefined || event.position > wanted.after) yield event;
    }
    return;
  }
  let after = wanted.after;
  for (;;) {
    let last: string | undefined;
    const page = { limit: PAGE, signal, ...(after === undefined ? {} : { after }) };
    for await (const event of store.readAll(page)) {
      last = event.position;
      yield event;
    }
    if (last === undefined) return;
    after = last;
  }
}

/** What is stored already counts towards the limit only when somebody gave one. */
async function* follow(
  wanted: Wanted,
  services: EventServices,
  call: Pick<LedgerCall, 'signal' | 'ending'>,
): AsyncGenerator<RecordedEvent | UnreadableEvent> {
  const ending = call.ending ?? new AbortController().signal;
  const signal = AbortSignal.any([call.signal, ending]);
  const filter: EventFilter | undefined =
    wanted.stream !== undefined
      ? { streamPrefixes: [wanted.stream] }
      : wanted.type !== undefined
        ? { typePrefixes: [wanted.type] }
        : undefined;
  const subscription = services.store.subscribe({
    signal,
    ...(wanted.after === undefined ? {} : { after: wanted.after }),
    ...(filter === undefined ? {} : { filter }),
  });
  try {
    for await (const item of subscription) {
      if (item.kind === 'event' && fits(item.event, wanted)) yield item.event;
      else if (item.kind === 'unreadable' && fits({ ...item.event, metadata: {} }, wanted)) yield item.event;
    }
  } catch (error) {
    // The service stops: the answer ends, and who follows goes on elsewhere from the last position.
    if (!ending.aborted) throw error;
  }
}

/** Streams `sys-*` are the service's own bookkeeping: shown only to who asks for one. */
const fits = (
  event: Pick<RecordedEvent, 'stream' | 'type' | 'metadata'>,
  { stream, type, tenant }: Wanted,
): boolean =>
  (stream === undefined ? !event.stream.startsWith('sys-') : event.stream === stream) &&
  (type === undefined || event.type === type) &&
  (tenant === undefined || event.metadata['tenant'] === tenant);

/** Somebody else's record in one of our streams: where it lies, and why it says nothing. */
const unreadable = (event: UnreadableEvent, { positions }: EventServices): UnreadableLine => {
  const { position, stream, revision, id, type, recordedAt, reason } = event;
  return { position: positions.format(position), stream, revision, id, type, recordedAt, unreadable: reason };
};

/** Of what is internal only that it happened is shown; secrets are references and personal data is left out. */
const shown = (event: RecordedEvent, { codec, registry, positions }: EventServices): ListedEvent => {
  const { metadata } = event;
  const visible = registry.redact(codec.decode(event), 'provider');
  const actor = metadata['actor'];
  return {
    position: positions.format(event.position),
    stream: event.stream,
    revision: event.revision,
    id: event.id,
    type: event.type,
    tenant: textOf(metadata['tenant']),
    recordedAt: event.recordedAt,
    command: textOf(metadata['command']),
    commandId: textOf(metadata['commandId']),
    correlationId: textOf(metadata['correlationId']),
    actor:
      typeof actor === 'object' && actor !== null && !Array.isArray(actor) ? textOf(actor['subjectId']) : '',
    data: visible?.data ?? {},
    ...(visible === undefined ? { internal: true } : {}),
  };
};

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
