import { objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { table } from '../output.ts';
import { cellOf } from './cells.ts';
import { ANY_KIND, COLUMNS, FIRST, LAST, OWN_TENANTS, TENANT, type Column } from './columns.ts';

export type TableOptions = {
  readonly wide: boolean;
  readonly now: number;
  /** Show whose each object is; otherwise only when they belong to several tenants. */
  readonly tenants: boolean;
  readonly header: boolean;
  /** Makes a state stand out; the text itself where nothing may be coloured. */
  readonly paint: Paint;
};

export type Paint = (state: string) => string;

/** More rows follow: what is optional of a kind is shown, as a later row may have it. */
type Live = { readonly live?: boolean };

/** The columns that these objects need. */
export const columnsFor = (
  kind: string,
  objects: readonly JsonObject[],
  { wide, now, tenants, live = false }: Pick<TableOptions, 'wide' | 'now' | 'tenants'> & Live,
): readonly Column[] => {
  const owners = new Set(objects.map((object) => stringAt(objectAt(object, 'metadata'), 'tenant')));
  const kinds = own(COLUMNS, kind) ?? ANY_KIND;
  return [
    ...((tenants || owners.size > 1) && !OWN_TENANTS.includes(kind) ? [TENANT] : []),
    ...[...FIRST, ...kinds, ...LAST].filter(
      (column) =>
        (wide || column.wide !== true) &&
        (column.optional !== true ||
          (live && kinds.includes(column)) ||
          objects.some((object) => cellOf(object, column, now) !== '')),
    ),
  ];
};

export const rowOf = (
  object: JsonObject,
  columns: readonly Column[],
  { now, paint }: Pick<TableOptions, 'now' | 'paint'>,
): string[] =>
  columns.map((column) => {
    const text = cellOf(object, column, now) || (column.as === 'yes-no' ? 'no' : '');
    return column.title === 'state' && text !== '' ? paint(text) : text;
  });

/** Objects of one kind as a table with the columns of that kind. */
export const tableView = (kind: string, objects: readonly JsonObject[], options: TableOptions): string => {
  const columns = columnsFor(kind, objects, options);
  const text = table(
    columns.map(({ title }) => title),
    objects.map((object) => rowOf(object, columns, options)),
  );
  return options.header ? text : text.split('\n').slice(1).join('\n');
};
