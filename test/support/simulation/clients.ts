import { keyedCommandId, keyedCreationId } from '../../../src/app/log/identifiers.ts';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Principal } from '../../../src/http/osac/principal.ts';
import { routeOf, type Reply, type Request } from './api.ts';
import { Violation, type StoredEvent } from './invariants.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

/** Callers of the service: they repeat what was not answered, with the same key, until they know how it ended. */
export type Clients = {
  /** `undefined`: the caller gave up without knowing. */
  send(request: Request, options?: { readonly patient?: boolean }): Promise<Reply | undefined>;
  /** Sends the same request several times at once, as an impatient proxy does. */
  sendTwice(request: Request): Promise<Reply | undefined>;
  /** Checks at the end that what was acknowledged is in the log exactly once, and what was refused is not. */
  check(): void;
};

export const principalOf = (tenant: string | undefined): Principal => ({
  subjectId: tenant === undefined ? 'admin' : `user-of-${tenant}`,
  userName: tenant === undefined ? 'admin' : `user-of-${tenant}`,
  admin: tenant === undefined,
  roles: [tenant === undefined ? 'admin' : 'client'],
  projects: new Map(),
  tenants: tenant === undefined ? [] : [tenant],
  homeTenant: tenant ?? 'shared',
  visibility: tenant === undefined ? { all: true } : { tenants: [tenant, 'shared'] },
  authMethod: 'jwt',
  tokenIdHash: 'token',
  tokenUntil: '9999-12-31T23:59:59.999Z',
});

/** Milliseconds that a caller waits for an answer. */
const PATIENCE_MS = 12_000;
/** Refusals after which the very same request may succeed. */
const TRY_AGAIN = new Set(['CONCURRENT_MODIFICATION', 'POSITION_NOT_REACHED']);

const scopeOf = ({ principal, verb, ...where }: Request) => ({
  tenant: principal.homeTenant ?? '',
  subjectId: principal.subjectId,
  method: verb,
  route: routeOf(where),
});

export const commandIdOf = (request: Request): string =>
  keyedCommandId(scopeOf(request), request.idempotencyKey);
export const creationIdOf = (request: Request): string =>
  keyedCreationId(scopeOf(request), request.idempotencyKey);

type Outcome = 'acknowledged' | 'refused' | 'unavailable only';
type Settled = { readonly request: Request; readonly outcome: Outcome; readonly reply: Reply };

export const createClients = (world: World, random: Random): Clients => {
  const { agenda, trace, ledger } = world;
  const settled: Settled[] = [];

  const ready = async () => {
    for (;;) {
      const usable = world.living().filter((incarnation) => incarnation.isReady());
      if (usable.length > 0) return random.pick(usable);
      await agenda.sleep('client', 200);
    }
  };

  /** One answer, or none within the caller's patience. */
  const once = async (request: Request): Promise<Reply | undefined> => {
    const incarnation = await ready();
    const reply = await new Promise<Reply | undefined>((resolve) => {
      const cancel = agenda.after('client', PATIENCE_MS, () => resolve(undefined));
      void incarnation.api.send(request).then((answered) => {
        cancel();
        resolve(answered);
      });
    });
    const { verb, path, idempotencyKey } = request;
    const how =
      reply === undefined ? 'no answer' : `${reply.status} ${reply.reason} ${said(reply)}`.trimEnd();
    trace.note('client', `${verb} ${path} [${idempotencyKey}] at ${incarnation.life.name}: ${how}`);
    if (reply !== undefined && reply.status === 500) {
      world.fail(new Violation(`${verb} ${path} answered 500: ${reply.message}`));
    }
    if (reply?.status === 200) acknowledged(request, reply);
    return reply;
  };

  const streamOf = (request: Request): string => {
    const [collection = '', id = ''] = request.path.split('/');
    const category =
      collection === 'hubs'
        ? 'hub'
        : actingKinds.find((kind) =>
            collection === 'orders'
              ? ledger.events(`${kind.kind}-${id}`).length > 0
              : kind.collection === collection,
          )?.kind;
    if (category === undefined) return '';
    const wanted = request.body['id'];
    return `${category}-${id !== '' ? id : typeof wanted === 'string' ? wanted : creationIdOf(request)}`;
  };

  const stored = (request: Request): readonly StoredEvent[] =>
    ledger.ofCommand(streamOf(request), commandIdOf(request));

  /** At the moment of the answer what it says must be in the log already. */
  const acknowledged = (request: Request, { revision, body }: Reply): void => {
    const stream = streamOf(request);
    if (stream === '') return;
    const events = stored(request);
    const what = `${request.verb} ${request.path} [${request.idempotencyKey}]`;
    if (request.verb === 'POST' && request.surface !== 'ledger' && events.length === 0) {
      world.fail(new Violation(`${what} was acknowledged, but ${stream} holds nothing of it`));
    }
    if (revision !== undefined && ledger.events(stream).length <= revision) {
      world.fail(
        new Violation(`${what} was answered with revision ${revision} that ${stream} does not have`),
      );
    }
    const wanted = sizeIn(request.body);
    const shown = sizeIn(body);
    if (request.verb === 'PATCH' && wanted !== undefined && shown !== wanted) {
      world.fail(new Violation(`${what} asked for ${wanted} nodes and was answered ${String(shown)}`));
    }
  };

  const isFinal = (reply: Reply | undefined): reply is Reply =>
    reply !== undefined && reply.status < 500 && !TRY_AGAIN.has(reply.reason);

  const send: Clients['send'] = async (request, { patient = true } = {}) => {
    const answers: (Reply | undefined)[] = [];
    for (;;) {
      const reply = await once(request);
      if (isFinal(reply)) {
        settled.push({ request, reply, outcome: reply.status === 200 ? 'acknowledged' : 'refused' });
        return reply;
      }
      answers.push(reply);
      if (!patient && answers.length >= 2) break;
      await agenda.sleep('client', random.int(100, 2_000));
    }
    // Whoever was told each time that nothing was stored must be right.
    const [last] = answers;
    const nothing = answers.every((reply) => reply !== undefined && reply.status !== 504);
    if (nothing && last !== undefined) settled.push({ request, reply: last, outcome: 'unavailable only' });
    return undefined;
  };

  return {
    send,
    sendTwice: async (request) => {
      const [first, second] = await Promise.all([
        send(request),
        agenda.sleep('client', random.int(0, 20)).then(() => send(request)),
      ]);
      if (first?.status === 200 && second?.status === 200) sameObject(world, request, first, second);
      return first;
    },
    check: () => {
      for (const { request, outcome, reply } of settled) {
        const events = stored(request);
        const what = `${request.verb} ${request.path} [${request.idempotencyKey}]`;
        if (outcome === 'acknowledged') acknowledged(request, reply);
        else if (events.length > 0) {
          const types = events.map(({ type }) => type).join(', ');
          world.fail(new Violation(`${what} was answered ${reply.status}, but ${types} is in the log`));
        }
      }
    },
  };
};

/** Without the cause, whose lines differ from thread to thread. */
const said = ({ message }: Reply): string => message.replace(/ \(.*/s, '');

const sameObject = (world: World, request: Request, first: Reply, second: Reply): void => {
  if (request.verb !== 'POST' || request.surface === 'ledger') return;
  if (first.body['id'] === second.body['id'] && first.revision === second.revision) return;
  world.fail(new Violation(`${request.path} [${request.idempotencyKey}] made two objects of one request`));
};

/** Nodes of the one node set; zero is left out on the wire. */
const sizeIn = (document: JsonObject): number | undefined => {
  const spec = document['spec'] as { node_sets?: { workers?: { size?: number } } } | undefined;
  const workers = spec?.node_sets?.workers;
  return workers === undefined ? undefined : (workers.size ?? 0);
};
