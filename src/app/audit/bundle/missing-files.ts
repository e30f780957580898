import type { Finding } from './findings.ts';

/**
 * What is said of files that are listed and not there: of a folder of which nothing is left one thing, that names all of
 * them, so that it does not hide what else is wrong.
 *
 * @param missing names of files; `/` parts folders.
 * @param present names of all files that are there.
 */
export const missingFiles = (missing: readonly string[], present: Iterable<string>): Finding[] => {
  const there = new Set([...present].map(folderOf));
  const groups = Map.groupBy(missing, (name) => (there.has(folderOf(name)) ? name : folderOf(name) || name));
  return [...groups].map(([file, names]) => {
    const [only, ...others] = names;
    return others.length === 0
      ? {
          code: 'missing-file',
          file: only ?? file,
          message: 'the manifest lists it, the bundle does not hold it',
        }
      : {
          code: 'missing-file',
          file,
          files: names,
          message: `the whole folder is missing: the manifest lists ${names.length} files in it`,
        };
  });
};

/** The outermost one, with its `/`; empty for a file that lies in none. */
const folderOf = (name: string): string => name.slice(0, name.indexOf('/') + 1);
