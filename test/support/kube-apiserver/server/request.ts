import type { Attempt } from '../access/rbac.ts';

/** What a path and a method ask for. */
export type Target = {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
};

/** Undefined: no path of a resource (discovery, health, nonsense). */
export const targetOf = (method: string, path: string, query: URLSearchParams): Target | undefined => {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decoded);
  if (parts.some((part) => part === undefined)) return undefined;
  const [root = '', ...rest] = parts as string[];
  const known = root === 'api' || root === 'apis';
  const [group = '', version = '', ...tail] = root === 'api' ? ['', ...rest] : rest;
  if (!known || version === '' || tail.length === 0) return undefined;
  const place = placeOf(tail);
  return { verb: verbOf(method, place.name, query), group, version, ...place };
};

type Place = Pick<Target, 'resource' | 'namespace' | 'name' | 'subresource'>;

const placeOf = (tail: readonly string[]): Place => {
  const [first = '', second, third, ...more] = tail;
  const ofNamespaceItself = third === undefined || ['status', 'finalize'].includes(third);
  if (first === 'namespaces' && second !== undefined && !ofNamespaceItself) {
    return { namespace: second, ...named(third, more[0], more[1]) };
  }
  return named(first, second, third);
};

const named = (resource: string, name: string | undefined, subresource: string | undefined): Place => ({
  resource,
  ...(name === undefined ? {} : { name }),
  ...(subresource === undefined ? {} : { subresource }),
});

const verbOf = (method: string, name: string | undefined, query: URLSearchParams): string => {
  switch (method) {
    case 'GET':
      if (isTrue(query.get('watch'))) return 'watch';
      return name === undefined ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete';
    default:
      return method.toLowerCase();
  }
};

const isTrue = (value: string | null): boolean => value === 'true' || value === '1';

const decoded = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
};

/** The question that the authorizer is asked. A namespace itself counts as a resource inside it. */
export const attemptOf = ({ verb, group, resource, namespace, name, subresource }: Target): Attempt => {
  const place = group === '' && resource === 'namespaces' ? name : namespace;
  return {
    verb,
    group,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    ...(place === undefined ? {} : { namespace: place }),
    ...(name === undefined ? {} : { name }),
  };
};
