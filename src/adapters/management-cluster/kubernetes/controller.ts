import { HubError, type CallOptions, type HubController } from '../../../app/hubs/management-cluster.ts';
import type {
  Companion,
  Controlled,
  ObjectPlace,
  ObjectType,
  OwnedObject,
} from '../../../domain/hubs/hub-object.ts';
import type { Condition } from '../../../domain/hubs/hub-codecs.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { isObject, listAt, objectAt, sameJson, stringAt } from '../../../domain/json-tools.ts';
import type { Api } from './api.ts';
import { ensure, listed } from './objects.ts';

/** Others write the object, too: a change that met one of theirs is made again. */
const ATTEMPTS = 4;
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const MAX_REASON = 1_024;
const MAX_MESSAGE = 32_768;

/**
 * The controller's part (OSAC's operator), for hubs where nobody else reconciles
 * what a kind declares. `hubNamespace`: where the service account `hub-access` is, which may read every cluster.
 */
export const hubController = (api: Api, hubNamespace: string, now: () => string): HubController => {
  /** Read, change, write on the version that was read: finalizers and conditions of others survive. */
  const rewrite = async (
    kind: OwnedObject,
    place: ObjectPlace,
    change: (object: JsonObject) => JsonObject | undefined,
    by: CallOptions,
    part?: 'status',
  ): Promise<'written' | 'unchanged'> => {
    for (let attempt = 1; ; attempt += 1) {
      const object = await api.get(kind, place, by);
      if (object === undefined) throw new HubError('not-found', `${kind.kind} ${place.name} is not there`);
      const patch = change(object);
      if (patch === undefined) return 'unchanged';
      const resourceVersion = stringAt(objectAt(object, 'metadata'), 'resourceVersion');
      const locked = { ...patch, metadata: { ...objectAt(patch, 'metadata'), resourceVersion } };
      try {
        await api.mergePatch(kind, { ...place, ...(part === undefined ? {} : { part }) }, locked, by);
        return 'written';
      } catch (error) {
        if (!(error instanceof HubError) || error.kind !== 'conflict' || attempt >= ATTEMPTS) throw error;
      }
    }
  };

  return {
    prepare: async (kind, { namespace, name }, by) => {
      const place = { namespace, name };
      const { finalizer, companions } = controlledOf(kind);
      const created: string[] = [];
      const written = await rewrite(kind, place, withFinalizer(kind, name, finalizer), by);
      if (written === 'written') created.push(`finalizer ${finalizer}`);
      const [own, ...inside] = companions(place, hubNamespace);
      const label = kind.backLabel ?? '';
      if (await ensure(api, own, label, by)) created.push(`${own.word} ${own.name}`);
      await onlyNamespaceOf(api, kind, own, name, by);
      for (const one of inside)
        if (await ensure(api, one, label, by)) created.push(`${one.word} ${one.namespace}/${one.name}`);
      return { created };
    },

    writeStatus: async (kind, { namespace, name }, status, by) => {
      const place = { namespace, name };
      const wanted = controlledOf(kind).status(place, status as never);
      await rewrite(
        kind,
        place,
        (object) => statusPatch(wanted, status.conditions, object, now()),
        by,
        'status',
      );
    },

    release: async (kind, { namespace, name }, by) => {
      const place = { namespace, name };
      const controlled = controlledOf(kind);
      const object = await api.get(kind, place, by);
      if (object === undefined) return { released: true, waitingFor: [] };
      if (stringAt(objectAt(object, 'metadata'), 'deletionTimestamp') === '')
        throw new HubError('conflict', `${kind.kind} ${name} is not being deleted`);
      const [own] = controlled.companions(place, hubNamespace);
      const waitingFor = await endOfNamespace(api, kind, controlled, own, place, by);
      if (waitingFor.length > 0) return { released: false, waitingFor };
      await rewrite(kind, place, withoutFinalizer(controlled.finalizer), by).catch(asGone);
      const left = finalizersOf(object).filter((one) => one !== controlled.finalizer);
      return { released: true, waitingFor: left.map((one) => `finalizer ${one}`) };
    },
  };
};

const controlledOf = ({ kind, controlled }: OwnedObject): Controlled => {
  if (controlled === undefined) throw new HubError('invalid', `nothing here reconciles ${kind}`);
  return controlled;
};

/** It went meanwhile, which is what was wanted. */
const asGone = (error: unknown): void => {
  if (!(error instanceof HubError) || error.kind !== 'not-found') throw error;
};

const finalizersOf = (object: JsonObject): readonly string[] =>
  listAt(objectAt(object, 'metadata'), 'finalizers').filter((one) => typeof one === 'string');

const withFinalizer =
  ({ kind }: OwnedObject, name: string, finalizer: string) =>
  (object: JsonObject): JsonObject | undefined => {
    const finalizers = finalizersOf(object);
    if (finalizers.includes(finalizer)) return undefined;
    // An API server takes no new finalizer then.
    if (stringAt(objectAt(object, 'metadata'), 'deletionTimestamp') !== '')
      throw new HubError('conflict', `${kind} ${name} is being deleted`);
    return { metadata: { finalizers: [...finalizers, finalizer] } };
  };

const withoutFinalizer =
  (finalizer: string) =>
  (object: JsonObject): JsonObject | undefined => {
    const finalizers = finalizersOf(object);
    if (!finalizers.includes(finalizer)) return undefined;
    return { metadata: { finalizers: finalizers.filter((one) => one !== finalizer) } };
  };

/** The Ansible content finds the namespace by label and wants exactly one. */
const onlyNamespaceOf = async (
  api: Api,
  { kind, backLabel }: OwnedObject,
  { of }: Companion,
  name: string,
  by: CallOptions,
): Promise<void> => {
  const found = await listed(api, of, { labelSelector: `${backLabel}=${name}`, metadataOnly: true }, by);
  if (found.length > 1)
    throw new HubError(
      'conflict',
      `${found.length} namespaces are labelled for ${kind} ${name}; remove all but one`,
    );
};

const statusPatch = (
  wanted: JsonObject,
  conditions: readonly Condition[],
  object: JsonObject,
  now: string,
): JsonObject | undefined => {
  const before = objectAt(object, 'status');
  const rendered: JsonObject = { ...wanted, conditions: mergedConditions(before, conditions, now) };
  const changes = Object.fromEntries(
    Object.entries(rendered).filter(([field, value]) => !sameJson(before[field] ?? null, value)),
  );
  return Object.keys(changes).length === 0 ? undefined : { status: changes };
};

/** Ours by type, those of others as they are. A time moves only when the status does, so that equal is unchanged. */
const mergedConditions = (
  before: JsonObject,
  conditions: readonly Condition[],
  now: string,
): JsonObject[] => {
  const stored = listAt(before, 'conditions').filter(isObject);
  const ours = new Set(conditions.map(({ type }) => type));
  const rendered = conditions.map((condition) => {
    const known = stored.find(({ type }) => type === condition.type);
    const same = known !== undefined && known['status'] === condition.status;
    const since = same ? stringAt(known, 'lastTransitionTime') : (condition.lastTransitionTime ?? now);
    const reason = (condition.reason ?? '').slice(0, MAX_REASON);
    return {
      type: condition.type,
      status: condition.status,
      reason: REASON.test(reason) ? reason : 'AsExpected',
      message: (condition.message ?? '').slice(0, MAX_MESSAGE).toWellFormed(),
      lastTransitionTime: wholeSeconds(since === '' ? now : since),
    };
  });
  return [...stored.filter((one) => !ours.has(stringAt(one, 'type'))), ...rendered];
};

const wholeSeconds = (time: string): string => time.replace(/\.\d+Z$/, 'Z');

/** What must still go; asks for it once nothing is left in it. A namespace that is not of this object stays. */
const endOfNamespace = async (
  api: Api,
  kind: OwnedObject,
  { before }: Controlled,
  own: Companion,
  place: ObjectPlace,
  by: CallOptions,
): Promise<readonly string[]> => {
  const { name } = own;
  const namespace = await api.get(own.of, { name }, by);
  const metadata = objectAt(namespace, 'metadata');
  if (namespace === undefined || stringAt(objectAt(metadata, 'labels'), kind.backLabel ?? '') !== place.name)
    return [];
  const held = finalizersOf(namespace).map((one) => `finalizer ${one} of namespace ${name}`);
  if (stringAt(metadata, 'deletionTimestamp') !== '') return [`namespace ${name}`, ...held];
  const inside = before.at(place);
  if (await isThere(api, before.of, inside, by))
    return [`${before.of.kind} ${inside.namespace}/${inside.name}`];
  await api.remove(own.of, { name }, by, stringAt(metadata, 'uid'));
  return [`namespace ${name}`, ...held];
};

/** Of a kind that the hub does not have there is none. Without the right to look, the namespace must not go. */
const isThere = async (api: Api, kind: ObjectType, place: ObjectPlace, by: CallOptions): Promise<boolean> => {
  try {
    return (await api.get(kind, place, by)) !== undefined;
  } catch (error) {
    if (error instanceof HubError && error.kind === 'not-ready') return false;
    throw error;
  }
};
