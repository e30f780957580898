import { z } from 'zod';
import type { JsonObject, JsonValue } from '../json.ts';
import { sameJson } from '../json-tools.ts';

/** Where objects of a kind are on an API server. */
export type ObjectType = {
  /** Its word on the API server; effects, lanes and journals name it so. */
  readonly kind: string;
  /** Empty: the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
};

export type ObjectPlace = { readonly namespace: string; readonly name: string };

/** Setups of a hub that need rights of their own; each has its file in `ops/rbac`. */
export type RightsSetup = 'hub-access' | 'node-counts' | 'controller-ledger' | 'tenant-namespaces';

export type NeededRight = {
  readonly verbs: readonly string[];
  /** `orders`: where objects that we write are; `hub`: in the hub's own namespace; `anywhere`: in every one. */
  readonly within: 'orders' | 'hub' | 'anywhere';
  readonly setup: RightsSetup;
  readonly part?: 'status';
  /** Of these objects alone; `NS` stands for the hub's namespace. */
  readonly names?: readonly string[];
  /** Nothing is wrong without it: what it shows stays unknown. */
  readonly optional?: true;
};

/** A kind of object on a hub that we read. */
export type HubObject<Shown = unknown> = ObjectType & {
  /** A whole object, as the API server sends it, to what the service knows of it. `parts`: see below. */
  readonly shown: (object: JsonValue, parts?: { readonly [part: string]: readonly JsonValue[] }) => Shown;
  /** Objects that are read together with it, by a label with its name, where the hub's rights show them. */
  readonly parts?: { readonly [part: string]: { readonly of: ObjectType; readonly label: string } };
  readonly rights: readonly NeededRight[];
  /** A hub without this kind cannot be used. */
  readonly required?: true;
  /** Kinds whose rights without which nothing is wrong with a hub are needed for this one, too. */
  readonly needs?: readonly HubObject[];
};

/** What every object of ours says of itself. */
export type ObjectMeta = {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** Ours, by the label of its kind; absent: somebody else's object. */
  readonly id?: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly finalizers: readonly string[];
  readonly annotations: { readonly [key: string]: string };
};
export type OwnedShown<Spec extends object = object> = ObjectMeta & { readonly spec: Spec };

export type Manifest<Spec extends object = object> = ObjectPlace & {
  readonly labels: { readonly [key: string]: string };
  readonly annotations: { readonly [key: string]: string };
  readonly spec: Spec;
};

export type Drift =
  | { readonly patch: object | undefined }
  | { readonly refused: string; readonly message: string };

/** A kind of object that we write, each for one id of ours. */
export type OwnedObject<
  Spec extends object = object,
  Shown extends OwnedShown = OwnedShown,
> = HubObject<Shown> & {
  readonly idLabel: string;
  /** What an id of ours names and what it has on a hub, for people: `cluster` and `orders`. */
  readonly owner: string;
  readonly called: string;
  /** The same name for every attempt (OSAC's operator). */
  readonly nameOf: (id: string) => string;
  /** Above this the namespace and name of an object are too long for what is named after them. */
  readonly placeFits?: (place: ObjectPlace) => boolean;
  /**
   * Fields that we write and no others. It also refuses what a CRD stores although nobody can work with it. A patch
   * is any
   * part of it, so what it refuses is about single fields.
   */
  readonly spec: z.ZodObject & z.ZodType<Spec>;
  /** Lists of the spec that say something also when nothing is in them. */
  readonly mayBeEmpty?: readonly string[];
  /** Fields of its status that whoever makes it writes (OSAC's operator); it is shown with the same ones. */
  readonly status?: z.ZodObject;
  /** Fields of the spec that hold secrets: never repeated, and not kept by simulated hubs. */
  readonly secretFields: readonly string[];
  /** With every field that we write or read; for a dry run. */
  readonly sample: { readonly spec: JsonObject; readonly status: JsonObject };
  /** What of a stored spec has to be patched. Default: every field of ours that differs. */
  drift?(stored: Spec, wanted: Spec): Drift;
  /** A patch that orders the same, where the hub would do nothing without one. */
  relaunch?(stored: Shown, wanted: Spec): object | undefined;
  /** Label by which other objects point to one of these, with its name. */
  readonly backLabel?: string;
  /** Where the API server calls it otherwise, and has what we write elsewhere than in `spec`: a Secret of ours. */
  readonly stored?: { readonly kind: string; readonly field: string };
  /** Only our own writes change it: nobody watches it. */
  readonly unwatched?: true;
  /** Its effects on a hub have a lane of their own: a thousand small objects must not hold those of other kinds up. */
  readonly ownLane?: true;
  /** One object that is read by name together with it, and what both come to for its run. */
  readonly observed?: Observed;
  /** Endpoint of the rulebook that makes one (OSAC's operator). Absent: a hub in mode `eda` cannot carry the kind. */
  readonly webhook?: string;
  /** Job template that makes one, without the prefix of the hub's templates. Default: `create-` and the kind's name. */
  readonly template?: string;
  /** No playbook has a part in it: every hub that has the kind carries it. */
  readonly withoutPlaybook?: true;
  /** Where nobody else reconciles it: our controller's part. */
  readonly controlled?: Controlled;
  /** Id of the run that it belongs to, where an id of ours has one on each hub. Default: its own. */
  readonly runOf?: (hub: string, id: string) => string;
};

export type Observed = {
  readonly beside: HubObject;
  /** `shown` undefined: the object itself is not there. */
  readonly besideAt: (place: ObjectPlace, shown: OwnedShown | undefined) => ObjectPlace;
  /** `beside` null: there is none; undefined: the hub cannot show it. */
  readonly observation: (shown: OwnedShown | undefined, beside: unknown) => object;
};

export type Companion = {
  readonly of: ObjectType;
  /** For people. */
  readonly word: string;
  readonly name: string;
  readonly namespace?: string;
  readonly object: JsonObject;
};

export type Controlled = {
  readonly finalizer: string;
  /** Its own namespace first, then what is in it. */
  readonly companions: (place: ObjectPlace, hubNamespace: string) => readonly [Companion, ...Companion[]];
  /** Must be gone before the namespace goes. */
  readonly before: { readonly of: ObjectType; readonly at: (place: ObjectPlace) => ObjectPlace };
  /** What of a status follows from the object as it is stored. */
  readonly stated: (shown: never) => object;
  /** Fields of its status, the conditions aside. */
  readonly status: (place: ObjectPlace, status: never) => JsonObject;
};

export type HubObjectEvent<Shown extends OwnedShown = OwnedShown> =
  | { readonly type: 'applied'; readonly object: Shown }
  | { readonly type: 'deleted'; readonly object: Shown }
  /** Everything the hub holds has been listed once: objects of ours that were not among `names` are gone. */
  | { readonly type: 'synced'; readonly names: readonly string[]; readonly resourceVersion: string };

/** Our own finalizer on documents that are on a hub, as OSAC's controller names it. */
export const FULFILLMENT_FINALIZER = 'fulfillment-controller';
/** Annotation whose text tells a simulated hub how to behave: durations and faults. */
export const SIMULATION_ANNOTATION = 'simulation';
export const OSAC_GROUP = 'osac.openshift.io';
/** Everything that we may do with objects of our own. */
export const OWNED_VERBS = ['create', 'delete', 'get', 'list', 'patch', 'watch'] as const;

export const apiVersionOf = ({ group, version }: ObjectType): string =>
  group === '' ? version : `${group}/${version}`;

/** Lane of the effects on a hub, on objects of this kind where it has one of its own there. */
export const laneOf = (hub: string, kind?: Pick<OwnedObject, 'kind' | 'ownLane'>): string =>
  kind?.ownLane === true ? `hub:${hub}:${kind.kind}` : `hub:${hub}`;

/** Field of an object that holds what we write. */
export const fieldOfObject = ({ stored }: Pick<OwnedObject, 'stored'>): string => stored?.field ?? 'spec';

/** As OSAC's operator names it. */
export const templateOf = ({ kind, template }: Pick<OwnedObject, 'kind' | 'template'>): string =>
  template ?? `create-${kind.replaceAll(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, '-').toLowerCase()}`;

/** The object of a manifest: no status, no finalizers, and of labels and annotations only our own. */
export const objectOf = (kind: OwnedObject, { spec, ...metadata }: Manifest): JsonObject =>
  JSON.parse(
    JSON.stringify({
      apiVersion: apiVersionOf(kind),
      kind: kind.stored?.kind ?? kind.kind,
      metadata: {
        name: metadata.name,
        namespace: metadata.namespace,
        labels: metadata.labels,
        annotations: metadata.annotations,
      },
      [fieldOfObject(kind)]: kind.spec.parse(spec),
    }),
  ) as JsonObject;

/** Every field of the wanted spec that the stored one has not. */
export const plainDrift = (stored: object, wanted: object): Drift => {
  const held = stored as { readonly [field: string]: unknown };
  const changed = Object.entries(wanted).filter(
    ([field, value]) => value !== undefined && !sameJson(value, held[field] ?? null),
  );
  return { patch: changed.length === 0 ? undefined : Object.fromEntries(changed) };
};

export type Fault = { readonly field: string; readonly message: string };

const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const MAX_DNS_LABEL = 63;

export const isLabelValue = (value: string): boolean => LABEL_VALUE.test(value);
export const isDnsLabel = (name: string): boolean => name.length <= MAX_DNS_LABEL && DNS_LABEL.test(name);

/** What is wrong with a manifest, each field by its name and without its value. Nothing is sent then. */
export const manifestFaults = (kind: OwnedObject, manifest: Manifest): readonly Fault[] => {
  const { name, namespace, labels, spec } = manifest;
  const badName = 'is not a DNS label of at most 63 characters';
  return [
    ...(isDnsLabel(name) ? [] : [{ field: 'metadata.name', message: badName }]),
    ...(isDnsLabel(namespace) ? [] : [{ field: 'metadata.namespace', message: badName }]),
    ...(kind.placeFits?.(manifest) === false
      ? [{ field: 'metadata.name', message: 'is too long for the namespaces that are named after it' }]
      : []),
    ...Object.entries(labels)
      .filter(([, value]) => !isLabelValue(value))
      .map(([key]) => ({ field: `metadata.labels[${key}]`, message: 'is not a label value' })),
    ...specFaults(kind, kind.spec, spec),
  ];
};

/** The same of the fields of a merge patch. */
export const patchFaults = (kind: OwnedObject, spec: object): readonly Fault[] =>
  Object.keys(spec).length === 0
    ? [{ field: 'spec', message: 'changes nothing' }]
    : specFaults(kind, kind.spec.partial(), spec);

/** Null removes what is immutable and lets it come back changed (OSAC's operator). */
const specFaults = (
  { mayBeEmpty = [] }: Pick<OwnedObject, 'mayBeEmpty'>,
  codec: z.ZodType,
  spec: object,
): readonly Fault[] => {
  const empty = Object.entries(spec).flatMap(([field, value]: [string, unknown]) =>
    value === null || value === undefined
      ? [{ field: `spec.${field}`, message: 'is null' }]
      : typeof value === 'object' && !mayBeEmpty.includes(field) && Object.keys(value as object).length === 0
        ? [{ field: `spec.${field}`, message: 'is empty' }]
        : [],
  );
  const read = codec.safeParse(spec);
  const said = new Set(empty.map(({ field }) => field));
  const others = (read.error?.issues ?? []).map(({ path, message }) => ({ field: fieldOf(path), message }));
  return [...empty, ...others.filter(({ field }) => !said.has(field))];
};

/** Where in a spec. */
export const fieldOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, step) => (typeof step === 'number' ? `${text}[${step}]` : `${text}.${String(step)}`),
    'spec',
  );
