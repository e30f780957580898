import { openSubjectKeyReader } from '../adapters/keys/subject-key-reader.ts';
import { createViews as viewsOf } from '../projections/views.ts';
import type { View } from '../projections/view.ts';

/** How a worker thread builds the views; plain JSON, for it crosses a thread. */
export type ViewsModuleConfig = {
  /** Where the keys of data subjects lie, and what unwraps them (base64). */
  readonly subjectKeys: { readonly directory: string; readonly kek: string };
  /** With the tree over the log: role `auditor`. */
  readonly audit: boolean;
};

/** Entry of the projection workers' views module: projections know no adapters. */
export const createViews = ({ subjectKeys, audit }: ViewsModuleConfig): readonly View[] =>
  viewsOf({
    audit,
    open: openSubjectKeyReader({
      directory: subjectKeys.directory,
      kek: Buffer.from(subjectKeys.kek, 'base64'),
    }),
  });
