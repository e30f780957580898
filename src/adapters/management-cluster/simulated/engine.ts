import { createHash, randomBytes } from 'node:crypto';
import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
} from '../../../app/management-cluster.ts';
import { readCredential } from './credentials.ts';
import { decideFault, type Fault } from './faults.ts';
import { openHubFile, type CallRow } from './hub-file.ts';
import { replay, type Life } from './life.ts';
import { errorData, isWrite, type CallMeta, type CallRequest, type EngineAnswer } from './protocol.ts';
import type { Outcome, Ref, Tampering } from './protocol.ts';
import { hostedNamespace, kubeconfigSecret, observedHosted, passwordSecret } from './record.ts';
import type { OrderRecord, Write } from './record.ts';
import { BadSimulationSetting, lifeSettings, parseSettings, type GivenSettings } from './settings.ts';
import { checkManifest, configVersion, invalid, patchSpec } from './spec.ts';
import { createWatches } from './watches.ts';

export type HubEngineOptions = {
  readonly hubId: string;
  readonly file: string;
  /** Namespaces that exist; empty: every one does. */
  readonly namespaces: readonly string[];
  /** Seed of uids and credentials of a new file. Empty: random. */
  readonly seed: string;
  /** Settings below those that `configure` stored. */
  readonly settings: GivenSettings;
  readonly baseDomain: string;
  /** Who writes, for the journal. */
  readonly instance: string;
};

/** The annotation that asks for a behaviour; with or without a prefix. */
const SIMULATION_ANNOTATION = /^([^/]*\/)?simulation$/;
const WHOLE_HUB = '*';

type Target = { readonly namespace: string; readonly name: string; readonly record: OrderRecord | undefined };
type Result = { readonly value: unknown; readonly text: string };

export type HubEngine = ReturnType<typeof createHubEngine>;

/**
 * The hub itself: synchronous, on its file. Each call is one durable transaction that holds the write, the journal
 * entry and the counts that faults are decided by. `durationMs` is measured with `monotonicMs`.
 */
export const createHubEngine = (options: HubEngineOptions, monotonicMs: () => number) => {
  const file = openHubFile(options.file);
  const secret = file.transaction(() => {
    const known = file.getValue('secret');
    if (known !== undefined) return known;
    const made = options.seed === '' ? randomBytes(32).toString('hex') : options.seed;
    file.setValue('secret', made);
    file.setValue('hub_id', options.hubId);
    return made;
  });
  const namespaces = new Set(options.namespaces);

  /** Hub time never goes back, whatever clock the instance has. */
  const timeOf = (now: number): number => Math.max(Math.floor(now), Number(file.getValue('time') ?? 0));
  const advance = (now: number): number => {
    const time = timeOf(now);
    file.setValue('time', String(time));
    return time;
  };
  const hubSettings = (): GivenSettings => ({
    ...options.settings,
    ...(JSON.parse(file.getValue('settings') ?? '{}') as GivenSettings),
  });

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

  const create = (manifest: ClusterOrderManifest, target: Target, effectId: string, now: number): Result => {
    checkManifest(manifest);
    if (namespaces.size > 0 && !namespaces.has(manifest.namespace)) {
      throw new HubError('not-found', `namespaces "${manifest.namespace}" not found`);
    }
    if (target.record !== undefined) throw alreadyExists(target.record, now);
    const clusterId = manifest.labels[CLUSTER_ORDER_UUID_LABEL];
    // Former orders of this cluster get their end noted, so that the journal's readers can see that they had one.
    for (const former of clusterId === undefined ? [] : file.ordersByCluster(clusterId)) lifeOf(former, now);
    const sequence = file.nextSequence();
    const own = ownSettings(manifest);
    const record: OrderRecord = {
      uid: uuidOf(`${secret}/${options.hubId}/${sequence}`),
      sequence,
      namespace: manifest.namespace,
      name: manifest.name,
      ...(clusterId === undefined ? {} : { clusterId }),
      labels: manifest.labels,
      annotations: manifest.annotations,
      createdAt: now,
      spec: manifest.spec,
      configVersion: configVersion(manifest.spec),
      life: lifeSettings(own, hubSettings()),
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
    const spec = patchSpec(record.name, current, change);
    const version = configVersion(spec);
    // A merge patch that changes nothing moves neither generation nor resourceVersion.
    if (version === configVersion(current)) return { value: replay(record, now).order, text: 'unchanged' };
    const life = save(record, { at: now, kind: 'patch', spec, configVersion: version }, now);
    return { value: life.order, text: 'patched' };
  };

  const requestDeletion = (record: OrderRecord | undefined, now: number): Result => {
    if (record === undefined) return { value: false, text: 'absent' };
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
        return requestDeletion(record, now);
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
            : readCredential(record, hosted, secret, request.ref.name, request.key),
        );
      }
    }
  };

  const faultFor = (request: CallRequest, target: Target, now: number, arrived: boolean): Fault => {
    const object = target.record ?? target;
    const write = isWrite(request.op);
    const key = `${object.namespace}/${object.name}`;
    const hub = file.count(WHOLE_HUB, now, write);
    const own = file.count(key, now, write);
    const given = request.op === 'create' ? settingsOrNone(request.manifest) : (target.record?.faults ?? {});
    const fault = decideFault(
      [
        { given, counts: own, defaultSeed: key },
        { given: hubSettings(), counts: hub, defaultSeed: options.hubId },
      ],
      now,
      write,
    );
    // What was held up on its way has had its fault; a hub that is down refuses it all the same.
    return arrived ? { ...fault, lateMs: 0 } : fault;
  };

  const callInside = (request: CallRequest, meta: CallMeta): EngineAnswer => {
    const started = monotonicMs();
    const now = advance(meta.now);
    const target = targetOf(request, now);
    const fault = faultFor(request, target, now, meta.arrived);
    const note = (result: string, answer: CallRow['answer']): void =>
      file.addCall({
        at: now,
        effectId: meta.effectId,
        operation: request.op,
        namespace: target.namespace,
        object: target.name,
        result,
        answer,
        durationMs: Math.max(0, monotonicMs() - started),
        instance: options.instance,
      });
    const refuse = (error: HubError): EngineAnswer => {
      note(`refused: ${error.kind}`, fault.delayMs > 0 ? 'slow' : 'given');
      return { now, kind: 'answer', delayMs: fault.delayMs, outcome: { ok: false, error: errorData(error) } };
    };

    if (fault.silent) {
      note('not carried out', 'none');
      return { now, kind: 'silent' };
    }
    if (fault.refusal !== undefined) return refuse(fault.refusal);
    if (fault.lateMs > 0) {
      note('on its way', 'none');
      return { now, kind: 'late', afterMs: fault.lateMs };
    }
    let result: Result;
    try {
      result = execute(request, target, meta.effectId, now);
    } catch (error) {
      if (error instanceof HubError) return refuse(error);
      throw error;
    }
    note(result.text, fault.lostAnswer ? 'lost' : fault.delayMs > 0 ? 'slow' : 'given');
    const outcome: Outcome = fault.lostAnswer
      ? {
          ok: false,
          error: { kind: 'unknown-outcome', message: 'simulated: the answer of the hub was lost' },
        }
      : { ok: true, value: result.value };
    return { now, kind: 'answer', delayMs: fault.delayMs, outcome };
  };

  const tamperInside = (deed: Tampering, meta: CallMeta): { readonly now: number } => {
    const now = advance(meta.now);
    const where = deed.op === 'configure' ? { namespace: '', name: WHOLE_HUB } : deed.ref;
    if (deed.op === 'configure') {
      file.setValue('settings', JSON.stringify(deed.settings));
      file.resetCounts(WHOLE_HUB, now);
    } else {
      const record = living(file.orderByName(deed.ref.namespace, deed.ref.name), now);
      if (record === undefined) throw notFound(deed.ref.name);
      const write: Write =
        deed.op === 'vanish'
          ? { at: now, kind: 'vanish', what: deed.what }
          : { at: now, kind: 'remove-finalizer', finalizer: deed.finalizer };
      save(record, write, now);
    }
    file.addCall({
      at: now,
      effectId: meta.effectId,
      operation: deed.op,
      namespace: where.namespace,
      object: where.name,
      result: 'done',
      answer: 'given',
      durationMs: 0,
      instance: options.instance,
    });
    return { now };
  };

  const hubIsDown = (now: number): boolean => {
    const counts = file.counts(WHOLE_HUB) ?? { firstAt: now, calls: 0, writes: 0 };
    const fault = decideFault(
      [{ given: hubSettings(), counts: { ...counts, calls: 0, writes: 0 }, defaultSeed: '' }],
      now,
      false,
    );
    return fault.silent || fault.refusal !== undefined;
  };
  const watches = createWatches(file, timeOf, hubIsDown);

  return {
    /** Calls that wait at the same time, in their order. Throws when none of them was carried out. */
    calls: (waiting: readonly { readonly request: CallRequest; readonly meta: CallMeta }[]) =>
      file.transactions(
        waiting.map(
          ({ request, meta }) =>
            () =>
              callInside(request, meta),
        ),
      ),
    tamper: (deed: Tampering, meta: CallMeta) => file.transaction(() => tamperInside(deed, meta)),
    watches,
    synchronous: file.synchronous,
    close: file.close,
  };
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

const ownSettings = (manifest: ClusterOrderManifest): GivenSettings => {
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

/** For faults of the creating call: a bad annotation is refused by the creation itself. */
const settingsOrNone = (manifest: ClusterOrderManifest): GivenSettings => {
  try {
    return ownSettings(manifest);
  } catch {
    return {};
  }
};

/** An id in the shape of a UUIDv4 that depends on the text only. */
const uuidOf = (text: string): string => {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};
