import { renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/**
 * Preloaded into a measured service (`--import`): how long the main thread was late, and how much of that it computed
 * itself. The delay of an event loop also holds the time in which the thread waited for a core; its own processor time
 * is what our code can do something about. Writes what it saw to the file BENCH_TURNS_FILE names, once a second.
 */
const file = process.env['BENCH_TURNS_FILE'];
const HELD_MS = 20;

if (isMainThread && file !== undefined) {
  let last = performance.now();
  let used = process.threadCpuUsage();
  let turns = { looks: 0, late: 0, computed: 0, longestMs: 0, longestComputedMs: 0 };
  setInterval(() => {
    const now = performance.now();
    const { user, system } = process.threadCpuUsage(used);
    const wall = now - last;
    const computed = (user + system) / 1000;
    last = now;
    used = process.threadCpuUsage();
    turns = {
      looks: turns.looks + 1,
      late: turns.late + (wall > HELD_MS ? 1 : 0),
      computed: turns.computed + (computed > HELD_MS ? 1 : 0),
      longestMs: Math.max(turns.longestMs, wall),
      longestComputedMs: Math.max(turns.longestComputedMs, computed),
    };
  }, 1).unref();
  setInterval(() => {
    // Whole at any moment: it may be read while it is written.
    writeFileSync(`${file}.next`, JSON.stringify(turns));
    renameSync(`${file}.next`, file);
  }, 500).unref();
  // What the start computes is nobody's request.
  process.on('SIGUSR2', () => {
    turns = { looks: 0, late: 0, computed: 0, longestMs: 0, longestComputedMs: 0 };
  });
}
