/**
 * What objects of kinds that act cost on simulated hubs: create → READY at a steady rate, processor time per object, and
 * lists, a watch and memory over many of them. `npm run bench -- kinds [--kinds externalIp,volume] [--rate 50]
 * [--seconds 10] [--objects 10000] [--clients 8] [--repeat 3]`. Also of `cluster`, to compare with.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { actingKindOf } from '../../src/domain/acting-kinds.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { objectAt, stringAt } from '../../src/domain/json-tools.ts';
import { SERVICE_STORE } from './support/event-store.ts';
import { percentile, printMachine, processorMs, range, residentMb } from './support/report.ts';
import { load, startBenchService, type BenchService } from './support/service.ts';

const { values } = parseArgs({
  options: {
    kinds: { type: 'string', default: 'externalIp,volume' },
    rate: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    objects: { type: 'string', default: '10000' },
    clients: { type: 'string', default: '8' },
    repeat: { type: 'string', default: '3' },
  },
});
const [rate = 0, seconds = 0, objects = 0, clients = 0, repeat = 0] = [
  values.rate,
  values.seconds,
  values.objects,
  values.clients,
  values.repeat,
].map(Number);
const PRIVATE = '/api/private/v1';
const PATIENCE_MS = 600_000;
const WRITES = 50;
/** Objects before those that are counted: a fresh process compiles what it runs. */
const WARM_UP = 200;
/** A simulated hub that takes no time of its own. */
const AT_ONCE = { simulation: 'factor=0' };

type Subject = {
  /** End of the name of its state when it is as wanted. */
  readonly ready: string;
  /** What it refers to: collection, body, and the end of the state that is waited for, if any. */
  readonly before: readonly (readonly [collection: string, body: object, ready?: string])[];
  readonly spec: object;
};

/** Another kind is one more row. */
const SUBJECTS: { readonly [kind: string]: Subject } = {
  cluster: { ready: 'READY', before: [], spec: { template: { id: 'osac.templates.ocp_small' } } },
  externalIp: {
    ready: 'ALLOCATED',
    before: [
      [
        'external_ip_pools',
        {
          id: 'bench',
          metadata: { name: 'bench', annotations: AT_ONCE },
          spec: { cidrs: ['10.0.0.0/16'], ip_family: 'IP_FAMILY_IPV4' },
        },
        'READY',
      ],
    ],
    spec: { pool: { id: 'bench' } },
  },
  volume: {
    ready: 'AVAILABLE',
    before: [],
    spec: { storage_tier: 'fast', size_gib: '10', access_mode: 'VOLUME_ACCESS_MODE_READ_WRITE_ONCE' },
  },
};
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

const milliseconds = (delays: readonly number[]): string =>
  `p50 ${percentile(delays, 0.5).toFixed(0)}, p99 ${percentile(delays, 0.99).toFixed(0)} ms`;

const measure = async (kind: string, subject: Subject): Promise<void> => {
  const { collection = '', event, words } = actingKindOf(kind) ?? {};
  const field = event?.field ?? '';
  const path = `${PRIVATE}/${collection}`;
  const bench = await startBenchService('api,processes,publisher,auditor', [], undefined, {}, (hub) => ({
    ...hub,
    steps: BY_HUB,
  }));
  const { pid, http } = bench.service;
  const call = callsOf(bench);
  const isReady = (object: JsonObject, end: string): boolean =>
    stringAt(objectAt(object, 'status'), 'state').endsWith(`_STATE_${end}`);
  let made = 0;
  const makeOne = async (): Promise<string> => {
    const metadata = {
      name: `${field.replaceAll('_', '-')}-${(made += 1)}`,
      tenant: 'acme',
      annotations: AT_ONCE,
    };
    return stringAt(await call('POST', path, { metadata, spec: subject.spec }), 'id');
  };
  const makeMany = async (count: number): Promise<void> => {
    let left = count;
    const client = async (): Promise<void> => {
      while ((left -= 1) >= 0) await makeOne();
    };
    await Promise.all(Array.from({ length: clients }, client));
  };
  /** All that were made. */
  const allReady = async (): Promise<void> => {
    const state = `${field.toUpperCase()}_STATE_${subject.ready}`;
    const query = `limit=0&filter=${encodeURIComponent(`this.status.state == ${state}`)}`;
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const { total = 0 } = await call('GET', `${path}?${query}`);
      if (total === made) return;
      if (performance.now() > deadline) throw new Error(`${String(total)} of ${made} are ${subject.ready}`);
      await pause(100);
    }
  };
  try {
    for (const [where, body, end] of subject.before) {
      const at = `${PRIVATE}/${where}/${stringAt(await call('POST', `${PRIVATE}/${where}`, body), 'id')}`;
      while (end !== undefined && !isReady(await call('GET', at), end)) await pause(20);
    }
    await makeMany(WARM_UP);
    await allReady();
    console.log(`\n${words ?? kind}`);

    const readyAt = new Map<string, number>();
    const end = await follow(bench, field, (object) => {
      if (isReady(object, subject.ready)) readyAt.set(stringAt(object, 'id'), performance.now());
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
    const delays = [...sentAt].map(([id, sent]) => (readyAt.get(id) ?? Number.NaN) - sent);
    console.log(`  create → ${subject.ready} at ${rate}/s, as a watch tells it: ${milliseconds(delays)}`);

    const used = processorMs(pid);
    const started = performance.now();
    const count = Math.max(0, objects - made);
    await makeMany(count);
    await allReady();
    const took = (performance.now() - started) / 1_000;
    console.log(
      `  ${count} more: ${((processorMs(pid) - used) / count).toFixed(2)} ms of processor time per object,` +
        ` ${(count / took).toFixed(0)}/s to ${subject.ready}; ${residentMb(pid).toFixed(0)} MB resident with ${made}`,
    );

    const state = encodeURIComponent(`this.status.state == ${field.toUpperCase()}_STATE_${subject.ready}`);
    const listed = [
      ['list of 100', '?limit=100'],
      ['by state', `?limit=100&filter=${state}`],
      ['last page', `?limit=100&offset=${made - 100}`],
      ['by name', `?filter=${encodeURIComponent(`this.metadata.name == "${field.replaceAll('_', '-')}-7"`)}`],
    ] as const;
    for (const [name, query] of listed) {
      const request = { method: 'GET', path: path + query } as const;
      const before = processorMs(pid);
      const runs = [];
      for (let run = 0; run < repeat; run += 1)
        runs.push(await load(http, bench.adminToken, clients, seconds / repeat, request));
      const answers = runs.reduce((sum, { perSecond }) => sum + (perSecond * seconds) / repeat, 0);
      console.log(
        `  ${name}: ${range(runs.map(({ perSecond }) => perSecond))}/s, p50 ${range(runs.map(({ p50 }) => p50))},` +
          ` p99 ${range(runs.map(({ p99 }) => p99))} ms, ${((processorMs(pid) - before) / answers).toFixed(2)} ms of processor time`,
      );
    }

    const [first] = (await call('GET', `${path}?limit=1`))['items'] as readonly JsonObject[];
    let labelled = '';
    const hears = await follow(bench, field, (object) => {
      labelled = stringAt(objectAt(objectAt(object, 'metadata'), 'labels'), 'bench');
    });
    const heard: number[] = [];
    for (let n = 0; n < WRITES; n += 1) {
      const sent = performance.now();
      const patched = call('PATCH', `${path}/${stringAt(first, 'id')}`, {
        metadata: { labels: { bench: `n${n}` } },
      });
      while (labelled !== `n${n}`) await pause(1);
      heard.push(performance.now() - sent);
      await patched;
    }
    await hears();
    console.log(
      `  PATCH → its event at a watch: ${milliseconds(heard)}; ${residentMb(pid).toFixed(0)} MB resident at the end`,
    );
  } finally {
    await bench.close();
  }
};

printMachine({ ...values, hub: 'simulated, takes no time', store: SERVICE_STORE });
for (const kind of values.kinds.split(',')) {
  const subject = SUBJECTS[kind];
  if (subject === undefined) {
    process.stderr.write(`no kind ${kind}; there are ${Object.keys(SUBJECTS).join(', ')}\n`);
    process.exitCode = 2;
    break;
  }
  await measure(kind, subject);
}
