import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { AnyMethod } from '../../domain/tenancy/rights.ts';
import type { ResourceReader } from '../../projections/read-models.ts';
import { ApiError, objectNotFound } from '../errors.ts';
import { mayCallAnywhere, mayCallOn } from './authorization.ts';
import type { Call, CreateMessage, Handler } from './call.ts';
import type { Surface } from './messages.ts';
import type { KindService } from './rest.ts';

/**
 * Rights that hold inside one project (osac-api.md §7 Roles): the routes let everybody pass who has such a right in any
 * project, and here each object is asked for its own. Only these two services have such rights.
 */
const PROJECT_OF: { readonly [service: string]: (row: { name: string; project: string }) => string } = {
  Projects: ({ name }) => name,
  ProjectMemberships: ({ project }) => project,
};

/** The service with handlers that check project roles; one without such roles as it is. */
export const withProjectRights = (
  surface: Surface,
  service: KindService,
  resources: Pick<ResourceReader, 'get'>,
): KindService => {
  const { governed, kind } = service;
  const projectOf = Object.hasOwn(PROJECT_OF, governed.service) ? PROJECT_OF[governed.service] : undefined;
  if (projectOf === undefined) return service;

  /** Foreign and absent objects run the same statement and give the same answer. */
  const onObject =
    <Message extends { readonly id: string }>(
      method: AnyMethod,
      handler: Handler<Message>,
    ): Handler<Message> =>
    (call) => {
      const { principal, message } = call;
      if (mayCallAnywhere(principal, surface, governed, method)) return handler(call);
      const row = resources.get(kind, message.id, principal.visibility);
      if (row === undefined) throw objectNotFound(message.id);
      const where = { tenant: row.tenant, project: projectOf(row) };
      if (!mayCallOn(principal, surface, governed, method, where)) throw denied();
      return handler(call);
    };

  const create: Handler<CreateMessage> = (call: Call<CreateMessage>) => {
    const { principal, message } = call;
    const metadata = objectAt(message.object, 'metadata');
    const tenant = stringAt(metadata, 'tenant') || (principal.homeTenant ?? '');
    const where = { tenant, project: stringAt(metadata, 'project') };
    if (!mayCallOn(principal, surface, governed, 'Create', where)) throw denied();
    return service.create(call);
  };

  return {
    ...service,
    get: onObject('Get', service.get),
    create,
    update: onObject('Update', service.update),
    remove: onObject('Delete', service.remove),
  };
};

const denied = (): ApiError => new ApiError('PERMISSION_DENIED', 'permission denied');
