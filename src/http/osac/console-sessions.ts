import type { Consoles, Machine } from '../../app/consoles/consoles.ts';
import { consoleKindOf } from '../../app/consoles/consoles.ts';
import { ConsoleRefused } from '../../app/consoles/console-line.ts';
import type { Tickets } from '../../app/consoles/tickets.ts';
import { CONSOLE_TYPES, type ConsoleType } from '../../domain/consoles.ts';
import type { JsonObject } from '../../domain/json.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { ConsoleSessionSchema } from '../../gen/osac/public/v1/console_sessions_pb.ts';
import { ApiError, denied, invalid, tooMuch, unavailable, unfit } from '../errors.ts';
import { lackedRight, mayCallOn, mayWrite } from './authorization.ts';
import type { Call, CreateMessage } from './call.ts';
import type { ActionService } from './service-table.ts';
import { beginWrite, commandContext, type WriteServices } from './write-context.ts';

/** What sessions are opened with. */
export type ConsoleAccess = { readonly consoles: Consoles; readonly tickets: Tickets };

type Services = Pick<WriteServices, 'runner' | 'resources' | 'clock' | 'ids' | 'requestHash' | 'personal'> &
  ConsoleAccess;

const GOVERNED = { service: 'ConsoleSessions' } as const;
const TYPES: { readonly [name: string]: ConsoleType } = Object.fromEntries(
  CONSOLE_TYPES.map((type) => [`CONSOLE_TYPE_${type.toUpperCase()}`, type]),
);
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const HUB_RETRY_S = 5;

/** `POST P/console_sessions` (OSAC): a ticket for one console of one machine. The checks and their order are OSAC's. */
export const consoleSessions = (services: Services): ActionService => ({
  kind: 'consoleSession',
  collection: 'console_sessions',
  governed: GOVERNED,
  schema: ConsoleSessionSchema,
  summary: 'Create a ticket for a console of a machine',
  handler: async (call) => {
    const { object } = call.message;
    const wanted = wantedIn(object);
    const { machine, state, where } = await machineOf(wanted, call, services);
    await services.consoles.reach(machine, state, call.signal).catch((error: unknown) => {
      throw error instanceof ConsoleRefused ? consoleRefusal(error) : error;
    });
    if (call.metadata.dryRun === true) return { body: JSON.stringify(object) };
    const write = beginWrite(call, object, services);
    const { actor } = await commandContext(call, write, where, services);
    const asked = { session: services.ids.uuidv7(), kind: machine.kind.kind, id: machine.id };
    const { subjectId: subject, tokenUntil } = call.principal;
    const { console, clientId } = wanted;
    const { requestId } = call.metadata;
    const { ticket, expiresAt } = await services.tickets.issue(
      { ...asked, console, clientId, subject, tokenUntil, requestId, actor },
      services.clock.now(),
    );
    return { body: JSON.stringify({ ...object, ticket, expires_at: expiresAt }) };
  },
});

type Wanted = Omit<Machine, 'id'> & {
  readonly id: string;
  readonly console: ConsoleType;
  readonly clientId: string;
};

const wantedIn = (object: JsonObject): Wanted => {
  const resourceType = stringAt(object, 'resource_type') || 'CONSOLE_RESOURCE_TYPE_UNSPECIFIED';
  const found = consoleKindOf((_kind, consoles) => consoles.resourceType === resourceType);
  if (found === undefined)
    throw new ApiError('UNIMPLEMENTED', `consoles of resource type '${resourceType}' are not supported`);
  const id = stringAt(object, 'resource_id');
  if (id === '') throw invalid("field 'resource_id' is required", 'object.resource_id');
  const type = stringAt(object, 'type');
  const console = TYPES[type];
  if (console === undefined)
    throw invalid(
      `field 'type' must be one of ${Object.keys(TYPES).join(', ')}${type === '' ? '' : ` (got '${type}')`}`,
      'object.type',
    );
  const clientId = stringAt(object, 'client_id');
  if (!UUID.test(clientId)) throw invalid("field 'client_id' must be a UUID", 'object.client_id');
  return { ...found, id, console, clientId: clientId.toLowerCase() };
};

/** The machine, if the caller may open a console of it, and it runs on a hub. */
const machineOf = async (
  { kind, consoles, id }: Wanted,
  { principal, surface }: Call<CreateMessage>,
  { resources, runner }: Services,
) => {
  const row = resources.get(kind.kind, id, principal.visibility);
  const { state } = row === undefined ? { state: undefined } : await runner.load(aggregateOf(kind), id);
  const view = state === undefined ? undefined : kind.view(state);
  if (row === undefined || view?.exists !== true || view.archived)
    throw new ApiError(
      'NOT_FOUND',
      `failed to get ${kind.words} "${id}": object with identifier '${id}' not found`,
    );
  const where = { tenant: row.tenant, project: row.project };
  if (!mayWrite(principal, row.tenant) || !mayCallOn(principal, surface, GOVERNED, 'Create', where))
    throw denied(lackedRight(principal, surface, GOVERNED, 'Create'));
  const words = `${kind.words} "${id}"`;
  const why = consoles.without(state);
  if (why === 'stopping') throw unfit(`${words} is being stopped`, 'NOT_RUNNING');
  if (why !== undefined)
    throw unfit(`${words} is not running (state: ${view.state || 'UNSPECIFIED'})`, 'NOT_RUNNING');
  if (consoles.place(state) === undefined) throw unfit(`${words} has no hub assigned`, 'NO_HUB');
  return { machine: { kind, consoles, id }, state, where };
};

/** A session that did not begin, as an answer. */
export const consoleRefusal = (refused: ConsoleRefused): ApiError => {
  const { message } = refused;
  switch (refused.refusal) {
    case 'invalid-ticket':
      return new ApiError('UNAUTHENTICATED', message, { cause: refused, plain: true });
    case 'active':
      return unfit(message, 'CONSOLE_ACTIVE');
    case 'not-running':
      return unfit(message, 'NOT_RUNNING');
    case 'too-many':
      return tooMuch(message, 'TOO_MANY_CONSOLES', HUB_RETRY_S);
    case 'unreachable':
      return unavailable(message, 'HUB_UNAVAILABLE', HUB_RETRY_S, refused);
  }
};
