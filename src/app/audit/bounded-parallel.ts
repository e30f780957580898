/** Runs for every item, at most `most` at a time; none is begun after one has failed. Throws what the first one threw. */
export const eachAtOnce = async <Item>(
  items: Iterable<Item>,
  most: number,
  run: (item: Item) => Promise<unknown>,
): Promise<void> => {
  const left = items[Symbol.iterator]();
  let failed = false;
  const work = async (): Promise<void> => {
    for (let item = left.next(); item.done !== true && !failed; item = left.next())
      try {
        await run(item.value);
      } catch (error) {
        failed = true;
        throw error;
      }
  };
  const ended = await Promise.allSettled(Array.from({ length: most }, work));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
};
