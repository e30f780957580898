import { setTimeout } from 'node:timers/promises';
import { settleEntries } from '../../../app/tenancy/project-entries.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { kindOf } from '../../../domain/kinds.ts';
import { isDefaultProject, projectPointer } from '../../../domain/tenancy/project.resource.ts';
import { ApiError } from '../../errors.ts';
import type { Removal } from '../deletes.ts';
import type { WriteServices } from '../write-context.ts';

const ALL = { all: true } as const;
/** Objects that are looked at for their kinds; a project holds more of them than an answer should list. */
const LOOKED_AT = 20;
/** Milliseconds that the read model gets to show what was written before the deletion, and between two looks. */
const PATIENCE_MS = 2_000;
const LOOK_AGAIN_MS = 5;

type Services = Pick<WriteServices, 'resources' | 'runner' | 'clock'>;

/**
 * A project with anything inside stays, whatever kind it is (the original answers 13 then, OSAC). The
 * look at the read model comes first and refuses nearly all; what it cannot know, because it is on its way, comes with
 * the entries of the project (`app/project-entries.ts`).
 */
export const projectRemoval = (services: Services): Partial<Removal<DocumentCommand>> => ({
  blocked: (id) => {
    if (isDefaultProject(id)) return 'the default project cannot be deleted: it goes with its tenant';
    return stillInside(services, id);
  },
  secure: async (id, revision, commandId) => {
    const entered = await settleEntries(services, id, commandId);
    if (entered.length > 0) return occupied(services, id, entered);
    await untilShown(services, id, revision);
    return stillInside(services, id);
  },
});

const stillInside = (services: Services, id: string): string | undefined => {
  const row = services.resources.get('project', id, ALL);
  if (row === undefined) return undefined;
  const pointer = projectPointer(row.tenant, row.name);
  const inside = services.resources.referencedBy(pointer.kind, pointer.id, { limit: LOOKED_AT });
  return inside.length === 0
    ? undefined
    : occupied(
        services,
        id,
        inside.map(({ kind }) => kind),
      );
};

const occupied = ({ resources }: Services, id: string, kinds: readonly string[]): string => {
  const words = [...new Set(kinds.map((kind) => kindOf(kind)?.words ?? kind))].join(', ');
  const name = resources.get('project', id, ALL)?.name ?? id;
  return `project '${name}' cannot be deleted because it still has objects inside: ${words}`;
};

/**
 * Read models apply the log in its order: once the project's row stands at this revision, everything that was created
 * in it before is shown as well. Throws ApiError 503 when that takes too long.
 */
const untilShown = async ({ resources, clock }: Services, id: string, revision: number): Promise<void> => {
  const started = clock.monotonicMs();
  while ((resources.get('project', id, ALL)?.revision ?? -1) < revision) {
    if (clock.monotonicMs() - started > PATIENCE_MS)
      throw new ApiError('UNAVAILABLE', 'this instance does not know yet what is in the project; try again', {
        retryAfterSeconds: 1,
      });
    await setTimeout(LOOK_AGAIN_MS);
  }
};
