import type { FieldPath, FilterNode, FilterValue, Literal } from '../filter/ast.ts';
import type { Visibility } from '../read-models.ts';
import { labelField, LISTED } from './terms.ts';

/** Rows of `resources` that one index leads to: by id, by name, or by one value of an indexed field. */
export type Probe = { readonly by: 'id' | 'name'; readonly values: readonly string[] } | TermProbe;
export type TermProbe = { readonly by: 'term'; readonly field: string; readonly values: readonly string[] };

/** What an `&&` is made of, the tenants it names taken out of it. */
export type Narrowed = {
  /** Undefined: all. */
  readonly tenants: readonly string[] | undefined;
  readonly conditions: readonly FilterNode[];
};

/** Tenants that a filter names narrow what is looked at; what always holds is left out. Pure. */
export const narrow = (filter: FilterNode | undefined, visibility: Visibility): Narrowed => {
  let tenants = 'all' in visibility ? undefined : [...new Set(visibility.tenants)];
  const conditions: FilterNode[] = [];
  for (const condition of filter === undefined ? [] : conjuncts(filter)) {
    if (condition.op === 'constant' && condition.value) continue;
    const named = condition.op === 'constant' ? [] : valuesOf(condition, 'metadata.tenant');
    if (named === undefined) conditions.push(condition);
    else tenants = tenants === undefined ? [...named] : tenants.filter((tenant) => named.includes(tenant));
  }
  return { tenants, conditions };
};

const conjuncts = (node: FilterNode): readonly FilterNode[] =>
  node.op === 'and' ? [...conjuncts(node.left), ...conjuncts(node.right)] : [node];

/** Indexes that together lead to every match of a condition; `exact`: and to nothing else. */
export type Access = { readonly probes: readonly Probe[]; readonly exact: boolean };

/** How many rows a probe leads to; may stop counting once they are too many to be looked at one by one. */
export type Rows = (probe: Probe) => number;

/** Undefined when no index leads to all matches. Of an `&&` the side with fewer rows is taken. Pure. */
export const accessOf = (node: FilterNode, indexed: ReadonlySet<string>, rows: Rows): Access | undefined => {
  if (node.op === 'or') {
    const left = accessOf(node.left, indexed, rows);
    const right = left === undefined ? undefined : accessOf(node.right, indexed, rows);
    if (left === undefined || right === undefined) return undefined;
    return { probes: merged([...left.probes, ...right.probes]), exact: left.exact && right.exact };
  }
  if (node.op === 'and') {
    const sides = [node.left, node.right].flatMap((side) => accessOf(side, indexed, rows) ?? []);
    const [best] = sides.toSorted((a, b) => rowsOf(a.probes, rows) - rowsOf(b.probes, rows));
    return best === undefined ? undefined : { probes: best.probes, exact: false };
  }
  const probe = probeOf(node, indexed);
  return probe === undefined ? undefined : { probes: [probe], exact: true };
};

export const rowsOf = (probes: readonly Probe[], rows: Rows): number =>
  probes.reduce((sum, probe) => sum + rows(probe), 0);

export const LISTED_PROBE: TermProbe = { by: 'term', field: LISTED[0], values: [LISTED[1]] };

/** The one indexed value (or one of several) that is all a condition asks for, if it is. */
export const onlyTermOf = ({ probes, exact }: Access): TermProbe | undefined => {
  const [probe, ...others] = probes;
  return exact && others.length === 0 && probe?.by === 'term' ? probe : undefined;
};

const merged = (probes: readonly Probe[]): readonly Probe[] => {
  const byKey = new Map<string, Probe>();
  for (const probe of probes) {
    const key = probe.by === 'term' ? `term ${probe.field}` : probe.by;
    const known = byKey.get(key);
    byKey.set(key, { ...probe, values: [...new Set([...(known?.values ?? []), ...probe.values])] });
  }
  return [...byKey.values()];
};

const probeOf = (node: FilterNode, indexed: ReadonlySet<string>): Probe | undefined => {
  const field = askedField(node);
  if (field === undefined) return undefined;
  const path = field.path.join('.');
  const values = valuesOf(node, path);
  if (values === undefined) return undefined;
  if (path === 'id') return { by: 'id', values };
  if (path === 'metadata.name') return { by: 'name', values };
  const term =
    labelField(field.path) ?? (indexed.has(path) && field.mapValue === undefined ? path : undefined);
  return term === undefined ? undefined : { by: 'term', field: term, values };
};

const askedField = (node: FilterNode): FieldPath | undefined => {
  if (node.op === 'in') return node.value.kind === 'field' ? node.value.field : undefined;
  if (node.op !== '==') return undefined;
  return node.left.kind === 'field'
    ? node.left.field
    : node.right.kind === 'field'
      ? node.right.field
      : undefined;
};

/** The stored texts that a field must have one of, when that is all that a condition says. */
const valuesOf = (node: FilterNode, path: string): readonly string[] | undefined => {
  const of = (value: FilterValue, literals: readonly Literal[]): readonly string[] | undefined =>
    value.kind === 'field' && value.field.path.join('.') === path
      ? textsOf(value.field, literals)
      : undefined;
  if (node.op === 'in') return of(node.value, node.list);
  if (node.op !== '==') return undefined;
  const { left, right } = node;
  if (right.kind === 'literal' && right.value !== null) return of(left, [right.value]);
  return left.kind === 'literal' && left.value !== null ? of(right, [left.value]) : undefined;
};

const textsOf = (field: FieldPath, literals: readonly Literal[]): readonly string[] | undefined => {
  if (field.type === 'string')
    return [...new Set(literals.filter((literal): literal is string => typeof literal === 'string'))];
  if (field.type !== 'enum') return undefined;
  return Object.entries(field.enumNumbers ?? {})
    .filter(([, number]) => literals.some((literal) => literal === number))
    .map(([name]) => name);
};
