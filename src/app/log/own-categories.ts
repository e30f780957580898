import { ACCESS_CATEGORY, ACT_CATEGORY } from '../audit/access-journal.ts';
import { REFUSAL_CATEGORY } from '../audit/refusal-recorder.ts';
import { works } from '../../domain/acting-kinds.ts';
import { aggregates } from '../../domain/kinds.ts';

/** Categories of every stream that this service writes. In an EventStoreDB that others share the rest is theirs. */
export const OWN_CATEGORIES: readonly string[] = [
  ...aggregates.map(({ category }) => category),
  ...works.map(({ workflow }) => workflow.name),
  REFUSAL_CATEGORY,
  ACCESS_CATEGORY,
  ACT_CATEGORY,
  // Leases, checkpoints, signed tree heads.
  'sys',
];
