import { objectAt, stringAt } from '../json-tools.ts';
import type { ResourceKind } from '../resource.ts';
import { projectPointer } from './project.resource.ts';

/** What lies in a named project points at it, whatever its kind: such a project cannot be deleted. */
export const inProject = <Kind extends Pick<ResourceKind, 'pointsAt'>>(kind: Kind): Kind => ({
  ...kind,
  pointsAt: (document) => {
    const pointers = kind.pointsAt(document);
    const metadata = objectAt(document, 'metadata');
    const path = stringAt(metadata, 'project');
    return path === '' ? pointers : [...pointers, projectPointer(stringAt(metadata, 'tenant'), path)];
  },
});
