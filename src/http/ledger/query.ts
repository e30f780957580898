/** Lets other requests run: a long loop on the HTTP thread calls it every so many steps (design §5, Threads). */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
