import type { DatabaseSync } from 'node:sqlite';
import { WHOLE_FUNCTION } from '../filter/to-sql.ts';

/** Functions that statements made from filters call; every connection that runs such statements needs them. */
export const defineFunctions = (db: DatabaseSync): void => {
  // SQLite answers an overflow of 64 bits with a rounded number, a filter with null.
  db.function(WHOLE_FUNCTION, { deterministic: true, useBigIntArguments: true }, (value) =>
    typeof value === 'bigint' ? value : null,
  );
};
