/** Lets other requests run: a long loop on the HTTP thread calls it every so many steps. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
