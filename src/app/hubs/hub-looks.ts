import type { HubObject, ObjectPlace, OwnedObject, OwnedShown } from '../../domain/hubs/hub-object.ts';
import {
  cannotBeShown,
  digestOfLook,
  type CallOptions,
  type ManagementCluster,
  type ObjectLook,
} from './management-cluster.ts';
import { LRUCache } from 'lru-cache';
import { isOlder } from '../../domain/clusters/observed-version.ts';
import { nextTurn } from '../fairness/slicer.ts';
import { createStreamQueue } from '../commands/stream-queue.ts';

/** Where an object of ours is. */
export type ObjectRef = ObjectPlace & { readonly hub: string; readonly id: string };

/**
 * Looks at one object on one hub, one after the other, whoever makes them: the watch of the hub and timed reads look
 * side
 * by side, of two at once the earlier one may be answered last, and of a HostedCluster that alone has changed nobody
 * could
 * tell which answer is older.
 */
export type ObjectLooks = {
  /** When no look at this object is under way. Whoever waits for it tells of what was seen before the next one begins. */
  inTurn<T>(of: Pick<ObjectRef, 'hub' | 'id'>, look: () => Promise<T>): Promise<T>;
  /** A read showed this version. */
  read(of: Pick<ObjectRef, 'hub' | 'id'>, shown: OwnedShown): void;
  /** A read has shown a newer version since: a watch keeps what changed for a while before it tells it. */
  isOvertaken(of: Pick<ObjectRef, 'hub' | 'id'>, shown: OwnedShown): boolean;
};

/** Of so many objects the version that was read last is known; a watch keeps a change for less than a second. */
const MAX_READ = 10_000;

export const createObjectLooks = (): ObjectLooks => {
  const queue = createStreamQueue();
  const versions = new LRUCache<string, Pick<OwnedShown, 'uid' | 'resourceVersion'>>({ max: MAX_READ });
  return {
    read: ({ hub, id }, { uid, resourceVersion }) => {
      versions.set(`${hub}/${id}`, { uid, resourceVersion });
    },
    isOvertaken: ({ hub, id }, shown) => isOlder(shown, versions.get(`${hub}/${id}`)),
    inTurn: <T>({ hub, id }: Pick<ObjectRef, 'hub' | 'id'>, look: () => Promise<T>) => {
      const looked = Promise.withResolvers<T>();
      void queue.run(`${hub}/${id}`, async () => {
        await look().then(looked.resolve, looked.reject);
        await nextTurn();
      });
      return looked.promise;
    },
  };
};

/**
 * By our name, then by label (OSAC's operator): ours is what carries our label, and nothing else. What has
 * our name without it belongs to somebody else, and ours is not there.
 */
export const findObject = async <Shown extends OwnedShown>(
  cluster: ManagementCluster,
  kind: OwnedObject<object, Shown>,
  ref: Omit<ObjectRef, 'hub'>,
  options: CallOptions,
): Promise<Shown | undefined> => (await lookFor(cluster, kind, ref, options)).object;

/** `taken`: ours is not there, and its name belongs to something else. */
const lookFor = async <Shown extends OwnedShown>(
  cluster: ManagementCluster,
  kind: OwnedObject<object, Shown>,
  { namespace, name, id }: Omit<ObjectRef, 'hub'>,
  options: CallOptions,
): Promise<{ readonly object: Shown | undefined; readonly taken: boolean }> => {
  const named = await cluster.get(kind, { namespace, name }, options);
  if (named?.id === id) return { object: named, taken: false };
  const [object] = await findLabelled(cluster, kind, { namespace, id }, options);
  return { object, taken: named !== undefined && object === undefined };
};

/** All with our label, whatever their names. */
export const findLabelled = async <Shown extends OwnedShown>(
  cluster: ManagementCluster,
  kind: OwnedObject<object, Shown>,
  { namespace, id }: Pick<ObjectRef, 'namespace' | 'id'>,
  options: CallOptions,
): Promise<readonly Shown[]> =>
  (await cluster.find(kind, namespace, id, options)).filter((object) => object.id === id);

/** What a look at an object of ours showed, to be compared with what another one shows. */
export type Seen = { readonly look: ObjectLook; readonly digest: string };

/** A look at one object of ours, or at what is left where it is not. No `seen`: it has to be looked for again. */
export const observationAt = async (
  cluster: ManagementCluster,
  kind: OwnedObject,
  ref: ObjectRef,
  options: CallOptions,
): Promise<{ readonly object?: OwnedShown; readonly observation: object; readonly seen?: Seen }> => {
  const { object, taken } = await lookFor(cluster, kind, ref, options);
  // What stands under the name of somebody else's object is theirs.
  if (taken) return { observation: absence(kind) };
  const beside = await lookBeside(cluster, kind, ref, object, options);
  const observation = toldOf(kind, object, beside);
  if (object === undefined) return { observation };
  const isComparable = object.name === ref.name && (beside === undefined || beside.shown !== undefined);
  return { object, observation, ...(isComparable ? { seen: seenOf(object, beside) } : {}) };
};

const seenOf = (object: OwnedShown, beside: Beside | undefined): Seen => {
  const { namespace, name } = object;
  const look = { place: { namespace, name }, ...(beside === undefined ? {} : { beside: beside.at }) };
  return { look, digest: digestOfLook(object, beside?.shown ?? null) };
};

/** What its run is told of an object that is not there, nor anything beside it. */
export const absence = (kind: OwnedObject): object => toldOf(kind, undefined, undefined);

/** An object with what is read beside it, as its run judges it. `place`: in its own namespace. No secret is told. */
export const observationOf = async (
  cluster: ManagementCluster,
  kind: OwnedObject,
  place: ObjectPlace,
  shown: OwnedShown | undefined,
  options: CallOptions,
): Promise<object> => toldOf(kind, shown, await lookBeside(cluster, kind, place, shown, options));

const toldOf = (
  { observed, secretFields }: OwnedObject,
  shown: OwnedShown | undefined,
  beside: Beside | undefined,
): object => {
  if (observed !== undefined) return observed.observation(shown, beside?.shown);
  if (shown === undefined) return { object: null };
  const spec = Object.entries(shown.spec).filter(([field]) => !secretFields.includes(field));
  return { object: { ...shown, spec: Object.fromEntries(spec) } };
};

/** `shown` null: there is none; undefined: the hub cannot show it, for want of the kind or of the right. */
type Beside = { readonly at: ObjectPlace; readonly shown: unknown };

/** Undefined: the kind reads nothing besides. */
const lookBeside = async (
  cluster: ManagementCluster,
  { observed }: OwnedObject,
  { namespace, name }: ObjectPlace,
  shown: OwnedShown | undefined,
  options: CallOptions,
): Promise<Beside | undefined> => {
  if (observed === undefined) return undefined;
  const at = observed.besideAt({ namespace, name: shown?.name ?? name }, shown);
  return { at, shown: await besideAt(cluster, observed.beside, at, options) };
};

const besideAt = async (
  cluster: ManagementCluster,
  kind: HubObject,
  place: ObjectPlace,
  options: CallOptions,
): Promise<unknown> => {
  try {
    return (await cluster.get(kind, place, options)) ?? null;
  } catch (error) {
    if (cannotBeShown(error)) return undefined;
    throw error;
  }
};
