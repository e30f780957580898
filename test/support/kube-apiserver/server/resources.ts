import { parse as parseYaml } from 'yaml';
import { isObject, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { badRequest, notFound, unsupportedMediaType, methodNotAllowed } from '../errors.ts';
import type { Lists } from '../read/list.ts';
import { fieldSelector, labelSelector } from '../read/selectors.ts';
import type { Store } from '../store.ts';
import type { JsonObject, JsonValue, Kind, KubeObject, User } from '../types.ts';
import { applyPatch } from '../write/apply.ts';
import { jsonPatch, mergePatch } from '../write/json-patch.ts';
import type { DeleteOptions, Objects, WriteContext } from '../write/objects.ts';
import type { Target } from './request.ts';

export type ResourceCall = {
  readonly kind: Kind;
  readonly target: Target;
  readonly query: URLSearchParams;
  readonly user: User;
  /** Field manager when the query names none. */
  readonly agent: string;
  readonly contentType: string;
  readonly body: string;
};

export type Answer = {
  readonly code: number;
  readonly body: JsonObject | string;
  readonly headers?: { readonly [name: string]: string };
};

/** Everything but watches that can be done with a stored kind. */
export const createResources = (store: Store, objects: Objects, lists: Lists) => {
  const existing = ({ kind, target }: ResourceCall): KubeObject => {
    const name = target.name ?? '';
    const found = store.get(kind, target.namespace ?? '', name);
    if (found === undefined) throw notFound(kind, name);
    return found;
  };

  const create = (call: ResourceCall): Answer => {
    const context = contextOf(call);
    const created = objects.create(call.kind, call.target.namespace ?? '', parsed(call), context);
    return shown(201, created, context);
  };

  const update = (call: ResourceCall): Answer => {
    const context = contextOf(call);
    return shown(200, objects.update(call.kind, existing(call), parsed(call), context, true), context);
  };

  const patch = (call: ResourceCall): Answer => {
    const context = contextOf(call);
    const type = call.contentType;
    if (type === 'application/apply-patch+yaml') {
      const { created, object } = applyPatch(store, objects, call, parsed(call), context);
      return shown(created ? 201 : 200, object, context);
    }
    const current = existing(call);
    const document = current as unknown as JsonObject;
    const body = parsedValue(call);
    const accepted = PATCHES.filter((one) => !(call.kind.custom && one === STRATEGIC));
    if (!accepted.includes(type)) throw unsupportedMediaType(accepted);
    // Strategic merge is played as merge: what we send to core kinds has no lists with merge keys.
    const patched =
      type === 'application/json-patch+json' ? jsonPatch(document, body) : mergePatch(document, body);
    if (!isObject(patched)) throw badRequest('the patched object is not an object');
    return shown(200, objects.update(call.kind, current, patched, context, false), context);
  };

  const remove = (call: ResourceCall): Answer => {
    const current = existing(call);
    const { gone, object } = objects.remove(call.kind, current, deleteOptions(call));
    if (!gone) return { code: 200, body: object as unknown as JsonObject };
    const { group, plural } = call.kind;
    const { name, uid } = current.metadata;
    const details = { name, ...(group === '' ? {} : { group }), kind: plural, uid };
    return {
      code: 200,
      body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details },
    };
  };

  const removeAll = (call: ResourceCall): Answer => {
    const labels = labelSelector(call.query.get('labelSelector') ?? undefined);
    const fields = fieldSelector(call.kind, call.query.get('fieldSelector') ?? undefined);
    const answer = lists.list(call.kind, call.target.namespace, new URLSearchParams());
    const options = deleteOptions(call);
    const chosen = store.list(call.kind, call.target.namespace).filter((one) => labels(one) && fields(one));
    for (const object of chosen) objects.remove(call.kind, object, options);
    return { code: 200, body: { ...answer, items: chosen as unknown as JsonValue[] } };
  };

  return {
    handle: (call: ResourceCall): Answer => {
      switch (call.target.verb) {
        case 'list':
          return { code: 200, body: lists.list(call.kind, call.target.namespace, call.query) };
        case 'get':
          return { code: 200, body: existing(call) as unknown as JsonObject };
        case 'create':
          if (call.target.name !== undefined) throw methodNotAllowed();
          return create(call);
        case 'update':
          return update(call);
        case 'patch':
          return patch(call);
        case 'delete':
          return remove(call);
        case 'deletecollection':
          return removeAll(call);
        default:
          throw methodNotAllowed();
      }
    },
  };
};

const STRATEGIC = 'application/strategic-merge-patch+json';
const PATCHES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  STRATEGIC,
  'application/apply-patch+yaml',
];

const contextOf = ({ query, user, agent, target }: ResourceCall): WriteContext => ({
  user,
  manager: query.get('fieldManager') ?? agent,
  ...(target.subresource === 'status' || target.subresource === 'finalize'
    ? { subresource: target.subresource }
    : {}),
  dryRun: query.get('dryRun') === 'All',
  strict: query.get('fieldValidation') === 'Strict',
  dropped: [],
});

const shown = (code: number, object: KubeObject, { dropped = [] }: WriteContext): Answer => {
  const warning = dropped.map((path) => `299 - "unknown field \\"${path}\\""`).join(', ');
  const body = object as unknown as JsonObject;
  return warning === '' ? { code, body } : { code, body, headers: { warning } };
};

const YAML = ['application/yaml', 'application/apply-patch+yaml'];

const parsedValue = ({ body, contentType }: ResourceCall): JsonValue => {
  try {
    return (YAML.includes(contentType) ? parseYaml(body) : JSON.parse(body)) as JsonValue;
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
};

const parsed = (call: ResourceCall): JsonObject => {
  const { contentType } = call;
  if (contentType !== '' && contentType !== 'application/json' && !YAML.includes(contentType)) {
    throw unsupportedMediaType([
      'application/json',
      'application/yaml',
      'application/vnd.kubernetes.protobuf',
    ]);
  }
  const value = parsedValue(call);
  if (!isObject(value)) throw badRequest('the body of the request is not an object');
  return value;
};

const deleteOptions = (call: ResourceCall): DeleteOptions => {
  const body = call.body === '' ? {} : parsed({ ...call, contentType: '' });
  const conditions = objectAt(body, 'preconditions');
  const [uid, resourceVersion] = [stringAt(conditions, 'uid'), stringAt(conditions, 'resourceVersion')];
  const policy = call.query.get('propagationPolicy') ?? stringAt(body, 'propagationPolicy');
  return {
    ...(uid === '' ? {} : { uid }),
    ...(resourceVersion === '' ? {} : { resourceVersion }),
    ...(policy === 'Foreground' || policy === 'Orphan' ? { propagation: policy } : {}),
    ...(call.query.get('dryRun') === 'All' ? { dryRun: true } : {}),
  };
};
