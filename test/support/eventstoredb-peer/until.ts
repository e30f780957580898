/** Polls a condition every few milliseconds; rejects, naming it, when it does not hold within `ms`. */
export const until = async (what: string, condition: () => boolean, ms = 5000): Promise<void> => {
  const end = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`${what}: not within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
};
