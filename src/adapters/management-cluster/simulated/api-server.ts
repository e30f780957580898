import { createHash, createHmac } from 'node:crypto';
import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
} from '../../../app/management-cluster.ts';
import { readCredential } from './credentials.ts';
import type { HubFile } from './hub-file.ts';
import { replay, type Life } from './life.ts';
import type { CallRequest, Ref, Tampering } from './protocol.ts';
import { hostedNamespace, kubeconfigSecret, observedHosted, passwordSecret } from './record.ts';
import type { OrderRecord, Write } from './record.ts';
import { BadSimulationSetting, lifeSettings, parseSettings, type GivenSettings } from './settings.ts';
import { checkManifest, configVersion, invalid, patchSpec } from './spec.ts';

/** The annotation that asks for a behaviour; with or without a prefix. */
const SIMULATION_ANNOTATION = /^([^/]*\/)?simulation$/;

/** What a call is about: the living order behind it, if there is one. */
export type Target = {
  readonly namespace: string;
  readonly name: string;
  readonly record: OrderRecord | undefined;
};
/** `text` goes into the journal. */
export type Result = { readonly value: unknown; readonly text: string };

export type ApiServer = ReturnType<typeof createApiServer>;

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
  },
) => {
  /** Replays and remembers when the order turns out to be gone. */
  const lifeOf = (record: OrderRecord, now: number): Life => {
    const life = replay(record, now);
    if (life.goneAt !== undefined) file.markGone(record.sequence, life.goneAt);
    return life;
  };
  const living = (record: OrderRecord | undefined, now: number): OrderRecord | undefined =>
    record !== undefined && lifeOf(record, now).order !== undefined ? record : undefined;

  const byHostedNamespace = (ref: Ref, name: string, now: number): OrderRecord | undefined =>
    living(
      file.ordersByName(name).find((record) => hostedNamespace(record) === ref.namespace),
      now,
    );

  const targetOf = (request: CallRequest, now: number): Target => {
    switch (request.op) {
      case 'create': {
        const { namespace, name } = request.manifest;
        return { namespace, name, record: living(file.orderByName(namespace, name), now) };
      }
      case 'patch':
      case 'delete':
      case 'get':
        return {
          ...request.ref,
          record: living(file.orderByName(request.ref.namespace, request.ref.name), now),
        };
      case 'find': {
        const records = file.ordersByCluster(request.clusterId);
        const record = records.find((one) => one.namespace === request.namespace);
        return {
          namespace: request.namespace,
          name: record?.name ?? request.clusterId,
          record: living(record, now),
        };
      }
      case 'get-hosted-cluster':
        return { ...request.ref, record: byHostedNamespace(request.ref, request.ref.name, now) };
      case 'read-secret': {
        const record = byHostedNamespace(request.ref, orderOfSecret(request.ref.name), now);
        return { ...request.ref, record };
      }
    }
  };

  const notFound = (name: string): HubError =>
    new HubError('not-found', `clusterorders.osac.openshift.io "${name}" not found`);

  const save = (record: OrderRecord, write: Write, now: number) => {
    const changed: OrderRecord = { ...record, writes: [...record.writes, write] };
    file.updateOrder(changed);
    return lifeOf(changed, now);
  };

  /** No pull secret lies in the hub's file: in its place stands what tells one from another. */
  const sealed = <Spec extends Partial<ClusterOrderSpec>>(spec: Spec): Spec => {
    const { pullSecret = '' } = spec;
    if (pullSecret === '') return spec;
    const mac = createHmac('sha256', options.secret).update(pullSecret).digest('hex');
    return { ...spec, pullSecret: `not kept, hmac-sha256 ${mac}` };
  };

  const create = (manifest: ClusterOrderManifest, target: Target, effectId: string, now: number): Result => {
    checkManifest(manifest);
    if (options.namespaces.length > 0 && !options.namespaces.includes(manifest.namespace)) {
      throw new HubError('not-found', `namespaces "${manifest.namespace}" not found`);
    }
    if (target.record !== undefined) throw alreadyExists(target.record, now);
    const clusterId = manifest.labels[CLUSTER_ORDER_UUID_LABEL];
    // Former orders of this cluster get their end noted, so that the journal's readers can see that they had one.
    for (const former of clusterId === undefined ? [] : file.ordersByCluster(clusterId)) lifeOf(former, now);
    const sequence = file.nextSequence();
    const own = ownSettings(manifest);
    const spec = sealed(manifest.spec);
    const record: OrderRecord = {
      uid: uuidOf(`${options.secret}/${options.hubId}/${sequence}`),
      sequence,
      namespace: manifest.namespace,
      name: manifest.name,
      ...(clusterId === undefined ? {} : { clusterId }),
      labels: manifest.labels,
      annotations: manifest.annotations,
      createdAt: now,
      spec,
      configVersion: configVersion(spec),
      life: lifeSettings(own, options.hubSettings()),
      faults: own,
      baseDomain: options.baseDomain,
      writes: [],
    };
    file.insertOrder(record, effectId);
    return { value: replay(record, now).order, text: 'created' };
  };

  const alreadyExists = (record: OrderRecord, now: number): HubError => {
    const { order } = replay(record, now);
    const text = `clusterorders.osac.openshift.io "${record.name}" already exists`;
    const deleting = order?.deletionTimestamp !== undefined;
    const message = deleting ? `object is being deleted: ${text}` : text;
    return new HubError('already-exists', message, order === undefined ? {} : { order });
  };

  const patch = (record: OrderRecord, change: Partial<ClusterOrderSpec>, now: number): Result => {
    const current = currentSpec(record);
    const checked = patchSpec(record.name, current, change);
    const spec = change.pullSecret === undefined ? checked : sealed(checked);
    const version = configVersion(spec);
    // A merge patch that changes nothing moves neither generation nor resourceVersion.
    if (version === configVersion(current)) return { value: replay(record, now).order, text: 'unchanged' };
    const life = save(record, { at: now, kind: 'patch', spec, configVersion: version }, now);
    return { value: life.order, text: 'patched' };
  };

  const requestDeletion = (record: OrderRecord | undefined, uid: string | undefined, now: number): Result => {
    if (record === undefined) return { value: false, text: 'absent' };
    if (uid !== undefined && uid !== record.uid)
      throw new HubError(
        'conflict',
        `clusterorders.osac.openshift.io "${record.name}" has another uid than the one to be deleted`,
      );
    if (record.writes.some((write) => write.kind === 'delete'))
      return { value: true, text: 'already-deleting' };
    save(record, { at: now, kind: 'delete' }, now);
    return { value: true, text: 'deletion-requested' };
  };

  const execute = (request: CallRequest, target: Target, effectId: string, now: number): Result => {
    const { record } = target;
    switch (request.op) {
      case 'create':
        return create(request.manifest, target, effectId, now);
      case 'patch':
        if (record === undefined) throw notFound(request.ref.name);
        return patch(record, request.spec, now);
      case 'delete':
        return requestDeletion(record, request.ref.uid, now);
      case 'get':
        return foundOrAbsent(record === undefined ? undefined : replay(record, now).order);
      case 'find': {
        const orders = file
          .ordersByCluster(request.clusterId)
          .filter((one) => one.namespace === request.namespace)
          .flatMap((one) => lifeOf(one, now).order ?? []);
        return { value: orders, text: `found ${orders.length}` };
      }
      case 'get-hosted-cluster': {
        const hosted = record === undefined ? undefined : replay(record, now).hosted;
        return foundOrAbsent(
          record === undefined || hosted === undefined ? undefined : observedHosted(record, hosted),
        );
      }
      case 'read-secret': {
        const hosted = record === undefined ? undefined : replay(record, now).hosted;
        return foundOrAbsent(
          record === undefined || hosted === undefined
            ? undefined
            : readCredential(record, hosted, options.secret, request.ref.name, request.key),
        );
      }
    }
  };

  const tamper = (deed: Exclude<Tampering, { op: 'configure' }>, now: number): void => {
    const record = living(file.orderByName(deed.ref.namespace, deed.ref.name), now);
    if (record === undefined) throw notFound(deed.ref.name);
    const write: Write =
      deed.op === 'vanish'
        ? { at: now, kind: 'vanish', what: deed.what }
        : { at: now, kind: 'remove-finalizer', finalizer: deed.finalizer };
    save(record, write, now);
  };

  return { targetOf, execute, tamper };
};

const currentSpec = (record: OrderRecord): ClusterOrderSpec => {
  const last = record.writes.findLast((write) => write.kind === 'patch');
  return last?.kind === 'patch' ? last.spec : record.spec;
};

const foundOrAbsent = (value: unknown): Result => ({
  value,
  text: value === undefined ? 'absent' : 'found',
});

const orderOfSecret = (secretName: string): string => {
  for (const suffix of [kubeconfigSecret(''), passwordSecret('')]) {
    if (secretName.endsWith(suffix)) return secretName.slice(0, -suffix.length);
  }
  return secretName;
};

/** Settings that the creator of an order asks for. Throws HubError `invalid`. */
export const ownSettings = (manifest: ClusterOrderManifest): GivenSettings => {
  const text = Object.entries(manifest.annotations).find(([key]) => SIMULATION_ANNOTATION.test(key))?.[1];
  if (text === undefined) return {};
  try {
    return parseSettings(text);
  } catch (error) {
    if (!(error instanceof BadSimulationSetting)) throw error;
    const field = 'metadata.annotations.simulation';
    throw invalid(manifest.name, [{ field, reason: 'FieldValueInvalid', message: error.message }]);
  }
};

/** An id in the shape of a UUIDv4 that depends on the text only. */
const uuidOf = (text: string): string => {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};
