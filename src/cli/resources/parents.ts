import { placesOf, valueAtPlace } from '../../domain/document-places.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { identityOf, type FileDocument } from './documents.ts';

/** Those of the same file that an object refers to by id or name. */
export const parentsIn = (
  all: readonly FileDocument[],
  { kind: { kind }, document }: FileDocument,
): readonly FileDocument[] =>
  (kind.references ?? []).flatMap((reference) =>
    placesOf(document, reference.path).flatMap((place) => {
      const pointer = valueAtPlace(document, place);
      const [id, name] = [stringAt(pointer, 'id'), stringAt(pointer, 'name')];
      return all.filter((other) => {
        if (other.kind.kind.kind !== reference.kind) return false;
        const own = identityOf(other.kind, other.document);
        return id === '' ? name !== '' && own.name === name : own.id === id;
      });
    }),
  );

/** Each after what it refers to, else as the file has them; what refers in a circle stays as it is. */
export const inOrder = (all: readonly FileDocument[]): readonly FileDocument[] => {
  const ordered = new Set<FileDocument>();
  const begun = new Set<FileDocument>();
  const add = (one: FileDocument): void => {
    if (begun.has(one)) return;
    begun.add(one);
    for (const parent of parentsIn(all, one)) add(parent);
    ordered.add(one);
  };
  for (const one of all) add(one);
  return [...ordered];
};
