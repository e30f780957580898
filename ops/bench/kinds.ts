/**
 * What objects of every kind that acts cost on simulated hubs, in one table: create → READY at a steady rate, processor time
 * and events per object, and lists, a watch and memory over many. `npm run bench -- kinds [--kinds subnet,volume]
 * [--rate 50] [--seconds 10] [--objects 10000] [--clients 8] [--repeat 3] [--parts]`. `--fleet 100000` makes so many of all
 * kinds together and measures them in one service; `--parts` prints the threads' shares by part, which slows it down.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { actingKindOf, actingKinds } from '../../src/domain/acting-kinds.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { objectAt, stringAt } from '../../src/domain/json-tools.ts';
import { SERVICE_STORE } from './support/event-store.ts';
import { AT_ONCE, SUBJECTS, type Needed } from './support/kind-subjects.ts';
import { logOf } from './support/log-size.ts';
import { partsOf } from './support/processor-parts.ts';
import { percentile, printMachine, processorMs, range, residentMb } from './support/report.ts';
import { load, startBenchService, type BenchService } from './support/service.ts';

const { values } = parseArgs({
  options: {
    kinds: { type: 'string', default: actingKinds.map(({ kind }) => kind).join(',') },
    fleet: { type: 'string', default: '0' },
    parts: { type: 'boolean', default: false },
    rate: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    objects: { type: 'string', default: '10000' },
    clients: { type: 'string', default: '8' },
    repeat: { type: 'string', default: '3' },
  },
});
const [rate = 0, seconds = 0, objects = 0, clients = 0, repeat = 0, fleet = 0] = [
  values.rate,
  values.seconds,
  values.objects,
  values.clients,
  values.repeat,
  values.fleet,
].map(Number);
const PRIVATE = '/api/private/v1';
const PATIENCE_MS = 600_000;
const WRITES = 50;
/** Objects before those that are counted: a fresh process compiles what it runs. */
const WARM_UP = 200;
/** Steps that the hub does: then a cluster is one object on it. */
const STEPS = [
  'agents',
  'l2',
  'l3',
  'floating-ip',
  'storage',
  'dns',
  'install',
  'post-install',
  'validation',
];
const BY_HUB = Object.fromEntries(STEPS.map((step) => [step, 'hub']));

const callsOf = ({ service, adminToken }: BenchService) => {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  return async (method: string, path: string, body?: object): Promise<JsonObject> => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${service.http}${path}`, { method, headers, ...sent });
    if (!answer.ok)
      throw new Error(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as JsonObject;
  };
};

/** Follows the private watch of a kind; `told` gets each object that is told of. */
const follow = async (
  { service, adminToken }: BenchService,
  field: string,
  told: (object: JsonObject) => void,
): Promise<() => Promise<void>> => {
  const ending = new AbortController();
  const filter = encodeURIComponent(`has(event.${field})`);
  const answer = await fetch(`${service.http}${PRIVATE}/events/watch?filter=${filter}`, {
    headers: { authorization: `Bearer ${adminToken}` },
    signal: ending.signal,
  });
  const run = async (): Promise<void> => {
    let rest = '';
    for await (const chunk of (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const event = objectAt(objectAt(JSON.parse(line || '{}') as JsonObject, 'result'), 'event');
        if (event[field] !== undefined) told(objectAt(event, field));
      }
    }
  };
  const running = run().catch((error: unknown) => {
    if (!ending.signal.aborted) throw error;
  });
  return async () => {
    ending.abort();
    await running;
  };
};

type Row = { readonly [column: string]: string };

/** One kind in a service: what it needs first, then any number of it. */
const subjectIn = (bench: BenchService, kind: string) => {
  const subject = SUBJECTS[kind];
  if (subject === undefined) throw new RangeError(`no row of support/kind-subjects.ts is called ${kind}`);
  const { collection = '', event } = actingKindOf(kind) ?? {};
  const field = event?.field ?? '';
  const path = `${PRIVATE}/${collection}`;
  const call = callsOf(bench);
  const prefix = field.replaceAll('_', '-');
  const isReady = (object: JsonObject, end: string): boolean =>
    stringAt(objectAt(object, 'status'), 'state').endsWith(`_STATE_${end}`);
  let made = 0;
  let prepared = 0;
  /** As wanted, and not made here. */
  let others = 0;
  /** So many at once. */
  const inLine = async (count: number, work: () => Promise<unknown>): Promise<void> => {
    let left = count;
    const client = async (): Promise<void> => {
      while ((left -= 1) >= 0) await work();
    };
    await Promise.all(Array.from({ length: clients }, client));
  };
  const found = (at: string) => call('GET', at).catch((): JsonObject => ({}));
  /** Where it is; another kind of the fleet may have made it. */
  const postNeeded = async ([where, body]: Needed): Promise<string> => {
    const at = `${PRIVATE}/${where}`;
    const known = 'id' in body ? stringAt(await found(`${at}/${String(body.id)}`), 'id') : '';
    return `${at}/${known === '' ? stringAt(await call('POST', at, body), 'id') : known}`;
  };
  const become = async (at: string, end = ''): Promise<void> => {
    while (end !== '' && !isReady(await found(at), end)) await pause(20);
  };
  const makeOne = async (): Promise<string> => {
    const n = (made += 1);
    const metadata = { name: `${prefix}-${n}`, tenant: 'acme', annotations: AT_ONCE };
    return stringAt(await call('POST', path, { metadata, spec: subject.spec(n) }), 'id');
  };
  const state = `this.status.state == ${field.toUpperCase()}_STATE_${subject.ready}`;
  const countReady = async (): Promise<number> => {
    const { total = 0 } = await call('GET', `${path}?limit=0&filter=${encodeURIComponent(state)}`);
    return Number(total);
  };
  return {
    field,
    path,
    call,
    isReady: (object: JsonObject) => isReady(object, subject.ready),
    made: () => made,
    makeOne,
    makeMany: (count: number) => inLine(count, makeOne),
    /** What the first `count` of them have to themselves. */
    prepare: async (count: number): Promise<void> => {
      for (const needed of prepared === 0 ? subject.before : [])
        await become(await postNeeded(needed), needed[2]);
      const waiting: (readonly [at: string, end: string | undefined])[] = [];
      await inLine(subject.each === undefined ? 0 : count - prepared, async () => {
        for (const needed of subject.each?.((prepared += 1)) ?? [])
          if (needed !== undefined) waiting.push([await postNeeded(needed), needed[2]]);
      });
      await inLine(waiting.length, async () => become(...(waiting.pop() ?? ['', undefined])));
      prepared = Math.max(prepared, count);
      others = (await countReady()) - made;
    },
    allReady: async (): Promise<void> => {
      const deadline = performance.now() + PATIENCE_MS;
      for (;;) {
        const total = (await countReady()) - others;
        if (total === made) return;
        if (performance.now() > deadline) throw new Error(`${total} of ${made} are ${subject.ready}`);
        await pause(100);
      }
    },
    lists: () =>
      [
        ['list of 100', '?limit=100'],
        ['by state', `?limit=100&filter=${encodeURIComponent(state)}`],
        ['last page', `?limit=100&offset=${Math.max(0, made - 100)}`],
        ['by name', `?filter=${encodeURIComponent(`this.metadata.name == "${prefix}-7"`)}`],
      ] as const,
  };
};
type In = ReturnType<typeof subjectIn>;

/** Delays of objects that are made at a steady rate, from their POST to the watch that tells that they are ready. */
const paced = async (bench: BenchService, { field, isReady, makeOne, allReady }: In) => {
  const readyAt = new Map<string, number>();
  const end = await follow(bench, field, (object) => {
    if (isReady(object)) readyAt.set(stringAt(object, 'id'), performance.now());
  });
  const sentAt = new Map<string, number>();
  const begun = performance.now();
  const posts: Promise<void>[] = [];
  for (let n = 0; n < rate * seconds; n += 1) {
    const wait = begun + (n * 1_000) / rate - performance.now();
    if (wait > 1) await pause(wait);
    const sent = performance.now();
    posts.push(makeOne().then((id) => void sentAt.set(id, sent)));
  }
  await Promise.all(posts);
  await allReady();
  while ([...sentAt.keys()].some((id) => !readyAt.has(id))) await pause(20);
  await end();
  return [...sentAt].map(([id, sent]) => (readyAt.get(id) ?? Number.NaN) - sent);
};

const read = async (bench: BenchService, { path, lists }: In): Promise<Row> => {
  const { pid, http } = bench.service;
  const row: { [column: string]: string } = {};
  for (const [name, query] of lists()) {
    const request = { method: 'GET', path: path + query } as const;
    const before = processorMs(pid);
    const runs = [];
    for (let run = 0; run < repeat; run += 1)
      runs.push(await load(http, bench.adminToken, clients, seconds / repeat, request));
    const answers = runs.reduce((sum, { perSecond }) => sum + (perSecond * seconds) / repeat, 0);
    row[`${name}/s`] = range(runs.map(({ perSecond }) => perSecond));
    row[`${name} ms`] = ((processorMs(pid) - before) / answers).toFixed(2);
  }
  return row;
};

/** From a PATCH until a watch tells of it. */
const heard = async (bench: BenchService, { path, field, call }: In): Promise<readonly number[]> => {
  const [first] = (await call('GET', `${path}?limit=1`))['items'] as readonly JsonObject[];
  let labelled = '';
  const hears = await follow(bench, field, (object) => {
    labelled = stringAt(objectAt(objectAt(object, 'metadata'), 'labels'), 'bench');
  });
  const delays: number[] = [];
  for (let n = 0; n < WRITES; n += 1) {
    const sent = performance.now();
    const patched = call('PATCH', `${path}/${stringAt(first, 'id')}`, {
      metadata: { labels: { bench: `n${n}` } },
    });
    while (labelled !== `n${n}`) await pause(1);
    delays.push(performance.now() - sent);
    await patched;
  }
  await hears();
  return delays;
};

const both = (delays: readonly number[]): string =>
  `${percentile(delays, 0.5).toFixed(0)}, ${percentile(delays, 0.99).toFixed(0)}`;

const inService = async (work: (bench: BenchService) => Promise<void>): Promise<void> => {
  const profiles = mkdtempSync(join(tmpdir(), 'ledger-bench-profiles-'));
  const options = values.parts ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [];
  const roles = 'api,processes,publisher,auditor';
  const bench = await startBenchService(roles, options, undefined, {}, (hub) => ({ ...hub, steps: BY_HUB }));
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
  // A profile holds start and warm-up, too: shares, not times.
  for (const [thread, parts] of values.parts ? partsOf(profiles) : []) {
    console.log(`  ${thread}`);
    for (const [part, share] of parts) console.log(`    ${(100 * share).toFixed(1).padStart(5)} %  ${part}`);
  }
  rmSync(profiles, { recursive: true, force: true });
};

/** Makes so many of one kind beside what is there; what one of them cost. */
const fill = async (bench: BenchService, one: In, count: number): Promise<Row> => {
  const { pid } = bench.service;
  const [used, before, started] = [processorMs(pid), logOf(bench.dataDir), performance.now()];
  await one.makeMany(count);
  await one.allReady();
  const took = (performance.now() - started) / 1_000;
  return {
    'ms each': ((processorMs(pid) - used) / count).toFixed(2),
    'events each': ((logOf(bench.dataDir).events - before.events) / count).toFixed(1),
    'ready/s': (count / took).toFixed(0),
  };
};

const measured = async (kind: string): Promise<Row> => {
  let row: Row = {};
  await inService(async (bench) => {
    const one = subjectIn(bench, kind);
    await one.prepare(Math.max(objects, WARM_UP + rate * seconds + 1));
    await one.makeMany(WARM_UP);
    await one.allReady();
    const delays = await paced(bench, one);
    const filled = await fill(bench, one, Math.max(1, objects - one.made()));
    const mb = residentMb(bench.service.pid).toFixed(0);
    const reads = await read(bench, one);
    row = {
      ...filled,
      [`p50, p99 at ${rate}/s`]: both(delays),
      ...reads,
      'PATCH → watch': both(await heard(bench, one)),
      MB: `${mb}, ${residentMb(bench.service.pid).toFixed(0)}`,
    };
  });
  return row;
};

/** All kinds in one service, as many of each. */
const measureFleet = async (kinds: readonly string[]): Promise<void> =>
  inService(async (bench) => {
    const each = Math.ceil(fleet / kinds.length);
    const all = kinds.map((kind) => [kind, subjectIn(bench, kind)] as const);
    const filled = new Map<string, Row>();
    for (const [kind, one] of all) {
      await one.prepare(each);
      filled.set(kind, await fill(bench, one, each));
    }
    console.log(`${fleet} objects: ${residentMb(bench.service.pid).toFixed(0)} MB resident`);
    for (const [kind, one] of all)
      show(kind, {
        ...filled.get(kind),
        ...(await read(bench, one)),
        'PATCH → watch': both(await heard(bench, one)),
      });
    console.log(`${residentMb(bench.service.pid).toFixed(0)} MB resident at the end`);
  });

let isFirst = true;
/** A row of a Markdown table. */
const show = (kind: string, row: Row): void => {
  const columns = Object.keys(row);
  if (isFirst)
    console.log(`\n| kind | ${columns.join(' | ')} |\n|---|${columns.map(() => '---:').join('|')}|`);
  isFirst = false;
  console.log(`| ${actingKindOf(kind)?.words ?? kind} | ${Object.values(row).join(' | ')} |`);
};

const { parts: _parts, ...settings } = values;
printMachine({ ...settings, hub: 'simulated, takes no time', store: SERVICE_STORE });
const asked = values.kinds.split(',');
const missing = asked.filter((kind) => SUBJECTS[kind] === undefined);
if (missing.length > 0) {
  process.stderr.write(`no row for ${missing.join(', ')}; there are ${Object.keys(SUBJECTS).join(', ')}\n`);
  process.exitCode = 2;
}
const known = asked.filter((kind) => SUBJECTS[kind] !== undefined);
if (fleet > 0) await measureFleet(known);
else for (const kind of known) show(kind, await measured(kind));
