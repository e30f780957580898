import { readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What a figure means nothing without. */
export const printMachine = (settings: Readonly<Record<string, string | number>>): void => {
  const [cpu] = cpus();
  const parts = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  console.log(
    `machine: ${cpu?.model ?? 'unknown'}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  );
  // Others' work on the same cores makes every figure worse.
  console.log(`load average of the last minute: ${(loadavg()[0] ?? 0).toFixed(1)}`);
  console.log(`node ${process.version}${parts.length === 0 ? '' : `; ${parts.join(', ')}`}`);
};

/** `1,234–1,456` of several repetitions; one value when they agree. */
export const range = (values: readonly number[], digits = 0): string => {
  const format = (value: number): string =>
    value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits });
  const low = format(Math.min(...values));
  const high = format(Math.max(...values));
  return low === high ? low : `${low}–${high}`;
};

export const percentile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

/** Resident memory of a process in MB, from /proc. */
export const residentMb = (pid: number): number => statusMb(pid, 'VmRSS');

/**
 * The most that it was, in MB. `process.resourceUsage().maxRSS` is another figure: in a process that was started by a larger
 * one it is the memory of that one, which a fork has until it becomes another program.
 */
export const peakMb = (pid: number): number => statusMb(pid, 'VmHWM');

const statusMb = (pid: number, name: string): number =>
  Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) /
  1024;

/** Milliseconds of processor time that a process has used so far, user and system, from /proc (ticks of 10 ms). */
export const processorMs = (pid: number): number => ticksMs(readFileSync(`/proc/${pid}/stat`, 'utf8'));

export const ticksMs = (stat: string): number => {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
};

/** The same of those threads of this process that have this name. */
export const threadProcessorMs = (name: string): number => {
  let sum = 0;
  for (const task of readdirSync('/proc/self/task')) {
    const stat = readFileSync(`/proc/self/task/${task}/stat`, 'utf8');
    if (stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')) === name) sum += ticksMs(stat);
  }
  return sum;
};

/** Milliseconds between two looks at the event loop. */
const LOOK_MS = 5;

/**
 * Watches this thread's event loop until the function that it returns is called: how long its turns were delayed, 99th
 * percentile and longest in ms. Undefined: the loop had no turn meanwhile.
 */
export const watchLoop = (): (() => { readonly p99: number; readonly max: number } | undefined) => {
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS });
  delay.enable();
  const beyond = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - LOOK_MS);
  return () => {
    delay.disable();
    return delay.count === 0 ? undefined : { p99: beyond(delay.percentile(99)), max: beyond(delay.max) };
  };
};
