/**
 * The longest that this thread computed in one turn while something ran, milliseconds of processor time: the best of
 * some rounds. Clients in the same process compute there, too. For printing only: what it says depends on the machine.
 */
export const heldBy = async (run: () => Promise<unknown>, rounds = 3): Promise<number> => {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) best = Math.min(best, await longestTurn(run));
  return best;
};

const longestTurn = async (run: () => Promise<unknown>): Promise<number> => {
  let used = process.threadCpuUsage();
  let longest = 0;
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(used);
    longest = Math.max(longest, (user + system) / 1000);
    used = process.threadCpuUsage();
    next = setImmediate(look);
  };
  let next = setImmediate(look);
  await run();
  await new Promise((resolve) => setImmediate(resolve));
  clearImmediate(next);
  return longest;
};
