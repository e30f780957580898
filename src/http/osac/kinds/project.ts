import { kindOf } from '../../../domain/kinds.ts';
import { isDefaultProject, projectPointer } from '../../../domain/tenancy/project.resource.ts';
import type { WriteServices } from '../write-context.ts';

const ALL = { all: true } as const;
/** Objects that are looked at for their kinds; a project holds more of them than an answer should list. */
const LOOKED_AT = 20;

/** A project with anything inside stays, whatever kind it is (the original answers 13 then, osac-api-run.md §2). */
export const projectInUse =
  ({ resources }: Pick<WriteServices, 'resources'>) =>
  (id: string): string | undefined => {
    if (isDefaultProject(id)) return 'the default project cannot be deleted: it goes with its tenant';
    const row = resources.get('project', id, ALL);
    if (row === undefined) return undefined;
    const pointer = projectPointer(row.tenant, row.name);
    const inside = resources.referencedBy(pointer.kind, pointer.id, { limit: LOOKED_AT });
    if (inside.length === 0) return undefined;
    const words = [...new Set(inside.map(({ kind }) => kindOf(kind)?.words ?? kind))].join(', ');
    return `project '${row.name}' cannot be deleted because it still has objects inside: ${words}`;
  };
