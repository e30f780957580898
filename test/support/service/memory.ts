import { join } from 'node:path';
import { expect } from 'chai';
import { until, type Stack } from './stack.ts';

const MIB = 1024 * 1024;

/** Options of Node for a service whose memory is measured. */
export const COLLECTING: readonly string[] = [
  '--expose-gc',
  '--import',
  join(import.meta.dirname, 'collect-on-signal.ts'),
];

export type Memory = { readonly heapMiB: number; readonly residentMiB: number };

/** As Prometheus sees it, after a collection: an idle process makes none by itself. */
export const memoryOf = async (stack: Stack): Promise<Memory> => {
  process.kill(stack.service().pid, 'SIGUSR2');
  const text = await (await fetch(`${stack.service().metrics}/metrics`)).text();
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  const found = {
    heapMiB: value('nodejs_heap_size_used_bytes') / MIB,
    residentMiB: value('process_resident_memory_bytes') / MIB,
  };
  expect(found.heapMiB).to.be.greaterThan(1);
  return found;
};

/** The heap is where it was, and the process hardly larger. */
export const isAsBefore = async (stack: Stack, before: Memory): Promise<void> => {
  let last = await memoryOf(stack);
  await until('the heap is as it was', async () => {
    last = await memoryOf(stack);
    return last.heapMiB - before.heapMiB < 20;
  });
  expect(last.residentMiB - before.residentMiB).to.be.lessThan(100);
};
