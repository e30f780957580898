import type { ObjectRecord, Write } from './record.ts';

/** The hosts of a hub, as its setting says them; whoever shares the setting shares them. */
export type Labels = { readonly [label: string]: string };
export type Host = { readonly name: string; readonly labels: readonly string[] };

/** Named by their labels and their place: `2 class:gpu rack:r1`. */
export const hostsOf = (setting: string): readonly Host[] =>
  setting
    .split('|')
    .map((host) => host.trim().split(/\s+/))
    .filter((labels) => labels.join('') !== '')
    .map((labels, index) => ({ name: [index + 1, ...labels].join(' '), labels }));

export const hasLabels = ({ labels }: Host, wanted: Labels): boolean =>
  Object.entries(wanted).every(([key, value]) => labels.includes(`${key}:${value}`));

type HostWrite = Extract<Write, { kind: 'host' }>;
const isHost = (write: Write): write is HostWrite => write.kind === 'host';
const ends = (record: ObjectRecord): boolean =>
  record.life.vanishOrder > 0 || record.writes.some(({ kind }) => kind === 'delete' || kind === 'vanish');

/**
 * Hosts that are free, or will be at a known time, go to those that wait, the oldest first; a promise for later may be
 * made anew. `records`: of one setting, oldest first; `endOf`: when one that is to end is gone. Returns what changes.
 */
export const shareHosts = (
  records: readonly ObjectRecord[],
  now: number,
  wantedBy: (record: ObjectRecord) => Labels,
  endOf: (record: ObjectRecord) => number | undefined,
): readonly ObjectRecord[] => {
  const hosts = hostsOf(records[0]?.life.hosts ?? '');
  const freeAt = new Map(hosts.map(({ name }) => [name, now]));
  const waiting: ObjectRecord[] = [];
  for (const record of records) {
    const has = record.writes.find((write) => isHost(write) && write.at <= now) as HostWrite | undefined;
    if (has !== undefined) freeAt.set(has.host, ends(record) ? (endOf(record) ?? Infinity) : Infinity);
    else waiting.push(record);
  }
  return waiting.flatMap((record) => {
    const writes = record.writes.filter((write) => !isHost(write));
    const promised = record.writes.find(isHost);
    const isWanted = !writes.some(({ kind }) => kind === 'delete' || kind === 'vanish');
    const [first] = hosts
      .filter((host) => isWanted && hasLabels(host, wantedBy(record)))
      .map(({ name }) => ({ name, at: Math.max(now, freeAt.get(name) ?? now) }))
      .filter(({ at }) => at < Infinity)
      .toSorted((a, b) => a.at - b.at);
    if (first === undefined) return promised === undefined ? [] : [{ ...record, writes }];
    freeAt.set(first.name, Infinity);
    if (promised?.host === first.name && promised.at === first.at) return [];
    return [{ ...record, writes: [...writes, { at: first.at, kind: 'host', host: first.name } as const] }];
  });
};
