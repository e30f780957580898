import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ticksMs } from './report.ts';

/** Milliseconds of processor time of each thread of a process so far, by its name, the most first; equal names are added up. */
export const threadsOf = (pid: number): ReadonlyMap<string, number> => {
  const used = new Map<string, number>();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8');
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      used.set(name, (used.get(name) ?? 0) + ticksMs(stat));
    } catch (error) {
      // It ended since its folder was read.
      if (
        (error as NodeJS.ErrnoException).code !== 'ENOENT' &&
        (error as NodeJS.ErrnoException).code !== 'ESRCH'
      )
        throw error;
    }
  }
  return new Map([...used].toSorted(([, a], [, b]) => b - a));
};

type Frame = { readonly functionName: string; readonly url: string };
type Profile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: Frame;
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
};

/** The first that matches a frame of ours, from the innermost outwards, is the part that a sample belongs to. */
const PARTS: readonly (readonly [part: string, file: RegExp])[] = [
  ['parse', /\/http\/(body|osac\/(messages|query|call))|\/src\/gen\//],
  ['answer', /\/src\/http\//],
  [
    'append',
    /\/adapters\/event-store\/|\/app\/(append-lines|event-codec|metadata|hidden-fields|identifiers)\.ts/,
  ],
  ['views', /\/src\/projections\//],
  ['audit tree', /\/(adapters|app|domain)\/audit\//],
  ['hub', /\/management-cluster\/|\/app\/(hub-|management-cluster|driven-hubs|scheduler)/],
  ['effects', /\/app\/(process-runner|[a-z-]*effects)/],
  ['decide', /\/src\/domain\//],
  ['command runner', /\/src\/app\//],
  ['other of ours', /\/src\//],
];

/**
 * Shares of busy samples by part, thread by thread, from the profiles that a process wrote into a folder. What is called from
 * several parts (zod, SQLite, JSON) counts for its caller.
 */
export const partsOf = (
  folder: string,
): readonly (readonly [thread: string, parts: readonly (readonly [part: string, share: number])[]])[] =>
  globSync(join(folder, '*.cpuprofile'))
    .toSorted()
    .map((file) => {
      const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile;
      const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
      const parents = new Map(
        profile.nodes.flatMap((node) => (node.children ?? []).map((id) => [id, node.id])),
      );
      const partOf = (id: number): string => {
        const name = nodes.get(id)?.callFrame.functionName ?? '';
        if (name === '(garbage collector)' || name === '(idle)' || name === '(program)') return name;
        for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
          const url = nodes.get(at)?.callFrame.url ?? '';
          const found = PARTS.find(([, pattern]) => pattern.test(url));
          if (found !== undefined) return found[0];
        }
        return 'Node';
      };
      const known = new Map(profile.nodes.map(({ id }) => [id, partOf(id)]));
      const spent = new Map<string, number>();
      let busy = 0;
      for (const [i, id] of profile.samples.entries()) {
        const part = known.get(id) ?? 'Node';
        if (part === '(idle)') continue;
        const time = profile.timeDeltas[i] ?? 0;
        busy += time;
        spent.set(part, (spent.get(part) ?? 0) + time);
      }
      const shares = [...spent]
        .map(([part, time]) => [part, time / busy] as const)
        .toSorted(([, a], [, b]) => b - a);
      // The first of ours that ran is where the thread begins.
      const begins = profile.nodes.find(({ callFrame }) => callFrame.url.includes('/src/'))?.callFrame.url;
      return [begins?.slice(begins.indexOf('/src/') + 1) ?? file, shares] as const;
    });
