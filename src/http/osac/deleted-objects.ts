import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { ResourceReader } from '../../projections/read-models.ts';
import { sees } from '../../projections/visibility.ts';
import { ApiError } from '../errors.ts';
import type { Handler, IdMessage } from './call.ts';
import type { KindService } from './service-table.ts';

type Deletable = Pick<ResourceKind, 'kind' | 'collection'> & {
  readonly view: (state: never) => ResourceView;
};

/**
 * Who could read an object that was deleted is told that it was. To everybody else it is absent: foreign and
 * absent ids run the same statements and give the same answer.
 */
export const tellingDeleted = (
  service: KindService,
  { kind, collection, view }: Deletable,
  prefix: string,
  resources: Pick<ResourceReader, 'stateOf'>,
): KindService => {
  const told =
    <Message extends IdMessage>(handler: Handler<Message>): Handler<Message> =>
    async (call) => {
      try {
        return await handler(call);
      } catch (error) {
        const { id, asOf } = call.message;
        const isAbsent = error instanceof ApiError && error.reason === 'NOT_FOUND' && asOf === undefined;
        if (!isAbsent) throw error;
        const state = resources.stateOf(kind, id);
        const last = state === undefined ? undefined : view(state as never);
        if (last?.exists !== true || !last.archived || !sees(call.principal.visibility, kind, last))
          throw error;
        const timeline = service.extras.has('timeline')
          ? `${prefix}/${collection}/${encodeURIComponent(id)}/timeline`
          : undefined;
        throw deleted(error, last.deletionTimestamp, timeline);
      }
    };
  const extras = [...service.extras].map(
    ([name, { method, handler }]) => [name, { method, handler: told(handler) }] as const,
  );
  return {
    ...service,
    get: told(service.get),
    update: told(service.update),
    remove: told(service.remove),
    extras: new Map(extras),
  };
};

const deleted = (absent: ApiError, at: string | undefined, timeline: string | undefined): ApiError =>
  new ApiError(
    absent.error,
    `${absent.message}: it was deleted${at === undefined ? '' : ` at ${at}`}${timeline === undefined ? '' : `; its timeline is GET ${timeline}`}`,
    {
      ...absent.options,
      cause: absent,
      reason: 'DELETED',
      facts: {
        ...(at === undefined ? {} : { deleted_at: at }),
        ...(timeline === undefined ? {} : { timeline }),
      },
    },
  );
