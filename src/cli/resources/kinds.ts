import type { AnyKind } from '../../domain/kinds.ts';
import { KINDS } from '../../gen/kinds.ts';

/** What the command line needs to know of a kind. `deriveName` and `references` only where objects are read from files. */
export type KindFacts = Pick<
  AnyKind,
  | 'kind'
  | 'collection'
  | 'words'
  | 'message'
  | 'service'
  | 'ids'
  | 'methods'
  | 'wrapsReplies'
  | 'event'
  | 'deriveName'
> &
  Partial<Pick<AnyKind, 'references'>> & {
    readonly publicList?: readonly Pick<NonNullable<AnyKind['publicList']>[number], 'when'>[];
    /** Its objects are carried out: they are orders and have a timeline. */
    readonly acts?: true;
  };

/** Every kind, as `npm run generate` found it declared: the declarations take longer to load than most commands take. */
export const kinds: readonly KindFacts[] = KINDS;
