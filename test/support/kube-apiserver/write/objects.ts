import { randomUUID } from 'node:crypto';
import { isObject, sameJson } from '../../../../src/domain/json-tools.ts';
import {
  alreadyExists,
  badRequest,
  cause,
  conflict,
  forbidden,
  invalid,
  invalidValue,
  notFound,
  type Cause,
} from '../errors.ts';
import type { Store } from '../store.ts';
import {
  apiVersionOf,
  type JsonObject,
  type Kind,
  type KubeObject,
  type ManagedFields,
  type ObjectMeta,
  type User,
} from '../types.ts';
import { trackUpdate, withManaged } from './managed-fields.ts';
import { metadataFaults, metadataStepFaults, nameFaults, nameSuffix } from './metadata.ts';

/** Who writes, and how. */
export type WriteContext = {
  readonly user: User;
  /** Field manager: the parameter, or the first part of the User-Agent. */
  readonly manager: string;
  readonly subresource?: 'status' | 'finalize';
  readonly dryRun?: boolean;
  readonly strict?: boolean;
  /** Paths of unknown fields that were dropped; the answer warns of them. */
  readonly dropped?: string[];
  /** `managedFields` as server-side apply worked them out; otherwise they follow from what changed. */
  readonly managed?: readonly ManagedFields[];
};

export type DeleteOptions = {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  readonly dryRun?: boolean;
};

/** Looks at an object before it is stored, and may change or refuse it. */
export type Admission = (
  kind: Kind,
  object: KubeObject,
  before: KubeObject | undefined,
  context: WriteContext,
) => KubeObject;

export type Objects = ReturnType<typeof createObjects>;

/** Creation, change and deletion of objects with everything that the server decides about them. */
export const createObjects = (store: Store, now: () => Date, admission: Admission) => {
  const stamp = (): string => `${now().toISOString().slice(0, 19)}Z`;

  const checked = (kind: Kind, object: KubeObject, before: KubeObject | undefined): KubeObject => {
    const { name } = object.metadata;
    const faults: Cause[] = before === undefined ? nameFaults(kind, name) : [];
    faults.push(...metadataFaults(object.metadata));
    if (before !== undefined) faults.push(...metadataStepFaults(before.metadata, object.metadata));
    if (kind.schema !== undefined && faults.length === 0) {
      faults.push(...kind.schema.faults(object as JsonObject, before as JsonObject | undefined));
    }
    if (faults.length > 0) throw invalid(kind.kind, kind.group, name, faults);
    return object;
  };

  const admitted = (kind: Kind, body: JsonObject, context: WriteContext): JsonObject => {
    if (kind.schema === undefined) return body;
    const { object, dropped } = kind.schema.admit(body);
    if (context.strict === true && dropped.length > 0) {
      const fields = dropped.map((path) => `unknown field "${path}"`).join(', ');
      throw badRequest(`strict decoding error: ${fields}`);
    }
    context.dropped?.push(...dropped);
    return object;
  };

  const owned = (
    kind: Kind,
    before: KubeObject | undefined,
    object: KubeObject,
    context: WriteContext,
  ): KubeObject =>
    context.managed === undefined
      ? trackUpdate(kind, before, object, context, stamp())
      : withManaged(object, context.managed);

  const create = (kind: Kind, namespace: string, body: JsonObject, context: WriteContext): KubeObject => {
    checkType(kind, body);
    const given = (isObject(body['metadata']) ? body['metadata'] : {}) as unknown as Partial<ObjectMeta>;
    checkNamespace(kind, namespace, given);
    if (given.resourceVersion !== undefined && given.resourceVersion !== '') {
      throw badRequest('resourceVersion should not be set on objects to be created');
    }
    const name = nameFor(store, kind, namespace, given);
    requireLivingNamespace(store, kind, namespace, name);
    const { status, ...rest } = admitted(kind, body, context);
    const keepsStatus = !kind.statusSubresource && status !== undefined;
    const metadata = freshMeta(kind, namespace, given, name, stamp());
    const object = { ...rest, ...(keepsStatus ? { status } : {}), ...typeOf(kind), metadata } as KubeObject;
    const ready = checked(kind, admission(kind, object, undefined, context), undefined);
    const taken = store.get(kind, namespace, name);
    if (taken !== undefined) throw alreadyExists(kind, name, taken.metadata.deletionTimestamp !== undefined);
    const tracked = owned(kind, undefined, ready, context);
    return context.dryRun === true ? tracked : store.put(kind, tracked);
  };

  /** The object as a PUT or patch leaves it. `written` is the whole object as the caller wants it. */
  const update = (
    kind: Kind,
    current: KubeObject,
    written: JsonObject,
    context: WriteContext,
    isPut: boolean,
  ): KubeObject => {
    checkType(kind, written);
    const wanted = (isObject(written['metadata'])
      ? written['metadata']
      : {}) as unknown as Partial<ObjectMeta>;
    checkPreconditions(kind, current, wanted, isPut);
    const merged = mergedFor(kind, current, admitted(kind, written, context), wanted, context);
    const counted = kind.counted && specChanged(current, merged);
    const object = counted
      ? { ...merged, metadata: { ...merged.metadata, generation: (current.metadata.generation ?? 0) + 1 } }
      : merged;
    const ready = checked(kind, admission(kind, object, current, context), current);
    const tracked = owned(kind, current, ready, context);
    if (context.dryRun === true) return tracked;
    return isFinished(tracked) ? store.remove(kind, tracked) : store.put(kind, tracked);
  };

  /** The object with its deletion noted, or its last form when nothing holds it. */
  const remove = (
    kind: Kind,
    current: KubeObject,
    options: DeleteOptions,
  ): { gone: boolean; object: KubeObject } => {
    checkDeletePreconditions(kind, current, options);
    const finalizers = [...(current.metadata.finalizers ?? []), ...propagationFinalizers(current, options)];
    const isNamespace = kind.group === '' && kind.plural === 'namespaces';
    if (options.dryRun === true) return { gone: finalizers.length === 0 && !isNamespace, object: current };
    if (finalizers.length === 0 && !isNamespace) return { gone: true, object: store.remove(kind, current) };
    if (current.metadata.deletionTimestamp !== undefined) {
      if (isFinished(current)) return { gone: true, object: store.remove(kind, current) };
      return { gone: false, object: current };
    }
    const { generation } = current.metadata;
    const metadata: ObjectMeta = {
      ...current.metadata,
      ...(finalizers.length === 0 ? {} : { finalizers }),
      deletionTimestamp: stamp(),
      ...(isNamespace ? {} : { deletionGracePeriodSeconds: 0 }),
      ...(generation === undefined ? {} : { generation: generation + 1 }),
    };
    const status = isNamespace
      ? { status: { ...(current['status'] as JsonObject), phase: 'Terminating' } }
      : {};
    return { gone: false, object: store.put(kind, { ...current, ...status, metadata }) };
  };

  return { create, update, remove, stamp };
};

const typeOf = (kind: Kind): { apiVersion: string; kind: string } => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
});

const checkType = (kind: Kind, body: JsonObject): void => {
  const wanted = typeOf(kind);
  if (body['kind'] === undefined && kind.custom) throw badRequest("Object 'Kind' is missing");
  if (body['apiVersion'] !== undefined && body['apiVersion'] !== wanted.apiVersion) {
    const given = JSON.stringify(body['apiVersion']);
    throw badRequest(
      `the API version in the data (${given}) does not match the expected API version (${wanted.apiVersion})`,
    );
  }
  if (body['kind'] === undefined || body['kind'] === wanted.kind) return;
  if (!kind.custom) throw badRequest(`${JSON.stringify(body['kind'])} cannot be handled as a ${wanted.kind}`);
  const metadata = isObject(body['metadata']) ? body['metadata'] : {};
  const fault = invalidValue('kind', body['kind'], `must be ${wanted.kind}`);
  throw invalid(kind.kind, kind.group, typeof metadata['name'] === 'string' ? metadata['name'] : '', [fault]);
};

const checkNamespace = (kind: Kind, namespace: string, given: Partial<ObjectMeta>): void => {
  const named = given.namespace ?? '';
  if (kind.namespaced && named !== '' && named !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
};

const nameFor = (store: Store, kind: Kind, namespace: string, given: Partial<ObjectMeta>): string => {
  if (given.name !== undefined && given.name !== '') return given.name;
  const base = given.generateName ?? '';
  if (base === '') {
    const fault = cause(
      'metadata.name',
      'FieldValueRequired',
      'Required value: name or generateName is required',
    );
    throw invalid(kind.kind, kind.group, '', [fault]);
  }
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const name = base.slice(0, 58) + nameSuffix();
    if (store.get(kind, namespace, name) === undefined) return name;
  }
  throw alreadyExists(kind, base, false);
};

const requireLivingNamespace = (store: Store, kind: Kind, namespace: string, name: string): void => {
  if (!kind.namespaced) return;
  const namespaces = store.find('', 'namespaces');
  const found = namespaces === undefined ? undefined : store.get(namespaces, '', namespace);
  if (found === undefined) throw notFound({ plural: 'namespaces', group: '' }, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  throw forbidden(kind, name, why, [cause('metadata.namespace', 'NamespaceTerminating', message)]);
};

/** What the server decides about a new object's metadata, beside what the caller may. */
const freshMeta = (
  kind: Kind,
  namespace: string,
  given: Partial<ObjectMeta>,
  name: string,
  at: string,
): ObjectMeta => {
  const {
    deletionTimestamp: _deleted,
    deletionGracePeriodSeconds: _grace,
    managedFields: _managed,
    generation: _generation,
    namespace: _namespace,
    ...rest
  } = given;
  return {
    ...rest,
    name,
    ...(kind.namespaced ? { namespace } : {}),
    uid: randomUUID(),
    resourceVersion: '',
    creationTimestamp: at,
    ...(kind.counted ? { generation: 1 } : {}),
  };
};

const checkPreconditions = (
  kind: Kind,
  current: KubeObject,
  wanted: Partial<ObjectMeta>,
  isPut: boolean,
): void => {
  const { name, uid, resourceVersion } = current.metadata;
  if (wanted.name !== undefined && wanted.name !== name) {
    throw badRequest(`the name of the object (${wanted.name}) does not match the name on the URL (${name})`);
  }
  if (wanted.uid !== undefined && wanted.uid !== '' && wanted.uid !== uid) {
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${wanted.uid}, UID in object meta: ${uid}`,
    );
  }
  const expected = wanted.resourceVersion ?? '';
  if (expected === '' && isPut && !kind.unconditionalUpdate) {
    const fault = cause(
      'metadata.resourceVersion',
      'FieldValueInvalid',
      'Invalid value: 0: must be specified for an update',
    );
    throw invalid(kind.plural, kind.group, name, [fault]);
  }
  if (expected !== '' && expected !== resourceVersion) throw conflict(kind, name);
};

const checkDeletePreconditions = (kind: Kind, current: KubeObject, options: DeleteOptions): void => {
  const { name, uid, resourceVersion } = current.metadata;
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`,
    );
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    const why = `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`;
    throw conflict(kind, name, why);
  }
};

/** A write of one part leaves the other as it was: status by /status, everything else by the main resource. */
const mergedFor = (
  kind: Kind,
  current: KubeObject,
  written: JsonObject,
  wanted: Partial<ObjectMeta>,
  context: WriteContext,
): KubeObject => {
  if (context.subresource === 'finalize') return { ...current, spec: written['spec'] ?? {} };
  if (context.subresource === 'status') {
    const { status: _old, ...rest } = current;
    return {
      ...rest,
      ...(written['status'] === undefined ? {} : { status: written['status'] }),
    } as KubeObject;
  }
  const { status: _status, ...rest } = written;
  const status = kind.statusSubresource ? current['status'] : written['status'];
  return {
    ...rest,
    ...(status === undefined ? {} : { status }),
    ...typeOf(kind),
    metadata: keptMeta(current.metadata, wanted),
  } as KubeObject;
};

const keptMeta = (current: ObjectMeta, wanted: Partial<ObjectMeta>): ObjectMeta => {
  const { generation, deletionTimestamp, deletionGracePeriodSeconds, managedFields } = current;
  const {
    generation: _generation,
    deletionTimestamp: _deleted,
    deletionGracePeriodSeconds: _grace,
    managedFields: _managed,
    ...rest
  } = wanted;
  return {
    ...withoutEmptyMaps(rest),
    name: current.name,
    ...(current.namespace === undefined ? {} : { namespace: current.namespace }),
    uid: current.uid,
    resourceVersion: current.resourceVersion,
    creationTimestamp: current.creationTimestamp,
    ...(generation === undefined ? {} : { generation }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    ...(managedFields === undefined ? {} : { managedFields }),
  };
};

const withoutEmptyMaps = <T extends object>(meta: T): T =>
  Object.fromEntries(
    Object.entries(meta).filter(
      ([, value]) =>
        value !== null && !(typeof value === 'object' && Object.keys(value as object).length === 0),
    ),
  ) as T;

const specChanged = (before: KubeObject, after: KubeObject): boolean => {
  const part = ({ metadata: _metadata, status: _status, ...rest }: KubeObject): object => rest;
  return !sameJson(part(before), part(after));
};

/** Deleted, and nobody holds it any more. */
const isFinished = ({ metadata, spec, kind, apiVersion }: KubeObject): boolean => {
  if (metadata.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return false;
  if (kind !== 'Namespace' || apiVersion !== 'v1') return true;
  const own = isObject(spec as JsonObject) ? (spec as JsonObject)['finalizers'] : undefined;
  return !Array.isArray(own) || own.length === 0;
};

const propagationFinalizers = ({ metadata }: KubeObject, { propagation }: DeleteOptions): string[] => {
  const wanted =
    propagation === 'Foreground' ? 'foregroundDeletion' : propagation === 'Orphan' ? 'orphan' : undefined;
  return wanted === undefined || (metadata.finalizers ?? []).includes(wanted) ? [] : [wanted];
};
