import { createHash, createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { digestOfLook, HubError, type ObjectLook } from '../../../app/hubs/management-cluster.ts';
import type { Manifest, ObjectPlace } from '../../../domain/hubs/hub-object.ts';
import { SUBNET } from '../../../domain/networks/hub-objects.ts';
import {
  invalidObject,
  type Behaviour,
  type Beside,
  type Life,
  type Living,
} from './behaviours/behaviour.ts';
import { BEHAVIOURS } from './behaviours/behaviours.ts';
import { addressIn } from './behaviours/machines.ts';
import type { HubFile } from './hub-file.ts';
import type { CallRequest, Tampering } from './protocol.ts';
import { shareHosts } from './rack.ts';
import type { ObjectRecord, Write } from './record.ts';
import { BadSimulationSetting } from '../../simulation/settings.ts';
import { lifeSettings, parseSettings, type GivenSettings } from './settings.ts';

/** The annotation that asks for a behaviour; with or without a prefix. */
const SIMULATION_ANNOTATION = /^([^/]*\/)?simulation$/;

/** What a call is about: the living object behind it, if there is one. */
export type Target = {
  readonly namespace: string;
  readonly name: string;
} & (Found | { readonly record: undefined });
/** `life`: as it is at the time of the call. */
type Found = { readonly record: ObjectRecord; readonly life: Life };

/** Objects whose lives are kept at hand: those that change at the moment are asked for at each of their changes. */
const LIVES_KEPT = 256;
/** Objects at rest whose digests are: small, and asked for in each round. */
const RESTING_KEPT = 20_000;
/** `text` goes into the journal. */
export type Result = { readonly value: unknown; readonly text: string };

/** The hub's API server: objects in the file, read and written by name at a hub time. Runs inside transactions. */
export const createApiServer = (
  file: HubFile,
  options: {
    readonly hubId: string;
    /** Namespaces that exist; empty: every one does. */
    readonly namespaces: readonly string[];
    readonly baseDomain: string;
    /** From which uids and credentials are derived. */
    readonly secret: string;
    readonly hubSettings: () => GivenSettings;
    /** Default: those of all declared kinds. */
    readonly behaviours?: readonly Behaviour[];
  },
) => {
  const { behaviours = BEHAVIOURS } = options;
  const behaviourOf = (kind: string): Behaviour => {
    const found = behaviours.find((one) => one.kind.kind === kind);
    if (found === undefined) throw new HubError('not-ready', `simulated: the hub has no kind ${kind}`);
    return found;
  };

  /** By the text that is stored: another text is another life. */
  const lives = new LRUCache<string, { readonly record: ObjectRecord; readonly live: Living }>({
    max: LIVES_KEPT,
  });
  /** Of objects that change by a write alone, by their last one. */
  const restingDigests = new LRUCache<string, string>({ maxSize: RESTING_KEPT, sizeCalculation: () => 1 });
  const knownBy = (text: string) => {
    const known = lives.get(text);
    if (known !== undefined) return known;
    const record = JSON.parse(text) as ObjectRecord;
    const made = { record, live: behaviourOf(record.kind).live(record) };
    lives.set(text, made);
    return made;
  };
  /** Remembers when the object turns out to be gone. */
  const noted = (record: ObjectRecord, life: Life): Life => {
    if (life.goneAt !== undefined) file.markGone(record.sequence, life.goneAt);
    return life;
  };
  const lifeOf = (text: string, now: number) => {
    const { record, live } = knownBy(text);
    return { record, life: noted(record, live(now)) };
  };
  const living = (text: string | undefined, now: number): Found | { readonly record: undefined } => {
    const found = text === undefined ? undefined : lifeOf(text, now);
    return found?.life.object === undefined ? { record: undefined } : found;
  };
  const named = (kind: string, { namespace, name }: ObjectPlace, now: number): Target => ({
    namespace,
    name,
    ...living(file.objectByName(kind, namespace, name), now),
  });

  /** Of a kind that lives beside another one: who brings it, and how it is shown. */
  const besideOf = (kind: string): { readonly owner: string; readonly beside: Beside } | undefined => {
    for (const { kind: owner, beside } of behaviours)
      for (const one of beside) if (one.kind.kind === kind) return { owner: owner.kind, beside: one };
    return undefined;
  };
  const besideTarget = (kind: string, ref: ObjectPlace, now: number): Target | undefined => {
    const found = besideOf(kind);
    if (found === undefined) return undefined;
    const text = file
      .objectsByName(found.owner, found.beside.recordName(ref.name))
      .find((one) => found.beside.isOf(knownBy(one).record, ref));
    return { namespace: ref.namespace, name: ref.name, ...living(text, now) };
  };

  const targetOf = (request: CallRequest, now: number): Target => {
    switch (request.op) {
      case 'create':
        return named(request.kind, request.manifest, now);
      case 'find': {
        const { kind, namespace, id } = request;
        const text = file.objectsById(kind, id).find((one) => knownBy(one).record.namespace === namespace);
        const name = text === undefined ? id : knownBy(text).record.name;
        return { namespace, name, ...living(text, now) };
      }
      case 'check':
      case 'digests':
        return { namespace: '', name: '', record: undefined };
      default:
        return besideTarget(request.kind, request.ref, now) ?? named(request.kind, request.ref, now);
    }
  };

  const wordOf = (kind: string, name: string): string => {
    const { plural, group } = behaviourOf(kind).kind;
    return `${plural}.${group} "${name}"`;
  };
  const notFound = (kind: string, name: string): HubError =>
    new HubError('not-found', `${wordOf(kind, name)} not found`);

  const bornWith = (record: ObjectRecord, now: number): Life => behaviourOf(record.kind).live(record)(now);

  /** After each creation and each end: there may be a host for somebody. */
  const shareAmong = ({ kind, life: { hosts } }: ObjectRecord, now: number): void => {
    const behaviour = behaviourOf(kind);
    const wanted = behaviour.hosts;
    if (wanted === undefined || hosts === '') return;
    const sharing = file.objectsOfKind(kind).filter(({ life }) => life.hosts === hosts);
    const changed = shareHosts(
      sharing,
      now,
      ({ spec }) => wanted(spec),
      (one) => behaviour.live(one)(Infinity).goneAt,
    );
    for (const one of changed) file.updateObject(one);
  };

  /** With an address in each subnet that it is new in. */
  const addressed = (record: ObjectRecord, spec: object): ObjectRecord => {
    const refs = behaviourOf(record.kind).subnets?.(spec) ?? [];
    const addresses = { ...record.addresses };
    for (const ref of refs) addresses[ref] ??= addressIn(...turnIn(record.namespace, ref)) ?? '';
    return refs.length === 0 ? record : { ...record, addresses };
  };
  const turnIn = (namespace: string, ref: string): [cidr: string, turn: number] => {
    const { kind } = SUBNET;
    const text = file.objectByName(kind, namespace, ref) ?? file.objectsById(kind, ref).at(-1);
    if (text === undefined) return ['', 0];
    const { uid, spec } = knownBy(text).record;
    const { ipv4Cidr, ipv6Cidr } = spec as { readonly ipv4Cidr?: string; readonly ipv6Cidr?: string };
    const turn = Number(file.getValue(`turn/${uid}`) ?? 0);
    file.setValue(`turn/${uid}`, String(turn + 1));
    return [ipv4Cidr ?? ipv6Cidr ?? '', turn];
  };

  const save = (record: ObjectRecord, write: Write, now: number): Life => {
    const changed: ObjectRecord = { ...record, writes: [...record.writes, write] };
    file.updateObject(changed);
    const life = noted(changed, bornWith(changed, now));
    if (write.kind !== 'patch' && write.kind !== 'status') shareAmong(changed, now);
    return life;
  };

  /** No secret lies in the hub's file: in its place stands what tells one from another. */
  const sealed = ({ kind }: Behaviour, spec: object): object => {
    const values: { [field: string]: unknown } = { ...spec };
    for (const field of kind.secretFields) {
      const value = values[field];
      if (typeof value !== 'string' || value === '') continue;
      const mac = createHmac('sha256', options.secret).update(value).digest('hex');
      values[field] = `not kept, hmac-sha256 ${mac}`;
    }
    return values;
  };

  const create = (
    behaviour: Behaviour,
    manifest: Manifest,
    target: Target,
    effectId: string,
    now: number,
  ): Result => {
    const { kind, idLabel } = behaviour.kind;
    behaviour.check(manifest);
    if (options.namespaces.length > 0 && !options.namespaces.includes(manifest.namespace)) {
      throw new HubError('not-found', `namespaces "${manifest.namespace}" not found`);
    }
    if (target.record !== undefined) throw alreadyExists(target);
    const id = manifest.labels[idLabel];
    // Former objects of this id get their end noted, so that the journal's readers can see that they had one.
    for (const former of id === undefined ? [] : file.objectsById(kind, id)) lifeOf(former, now);
    const sequence = file.nextSequence();
    const own = ownSettings(kind, manifest);
    const spec = sealed(behaviour, manifest.spec);
    const made: ObjectRecord = {
      kind,
      uid: uuidOf(`${options.secret}/${options.hubId}/${sequence}`),
      sequence,
      namespace: manifest.namespace,
      name: manifest.name,
      ...(id === undefined ? {} : { id }),
      labels: manifest.labels,
      annotations: manifest.annotations,
      createdAt: now,
      spec,
      configVersion: behaviour.versionOf(spec),
      life: lifeSettings(own, options.hubSettings()),
      faults: own,
      baseDomain: options.baseDomain,
      writes: [],
    };
    const record = addressed(made, spec);
    file.insertObject(record, effectId);
    shareAmong(record, now);
    return { value: bornWith(record, now).object, text: 'created' };
  };

  const alreadyExists = ({ record, life: { object } }: Found): HubError => {
    const text = `${wordOf(record.kind, record.name)} already exists`;
    const deleting = object?.deletionTimestamp !== undefined;
    const message = deleting ? `object is being deleted: ${text}` : text;
    return new HubError('already-exists', message, object === undefined ? {} : { object });
  };

  const patch = (behaviour: Behaviour, { record, life }: Found, change: object, now: number): Result => {
    const current = currentSpec(record);
    const spec = behaviour.merge(record.name, current, sealed(behaviour, change));
    const version = behaviour.versionOf(spec);
    // A merge patch that changes nothing moves neither generation nor resourceVersion.
    if (version === behaviour.versionOf(current)) return { value: life.object, text: 'unchanged' };
    const changed = save(
      addressed(record, spec),
      { at: now, kind: 'patch', spec, configVersion: version },
      now,
    );
    return { value: changed.object, text: 'patched' };
  };

  const patchStatus = (record: ObjectRecord, status: object, now: number): Result => ({
    value: save(record, { at: now, kind: 'status', status }, now).object,
    text: 'status patched',
  });

  const requestDeletion = (
    record: ObjectRecord | undefined,
    uid: string | undefined,
    now: number,
  ): Result => {
    if (record === undefined) return { value: false, text: 'absent' };
    if (uid !== undefined && uid !== record.uid) {
      const which = wordOf(record.kind, record.name);
      throw new HubError('conflict', `${which} has another uid than the one to be deleted`);
    }
    if (record.writes.some((write) => write.kind === 'delete'))
      return { value: true, text: 'already-deleting' };
    save(record, { at: now, kind: 'delete' }, now);
    return { value: true, text: 'deletion-requested' };
  };

  const read = (kind: string, target: Target, key: string): unknown => {
    if (target.record === undefined) return undefined;
    const { record, life, name } = target;
    if (record.kind === kind) return life.object;
    return besideOf(kind)?.beside.shown(record, life, { name, key, hubSecret: options.secret });
  };

  const digestAt = (
    kind: string,
    { place, beside }: ObjectLook,
    besideKind: string | undefined,
    now: number,
  ): string | null => {
    const write = file.writeOf(kind, place);
    if (write === undefined) return null;
    const asked = `${write.sequence} ${write.changed} ${beside?.namespace}/${beside?.name}`;
    const known = restingDigests.get(asked);
    if (known !== undefined) return known;
    const target = named(kind, place, now);
    // What an object asks for by its settings depends on calls for itself, which are counted.
    if (target.record === undefined || Object.keys(target.record.faults).length > 0) return null;
    const { object, nextAt } = target.life;
    if (object === undefined) return null;
    const other =
      beside === undefined || besideKind === undefined ? undefined : besideTarget(besideKind, beside, now);
    const digest = digestOfLook(object, (other && read(besideKind ?? '', other, '')) ?? null);
    if (nextAt === undefined) restingDigests.set(asked, digest);
    return digest;
  };

  const execute = (request: CallRequest, target: Target, effectId: string, now: number): Result => {
    const { record } = target;
    switch (request.op) {
      case 'create':
        return create(behaviourOf(request.kind), request.manifest, target, effectId, now);
      case 'patch':
        if (target.record === undefined) throw notFound(request.kind, request.ref.name);
        return request.ref.part === 'status'
          ? patchStatus(target.record, request.spec, now)
          : patch(behaviourOf(request.kind), target, request.spec, now);
      case 'delete':
        return requestDeletion(record, request.ref.uid, now);
      case 'get':
        return foundOrAbsent(read(request.kind, target, ''));
      case 'read-secret':
        return foundOrAbsent(read(request.kind, target, request.key));
      case 'find': {
        const found = file
          .objectsById(request.kind, request.id)
          .filter((one) => knownBy(one).record.namespace === request.namespace)
          .flatMap((one) => lifeOf(one, now).life.object ?? []);
        return { value: found, text: `found ${found.length}` };
      }
      case 'digests': {
        const { kind, looks, beside } = request;
        const value = looks.map((look) => digestAt(kind, look, beside, now));
        return { value, text: `found ${value.filter((digest) => digest !== null).length}` };
      }
      case 'check':
        return { value: undefined, text: 'found' };
    }
  };

  const tamper = (deed: Exclude<Tampering, { op: 'configure' }>, now: number): void => {
    const { record } = named(deed.kind, deed.ref, now);
    if (record === undefined) throw notFound(deed.kind, deed.ref.name);
    const write: Write =
      deed.op === 'vanish'
        ? { at: now, kind: 'vanish', what: deed.what }
        : { at: now, kind: 'remove-finalizer', finalizer: deed.finalizer };
    save(record, write, now);
  };

  return { targetOf, execute, tamper };
};

const currentSpec = (record: ObjectRecord): object => {
  const last = record.writes.findLast((write) => write.kind === 'patch');
  return last?.kind === 'patch' ? last.spec : record.spec;
};

const foundOrAbsent = (value: unknown): Result => ({
  value,
  text: value === undefined ? 'absent' : 'found',
});

/** Settings that the creator of an object asks for. Throws HubError `invalid`. */
export const ownSettings = (kind: string, manifest: Manifest): GivenSettings => {
  const text = Object.entries(manifest.annotations).find(([key]) => SIMULATION_ANNOTATION.test(key))?.[1];
  if (text === undefined) return {};
  try {
    return parseSettings(text);
  } catch (error) {
    if (!(error instanceof BadSimulationSetting)) throw error;
    const field = 'metadata.annotations.simulation';
    throw invalidObject(kind, manifest.name, [
      { field, reason: 'FieldValueInvalid', message: error.message },
    ]);
  }
};

/** An id in the shape of a UUIDv4 that depends on the text only. */
const uuidOf = (text: string): string => {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};
