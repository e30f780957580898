import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { AnyMethod } from '../../domain/tenancy/rights.ts';
import type { ResourceReader } from '../../projections/read-models.ts';
import { sees } from '../../projections/visibility.ts';
import { denied, type ApiError } from '../errors.ts';
import { mayCallAnywhere, mayCallOn, visibilityFor } from './authorization.ts';
import type { Call, CreateMessage, Handler } from './call.ts';
import type { Surface } from './messages.ts';
import type { KindService } from './service-table.ts';

/**
 * Rights that hold inside one project (OSAC): the routes let everybody pass who has such a right in any
 * project, and here each object is asked for its own. The handlers behind see the caller with what the method may be
 * used
 * on, so that nothing of another project is reached through a reference either.
 */
export const withProjectRights = (
  surface: Surface,
  service: KindService,
  resources: Pick<ResourceReader, 'get'>,
): KindService => {
  const { governed, kind } = service;

  const limited = <Message>(method: AnyMethod, call: Call<Message>): Call<Message> => {
    const { principal } = call;
    return {
      ...call,
      // A getter, which a spread would call.
      get signal() {
        return call.signal;
      },
      principal: { ...principal, visibility: visibilityFor(principal, surface, governed, method) },
    };
  };

  /** What is seen by another right is refused; foreign and absent objects run the same statements and give the same answer. */
  const onObject =
    <Message extends { readonly id: string }>(
      method: AnyMethod,
      handler: Handler<Message>,
    ): Handler<Message> =>
    (call) => {
      const { principal, message } = call;
      if (mayCallAnywhere(principal, surface, governed, method)) return handler(call);
      const within = limited(method, call);
      const row = resources.get(kind, message.id, principal.visibility);
      if (row !== undefined && !sees(within.principal.visibility, kind, row)) throw denied();
      return handler(within);
    };

  const list: KindService['list'] = (call) =>
    service.list(mayCallAnywhere(call.principal, surface, governed, 'List') ? call : limited('List', call));

  const create: Handler<CreateMessage> = (call) => {
    const { principal, message } = call;
    if (mayCallAnywhere(principal, surface, governed, 'Create')) return service.create(call);
    const metadata = objectAt(message.object, 'metadata');
    const tenant = stringAt(metadata, 'tenant') || (principal.homeTenant ?? '');
    const where = { tenant, project: stringAt(metadata, 'project') };
    if (!mayCallOn(principal, surface, governed, 'Create', where)) throw outsideProjects();
    return service.create(limited('Create', call));
  };

  return {
    ...service,
    list,
    get: onObject('Get', service.get),
    create,
    update: onObject('Update', service.update),
    remove: onObject('Delete', service.remove),
    extras: new Map(
      [...service.extras].map(([name, { method, handler }]) => [
        name,
        { method, handler: onObject(method, handler) },
      ]),
    ),
  };
};

const outsideProjects = (): ApiError =>
  denied("permission denied: name a project of which you are a manager in 'metadata.project'");
