import { InvalidArgumentError } from 'commander';

/** What `label` and `annotate` are told: `key=value` sets, `key-` removes. */
export type MapChange = { readonly key: string; readonly value: string | undefined };

/** Splits arguments into names of objects and changes; `lacking` says what to give. Throws InvalidArgumentError. */
export const splitChanges = (
  args: readonly string[],
  lacking = {
    changes: 'give what to change: key=value sets, key- removes',
    names: 'give the id or name of what to change',
  },
): { readonly names: readonly string[]; readonly changes: readonly MapChange[] } => {
  const names: string[] = [];
  const changes: MapChange[] = [];
  for (const arg of args) {
    const at = arg.indexOf('=');
    if (at === 0) throw new InvalidArgumentError(`"${arg}" has no key in front of the "="`);
    if (at > 0) changes.push({ key: arg.slice(0, at), value: arg.slice(at + 1) });
    else if (arg.length > 1 && arg.endsWith('-')) changes.push({ key: arg.slice(0, -1), value: undefined });
    else names.push(arg);
  }
  const twice = changes.find(({ key }, i) => changes.findIndex((other) => other.key === key) !== i);
  if (twice !== undefined) throw new InvalidArgumentError(`"${twice.key}" is given more than once`);
  if (changes.length === 0) throw new InvalidArgumentError(lacking.changes);
  if (names.length === 0) throw new InvalidArgumentError(lacking.names);
  return { names, changes };
};

/** The whole map after the changes; undefined when it stays as it is. Keys may be any text, `__proto__` too. */
export const changedMap = (
  before: { readonly [key: string]: string },
  changes: readonly MapChange[],
): { [key: string]: string } | undefined => {
  const map = new Map(Object.entries(before));
  let changed = false;
  for (const { key, value } of changes) {
    if (map.get(key) === value) continue;
    changed = true;
    if (value === undefined) map.delete(key);
    else map.set(key, value);
  }
  return changed ? Object.fromEntries(map) : undefined;
};
