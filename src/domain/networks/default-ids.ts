import { reject, type Rejection } from '../decider.ts';
import { base32, fnv1a64 } from '../hash.ts';

/** Ids of what the service makes with a tenant. Nobody else can choose one: who has it, has the rights of such an object. */
const PREFIX = 'default-';
/** Creator of these objects, as which nobody can sign in. */
export const SERVICE = 'system';

/** A tenant that comes again under its name gets others: ids are used once. */
export const defaultPrefix = (tenant: string, createdAt: string): string =>
  `${PREFIX}${base32(fnv1a64(`${tenant} ${createdAt}`))}-`;

export const isDefaultPart = (id: string, tenant: string, createdAt: string): boolean =>
  id.startsWith(defaultPrefix(tenant, createdAt));

/** `ResourceKind.idRule` of every kind that default networking is made of. */
export const withoutDefaultIds = (id: string): Rejection | undefined =>
  id.startsWith(PREFIX)
    ? reject('invalid', 'RESERVED_ID', `ids that begin with '${PREFIX}' belong to default networking`, {
        field: 'id',
      })
    : undefined;
