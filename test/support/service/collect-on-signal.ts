/** Preloaded into a service under test (`--expose-gc --import`): collects garbage whenever SIGUSR2 comes. */
process.on('SIGUSR2', () => {
  (globalThis as { gc?: () => void }).gc?.();
});
