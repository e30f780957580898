import { reject, type Rejection } from '../decider.ts';

const SHARED = 'shared';

/** What the provider offers to every tenant alike belongs to none of them. `words`: of the kind, in the plural. */
export const sharedRejection = (tenant: string, words: string): Rejection | undefined =>
  tenant === SHARED
    ? undefined
    : reject('invalid', 'NOT_SHARED', `${words} belong to tenant '${SHARED}': leave 'metadata.tenant' out`, {
        field: 'metadata.tenant',
      });
