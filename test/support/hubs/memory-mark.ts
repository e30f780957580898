import type { ManagementCluster, StoredMark } from '../../../src/app/hubs/management-cluster.ts';

/** The mark of a hub that a test or the simulation keeps in memory. */
export const createMemoryMark = (): Pick<ManagementCluster, 'readMark' | 'writeMark'> & {
  stored(): StoredMark | undefined;
  remove(): void;
} => {
  let stored: StoredMark | undefined;
  let version = 0;
  return {
    stored: () => stored,
    remove: () => {
      stored = undefined;
    },
    readMark: async () => stored,
    writeMark: async (mark, over) => {
      if (stored?.version !== over) return undefined;
      version += 1;
      stored = { mark, version: String(version) };
      return stored.version;
    },
  };
};
