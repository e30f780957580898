import type { View } from '../../../src/projections/view.ts';
import { notesView } from './open-notes.ts';

export type NoteViewsConfig = {
  /** NotePoisoned cannot be applied. */
  readonly poison?: boolean;
  /** Applying a note of this text takes the whole thread down, as running out of memory would. */
  readonly deadly?: string;
  /** Nothing is urgent, and gathers for an hour. */
  readonly patient?: boolean;
  /** Views of the same under other names, beside the first. */
  readonly others?: string[];
};

/** Views module of projection workers in specs. */
export const createViews = ({
  poison = false,
  deadly,
  patient = false,
  others = [],
}: NoteViewsConfig): readonly View[] => {
  const view = notesView({ poison: () => poison });
  return ['resources', ...others].map((name) => {
    return {
      ...view,
      name,
      ...(patient && { isUrgent: false, gatherMs: 3_600_000 }),
      open: (db) => {
        const apply = view.open(db);
        return Object.assign((event: Parameters<typeof apply>[0]) => {
          if (deadly !== undefined && event.data['text'] === deadly) process.exit(7);
          apply(event);
        }, apply);
      },
    };
  });
};
