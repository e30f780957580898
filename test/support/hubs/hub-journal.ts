import { DatabaseSync } from 'node:sqlite';

/**
 * Reads a simulated hub's file without any code of the adapter: what tests claim about the far side must not come
 * from the side that is tested. The columns are described in the adapter's README.
 */
export type HubCall = {
  readonly number: number;
  readonly at: string;
  readonly effectId: string;
  readonly operation: string;
  /** Kind of the object that it is about. */
  readonly kind: string;
  readonly namespace: string;
  readonly object: string;
  readonly result: string;
  /** given, slow, lost (done, but nobody heard) or none (not answered at all). */
  readonly answer: string;
  readonly durationMs: number;
  readonly instance: string;
};

export type HubOrder = Omit<HubObjectRow, 'kind' | 'id' | 'spec' | 'ran' | 'host'> & {
  readonly clusterId: string | undefined;
};

export type HubObjectRow = {
  readonly kind: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly id: string | undefined;
  /** As it was wanted last. */
  readonly spec: object;
  /** Effect of the call that created it. */
  readonly effectId: string;
  readonly createdAt: number;
  readonly deletionAt: number | undefined;
  /** When a machine runs, as its writes say: hub time in milliseconds; without an end it goes on. */
  readonly ran: readonly (readonly [from: number, to?: number])[];
  /** Which of the bare-metal hosts it got, and when. */
  readonly host?: { readonly name: string; readonly at: number };
  /** When it was gone, once the hub has noticed; undefined: still there, or not looked at since. */
  readonly goneAt: number | undefined;
};

const withFile = <T>(file: string, read: (db: DatabaseSync) => T): T => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return read(db);
  } finally {
    db.close();
  }
};

const callsIn = (db: DatabaseSync): HubCall[] =>
  db
    .prepare('SELECT * FROM calls ORDER BY number')
    .all()
    .map((row) => ({
      number: Number(row['number']),
      at: String(row['at']),
      effectId: String(row['effect_id']),
      operation: String(row['operation']),
      kind: String(row['kind']),
      namespace: String(row['namespace']),
      object: String(row['object']),
      result: String(row['result']),
      answer: String(row['answer']),
      durationMs: Number(row['duration_ms']),
      instance: String(row['instance']),
    }));

const specIn = (record: string): object => {
  const { spec, writes } = JSON.parse(record) as { spec: object; writes: { kind: string; spec: object }[] };
  return writes.findLast(({ kind }) => kind === 'patch')?.spec ?? spec;
};

/** A promise that was made for later counts once that moment has come. */
const hostIn = (record: string): { readonly host?: { readonly name: string; readonly at: number } } => {
  const { writes } = JSON.parse(record) as { writes: { kind: string; host: string; at: number }[] };
  const got = writes.find(({ kind }) => kind === 'host');
  return got === undefined ? {} : { host: { name: got.host, at: got.at } };
};

type MachineSpec = {
  readonly runStrategy: string;
  readonly restartRequestedAt?: string;
  readonly restartTrigger?: number;
};
const restartOf = (spec: MachineSpec | undefined): unknown =>
  spec?.restartRequestedAt ?? spec?.restartTrigger;
type MachineRecord = {
  readonly createdAt: number;
  readonly spec: MachineSpec;
  readonly life: { readonly accept: number; readonly finish: number };
  readonly writes: readonly { readonly at: number; readonly kind: string; readonly spec: MachineSpec }[];
};
/** Between the request of a deletion and its beginning. */
const REACTION_MS = 10;

const MACHINES: readonly string[] = ['ComputeInstance', 'BareMetalInstance'];

/**
 * After each write a machine takes `accept` to begin, `finish` to be as wanted; one that changes its power is
 * off meanwhile, but for a whole server, which is what it was until then.
 */
const timesRun = (kind: string, record: string): (readonly [from: number, to?: number])[] => {
  const { createdAt, spec: first, life, writes } = JSON.parse(record) as MachineRecord;
  const isWhole = kind === 'BareMetalInstance';
  const ran: [from: number, to?: number][] = [];
  let settled: MachineSpec | undefined;
  const off = (at: number): void => {
    const last = ran.at(-1);
    if (last !== undefined && last[1] === undefined) last[1] = at;
  };
  const rounds = [{ at: createdAt, kind: 'patch', spec: first }, ...writes];
  for (const [i, { at, kind: what, spec }] of rounds.entries()) {
    const next = rounds[i + 1]?.at ?? Infinity;
    if (what === 'delete') off(at + REACTION_MS);
    if (what !== 'patch') continue;
    const runs = spec.runStrategy === 'Always';
    const begun = at + life.accept;
    const isSame =
      settled?.runStrategy === spec.runStrategy && (!runs || restartOf(settled) === restartOf(spec));
    if (begun < next && !isSame && !isWhole) off(begun);
    const done = begun + life.finish;
    if (done >= next) continue;
    settled = spec;
    if (!runs) off(done);
    const last = ran.at(-1);
    if (runs && (last === undefined || last[1] !== undefined)) ran.push([done]);
  }
  return ran;
};

const objectsIn = (db: DatabaseSync): HubObjectRow[] =>
  db
    .prepare('SELECT * FROM objects ORDER BY sequence')
    .all()
    .map((row) => ({
      kind: String(row['kind']),
      uid: String(row['uid']),
      namespace: String(row['namespace']),
      name: String(row['name']),
      id: row['object_id'] === null ? undefined : String(row['object_id']),
      spec: specIn(String(row['record'])),
      ran: MACHINES.includes(String(row['kind'])) ? timesRun(String(row['kind']), String(row['record'])) : [],
      ...hostIn(String(row['record'])),
      effectId: String(row['effect_id']),
      createdAt: Number(row['created_at']),
      deletionAt: row['deletion_at'] === null ? undefined : Number(row['deletion_at']),
      goneAt: row['gone_at'] === null ? undefined : Number(row['gone_at']),
    }));

const ordersIn = (db: DatabaseSync): HubOrder[] =>
  objectsIn(db)
    .filter(({ kind }) => kind === 'ClusterOrder')
    .map(({ kind: _kind, spec: _spec, ran: _ran, host: _host, id, ...order }) => ({
      ...order,
      clusterId: id,
    }));

/** Every call that reached the hub, in order. */
export const readHubCalls = (file: string): HubCall[] => withFile(file, callsIn);

/** Every object that ever was on the hub, in the order of creation. */
export const readHubObjects = (file: string): HubObjectRow[] => withFile(file, objectsIn);

/** Every ClusterOrder that ever was on the hub, in the order of creation. */
export const readHubOrders = (file: string): HubOrder[] => withFile(file, ordersIn);

/** Both as of one moment: a hub that still works may make an object between two looks. */
const readHub = (file: string): { readonly objects: HubObjectRow[]; readonly calls: HubCall[] } =>
  withFile(file, (db) => {
    db.exec('BEGIN');
    return { objects: objectsIn(db), calls: callsIn(db) };
  });

/** `ok`, or what SQLite finds wrong with the file. */
export const checkHubFile = (file: string): string =>
  withFile(file, (db) => String(db.prepare('PRAGMA quick_check').get()?.['quick_check']));

/**
 * Throws unless: one effect made at most one object; nothing of ours ever had two objects at a time; every object
 * was answered for by exactly one `created` in the journal.
 */
export const assertNoSecondObject = (file: string): void => {
  const { objects, calls } = readHub(file);
  const creations = calls.filter((call) => call.operation === 'create' && call.result === 'created');

  for (const [effectId, made] of Map.groupBy(objects, ({ effectId: by }) => by)) {
    if (made.length > 1) fail(`effect ${effectId} made ${made.length} objects`, made);
  }
  const owned = objects.filter(({ id }) => id !== undefined);
  for (const [owner, held] of Map.groupBy(owned, ownerOf)) {
    for (const [index, former] of held.slice(0, -1).entries()) {
      const next = held[index + 1];
      if (next === undefined || (former.goneAt !== undefined && former.goneAt <= next.createdAt)) continue;
      fail(`${owner} has a second object`, [former, next]);
    }
  }
  if (creations.length !== objects.length) {
    fail(`the journal knows ${creations.length} creations, the hub ${objects.length} objects`, objects);
  }
};

const ownerOf = ({ kind, id }: HubObjectRow): string => `${kind === 'ClusterOrder' ? 'cluster' : kind} ${id}`;

const fail = (what: string, objects: readonly HubObjectRow[]): never => {
  throw new Error(`${what}:\n${objects.map((object) => `  ${JSON.stringify(object)}`).join('\n')}`);
};

/** What faults are decided by, as `<namespace>/<name> <calls> <writes>`; `*` is the whole hub. */
export const readHubCounts = (file: string): string[] =>
  withFile(file, (db) =>
    db
      .prepare('SELECT object, calls, writes FROM call_counts ORDER BY object')
      .all()
      .map((row) => Object.values(row).join(' ')),
  );
