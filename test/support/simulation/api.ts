import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { createAccessJournal } from '../../../src/app/audit/access-journal.ts';
import { createDayJournal } from '../../../src/app/audit/day-journal.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { createRequestHash } from '../../../src/app/commands/command.ts';
import type { Encrypted } from '../../../src/app/log/metadata.ts';
import type { System, SystemPorts } from '../../../src/composition/system.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { asApiError } from '../../../src/http/exchange.ts';
import { actRecorder } from '../../../src/http/ledger/acts.ts';
import { orderRoutes } from '../../../src/http/ledger/orders.ts';
import type { Answer, Call, CallMetadata } from '../../../src/http/osac/call.ts';
import { decodeMessage } from '../../../src/http/osac/messages.ts';
import type { Principal } from '../../../src/http/osac/principal.ts';
import { createPast } from '../../../src/http/osac/as-of.ts';
import { osacSurfaces } from '../../../src/http/osac/surfaces.ts';
import { createPositions } from '../../../src/http/positions.ts';
import { answer, type Life } from './life.ts';

/** One request as a client sends it. */
export type Request = {
  readonly verb: 'POST' | 'PATCH' | 'DELETE';
  readonly surface: 'public' | 'private' | 'ledger';
  /** Below the surface's prefix, for example `clusters/<id>`; on `ledger` `orders/<id>/retry`. */
  readonly path: string;
  readonly body: JsonObject;
  readonly mask?: readonly string[];
  readonly idempotencyKey: string;
  readonly principal: Principal;
};

export type Reply = {
  readonly status: number;
  readonly body: JsonObject;
  /** Reason of a refusal; empty for a success. */
  readonly reason: string;
  readonly message: string;
  /** Revision of the object that the body shows. */
  readonly revision: number | undefined;
};

export type Api = {
  /** Never rejects; never resolves once the incarnation has died. */
  send(request: Request): Promise<Reply>;
  /** Resolves when what is under way has ended. */
  idle(): Promise<void>;
};

/** The path of a request, as the scope of its idempotency key names it. */
export const routeOf = ({ surface, path }: Pick<Request, 'surface' | 'path'>): string =>
  `${{ public: '/api/fulfillment/v1', private: '/api/private/v1', ledger: '/api/ledger/v1' }[surface]}/${path}`;

const HIDDEN: Encrypted = { alg: 'A256GCM', keyId: 'k', nonce: 'n', ct: 'c', tag: 't' };

/** The HTTP handlers of one incarnation, without HTTP: what a request does behind its codec. */
export const createApi = (options: {
  readonly system: System;
  readonly ports: SystemPorts;
  readonly life: Life;
}): Api => {
  const { system, ports, life } = options;
  const { readModels } = system;
  const positions = createPositions({ storeId: ports.store.storeId, waitFor: readModels.waitFor });
  const people = createMemoryKeyStore();
  const services = {
    runner: system.runner,
    commands: system.commands,
    resources: readModels.resources,
    timeline: readModels.timeline,
    secrets: ports.secrets,
    clock: ports.clock,
    ids: ports.ids,
    requestHash: createRequestHash(Buffer.from('simulation')),
    personal: { personal: async () => HIDDEN, source: async () => HIDDEN },
    people,
    conceal: people.encrypt,
    access: createAccessJournal({
      journal: createDayJournal(ports.store),
      codec: createEventCodec(eventTypes),
      clock: ports.clock,
      instance: 'simulation',
    }),
    hubs: { adapterOf: (id: string) => system.hubs.get(id)?.adapter },
    issuers: [],
    formatPosition: positions.format,
    past: createPast({
      store: ports.store,
      runner: system.runner,
      readModels,
      positions,
      clock: ports.clock,
    }),
  };
  const surfaces = osacSurfaces(services);
  const orders = orderRoutes({
    ...services,
    recordAct: actRecorder(services),
    readModels,
    positions,
    store: ports.store,
    codec: system.codec,
    runOf: system.runOf,
  });

  const metadataOf = (request: Request): CallMetadata => ({
    requestId: ports.ids.uuidv7(),
    idempotencyKey: request.idempotencyKey,
    verb: request.verb,
    route: routeOf(request),
  });

  const osac = async (request: Request): Promise<Answer> => {
    const { verb, path, principal } = request;
    const table = surfaces.find(({ surface }) => surface === request.surface);
    const [collection = '', id = ''] = path.split('/');
    const service = table?.kinds.get(collection);
    if (table === undefined || service === undefined) throw new TypeError(`nothing serves ${path}`);
    const callOf = <Message>(message: Message): Call<Message> => ({
      surface: table.surface,
      method: `${service.governed.service}/${verb}`,
      principal,
      message,
      metadata: metadataOf(request),
      signal: new AbortController().signal,
    });
    if (verb === 'DELETE') return service.remove(callOf({ id }));
    const { document, present } = decodeMessage(service.schema, JSON.stringify(request.body));
    if (verb === 'POST') {
      service.checkCreate(document);
      return service.create(callOf({ object: document }));
    }
    const mask = request.mask === undefined ? {} : { updateMask: request.mask };
    return service.update(callOf({ id, object: document, present, lock: false, ...mask }));
  };

  const ledger = async (request: Request): Promise<JsonObject> => {
    const [, id = '', verb = ''] = request.path.split('/');
    const route = orders.find(({ path }) => path === `orders/{id}/${verb}`);
    if (route === undefined) throw new TypeError(`nothing serves ${request.path}`);
    const done = await route.handler({
      principal: request.principal,
      path: { id },
      query: new URLSearchParams(),
      body: {},
      requestId: ports.ids.uuidv7(),
      traceparent: undefined,
      idempotencyKey: request.idempotencyKey,
      verb: request.verb,
      route: routeOf(request),
      signal: new AbortController().signal,
    });
    if (!('json' in done)) throw new TypeError('an order route answers an object');
    return done.json as JsonObject;
  };

  const carryOut = async (request: Request): Promise<Reply> => {
    if (request.surface === 'ledger') {
      const body = await ledger(request);
      const revision = body['revision'];
      return { ...DONE, body, revision: typeof revision === 'number' ? revision : undefined };
    }
    const { body, etag, position } = await osac(request);
    if (position !== undefined) await positions.applied(position);
    const revision = etag === undefined ? undefined : Number(/-(\d+)"$/.exec(etag)?.[1]);
    return { ...DONE, body: JSON.parse(String(body)) as JsonObject, revision };
  };

  const inFlight = new Set<Promise<unknown>>();

  return {
    idle: async () => {
      await Promise.allSettled(inFlight);
    },
    send: (request) =>
      new Promise((resolve) => {
        const carriedOut = carryOut(request);
        inFlight.add(carriedOut);
        const ended = (): unknown => inFlight.delete(carriedOut);
        carriedOut.then(ended, ended);
        carriedOut.then(
          (reply) => answer(life, life.random.int(0, 3), () => resolve(reply)),
          (error: unknown) => answer(life, life.random.int(0, 3), () => resolve(refusal(asApiError(error)))),
        );
      }),
  };
};

const DONE = { status: 200, reason: '', message: '', revision: undefined } as const;

const refusal = (error: ApiError): Reply => ({
  status: error.status,
  body: {},
  reason: error.reason,
  message: error.cause === undefined ? error.message : `${error.message} (${describe(error.cause)})`,
  revision: undefined,
});

const describe = (cause: unknown): string =>
  cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
