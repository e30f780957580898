import type { ChangeKey } from '../../../projections/resources/change-reader.ts';
import { ApiError, invalid } from '../../errors.ts';
import type { Positions } from '../../positions.ts';

/**
 * Ids of events, `<store id>.<position>.<n>`: where the change stands in the order of all changes of this store.
 * Clients treat them as opaque; a watch resumes after one.
 */
export type WatchIds = {
  format(key: ChangeKey): string;
  /**
   * The key of an id, or of a position as `X-Ledger-Position` shows it (then what follows that write). `name` is the
   * parameter for error texts. Throws ApiError 400: malformed, or of another store.
   */
  parse(text: string, name: string): ChangeKey;
};

/** A position alone stands after all changes that it has. */
const AFTER_ALL_OF_POSITION = 999_999_999;

export const createWatchIds = (positions: Pick<Positions, 'format' | 'parse'>): WatchIds => ({
  format: ({ position, n }) => `${positions.format(position)}.${n}`,
  parse: (text, name) => {
    const id = /^(.+)\.(0|[1-9]\d{0,8})$/.exec(text);
    try {
      return id === null
        ? { position: positions.parse(text, name), n: AFTER_ALL_OF_POSITION }
        : { position: positions.parse(id[1] ?? '', name), n: Number(id[2]) };
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'FOREIGN_POSITION') {
        throw new ApiError(
          'INVALID_ARGUMENT',
          `'${name}' is an id of another event store: list the objects here and watch without '${name}'`,
          { reason: error.reason, cause: error },
        );
      }
      throw invalid(`'${name}' must be the id of an event of this watch, as 'event.id' shows it`, name);
    }
  },
});
