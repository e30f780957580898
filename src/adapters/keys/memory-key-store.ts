import type { KeyStore } from '../../app/ports.ts';
import { createSubjectKeyStore, type SubjectKey } from './subject-keys.ts';

/** Subject keys in memory, for specs and the simulation. */
export const createMemoryKeyStore = (): KeyStore => {
  const keys = new Map<string, SubjectKey>();
  return createSubjectKeyStore({
    find: async (subjectId) => keys.get(subjectId),
    create: async (subjectId, key) => {
      if (keys.has(subjectId)) return false;
      keys.set(subjectId, key);
      return true;
    },
    destroy: async (subjectId) => {
      keys.delete(subjectId);
    },
  });
};
