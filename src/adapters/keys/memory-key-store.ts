import type { KeyStore } from '../../app/ports.ts';
import type { OpenPersonal } from '../../domain/personal.ts';
import { openWith } from './subject-key-reader.ts';
import { createSubjectKeyStore, type SubjectKey } from './subject-keys.ts';

/** Subject keys in memory, for specs and the simulation. `open` reads what `encrypt` made. */
export const createMemoryKeyStore = (): KeyStore & { readonly open: OpenPersonal } => {
  const keys = new Map<string, SubjectKey>();
  const store = createSubjectKeyStore({
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
  return { ...store, open: openWith((subjectId) => keys.get(subjectId)) };
};
