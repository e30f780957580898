import { readdirSync } from 'node:fs';
import type { Behaviour } from '../eventstoredb-conformance/server.ts';

const folder = new URL('../eventstoredb-conformance/', import.meta.url);

/**
 * What an EventStoreDB does that our adapter relies on. The peer of `test/support/eventstoredb-peer` and a real server
 * both pass the list. Each file beside `server.ts` exports one part of it, under a name that ends in `Behaviours`.
 */
export const eventStoreDbBehaviours = async (): Promise<ReadonlyMap<string, readonly Behaviour[]>> => {
  const parts = new Map<string, readonly Behaviour[]>();
  for (const file of readdirSync(folder).toSorted()) {
    if (file === 'server.ts') continue;
    const exported = (await import(new URL(file, folder).href)) as Record<string, readonly Behaviour[]>;
    const lists = Object.entries(exported).filter(([name]) => name.endsWith('Behaviours'));
    if (lists.length === 0) throw new Error(`${file} exports no list of behaviours`);
    parts.set(
      file.replace('.ts', ''),
      lists.flatMap(([, list]) => list),
    );
  }
  return parts;
};
