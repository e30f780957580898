import { auditExportAggregate, auditGrantAggregate } from '../../domain/kinds.ts';
import { own } from '../../domain/json-tools.ts';
import { kindNamed } from './events.ts';

/** Kinds of the things that templates name by their first word. */
const KINDS: { readonly [word: string]: string } = {
  exports: auditExportAggregate.category,
  grants: auditGrantAggregate.category,
};

/** What a call of this surface is about, for the record of its refusal: as far as its path says it in names that there are. */
export const objectOfCall = (
  template: string,
  { kind: named, id }: Readonly<Record<string, string>>,
): { readonly kind?: string; readonly id?: string } => {
  const kind = named === undefined ? own(KINDS, template.split('/')[0] ?? '') : kindNamed(named)?.kind;
  return kind === undefined || id === undefined ? {} : { kind, id };
};
