/**
 * Consoles of simulated machines over WebSocket: a key → its echo, alone and beside many sessions, and what a session takes
 * of memory. `npm run bench -- console [sessions 200] [keys 2000]`. Two sessions stand on each machine: serial and VNC.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { JsonObject } from '../../src/domain/json.ts';
import { numberAt, stringAt } from '../../src/domain/json-tools.ts';
import { SERVICE_STORE } from './support/event-store.ts';
import { percentile, printMachine, processorMs, residentMb } from './support/report.ts';
import { startBenchService } from './support/service.ts';

const sessions = Number(process.argv[2] ?? 200);
const keys = Number(process.argv[3] ?? 2_000);
const PUBLIC = '/api/fulfillment/v1';
const PRIVATE = '/api/private/v1';
const QUICK = { simulation: 'factor=0.01' };
const PATIENCE_MS = 300_000;
/** Keys until the line is ended. */
const LINE = 50;
const ROUNDS = 3;

printMachine({ sessions, keys, loader: 'same machine', store: SERVICE_STORE });
const limits = { LEDGER_CONSOLES: String(sessions + 1), LEDGER_CONSOLES_PER_TENANT: String(sessions + 1) };
const bench = await startBenchService('api,processes', [], undefined, limits);
const { http, pid } = bench.service;

const call = async (
  method: string,
  path: string,
  body?: object,
  token = bench.userToken,
): Promise<JsonObject> => {
  const answer = await fetch(`${http}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
  return JSON.parse(text) as JsonObject;
};
const make = async (collection: string, name: string, spec: object): Promise<string> =>
  stringAt(
    await call('POST', `${PUBLIC}/${collection}`, { metadata: { name, annotations: QUICK }, spec }),
    'id',
  );
const settled = async (collection: string, count: number, state: string): Promise<void> => {
  const filter = encodeURIComponent(`this.status.state == ${state}`);
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = numberAt(await call('GET', `${PUBLIC}/${collection}?limit=0&filter=${filter}`), 'total');
    if (found >= count) return;
    if (performance.now() > deadline) throw new Error(`${found} of ${count} ${collection} are settled`);
    await pause(100);
  }
};

const open = async (id: string, type: string): Promise<WebSocket> => {
  const session = await call('POST', `${PUBLIC}/console_sessions`, {
    resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
    resource_id: id,
    type: `CONSOLE_TYPE_${type}`,
    client_id: randomUUID(),
  });
  const socket = new WebSocket(`${http.replace('http', 'ws')}${PUBLIC}/console_sessions/connect`, {
    headers: { authorization: `Bearer ${stringAt(session, 'ticket')}` },
    perMessageDeflate: false,
  });
  // Prompt and greeting come by themselves.
  await new Promise<void>((resolve, reject) => {
    socket.once('message', () => resolve());
    socket.once('error', reject).once('close', (code) => reject(new Error(`closed with ${code}`)));
  });
  return socket;
};

/** Milliseconds from each key to its echo. */
const echoes = async (socket: WebSocket): Promise<number[]> => {
  const delays: number[] = [];
  let said = '';
  let heard = (): void => undefined;
  const listen = (bytes: Buffer): void => {
    said += bytes.toString();
    heard();
  };
  socket.on('message', listen);
  const answer = (key: string, text: string): Promise<void> =>
    new Promise((resolve) => {
      said = '';
      heard = () => {
        if (said.endsWith(text)) resolve();
      };
      socket.send(key);
    });
  for (let n = 1; n <= keys; n += 1) {
    const began = performance.now();
    await answer('x', 'x');
    delays.push(performance.now() - began);
    if (n % LINE === 0) await answer('\r', '# ');
  }
  socket.off('message', listen);
  return delays;
};

const tell = (what: string, rounds: readonly (readonly number[])[]): void => {
  const of = (share: number): string => {
    const values = rounds.map((delays) => percentile(delays, share));
    return `${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}`;
  };
  console.log(`${what.padEnd(34)} p50 ms ${of(0.5)}   p99 ms ${of(0.99)}`);
};
const measured = async (what: string, socket: WebSocket): Promise<void> => {
  const rounds: number[][] = [];
  for (let n = 0; n < ROUNDS; n += 1) rounds.push(await echoes(socket));
  tell(what, rounds);
};

try {
  await call(
    'POST',
    `${PRIVATE}/network_classes`,
    {
      title: 'Networks',
      implementation_strategy: 'phys_net',
      fabric_manager: 'netris',
      is_default: true,
      capabilities: { supports_ipv4: true },
    },
    bench.adminToken,
  );
  const network = await make('virtual_networks', 'net', { ipv4_cidr: '10.0.0.0/16' });
  await settled('virtual_networks', 1, 'VIRTUAL_NETWORK_STATE_READY');
  const subnet = await make('subnets', 'sub', { virtual_network: { id: network }, ipv4_cidr: '10.0.0.0/20' });
  await settled('subnets', 1, 'SUBNET_STATE_READY');
  const machines: string[] = [];
  const count = Math.ceil(sessions / 2) + 1;
  for (let n = 0; n < count; n += 1)
    machines.push(
      await make('compute_instances', `vm-${n}`, {
        template: { id: 'osac.templates.vm' },
        network_attachments: [{ subnet: { id: subnet } }],
      }),
    );
  await settled('compute_instances', count, 'COMPUTE_INSTANCE_STATE_RUNNING');

  const [first = '', ...others] = machines;
  const typed = await open(first, 'SERIAL');
  await measured('key → echo, one session', typed);
  await pause(3_000);
  const [before, worked] = [residentMb(pid), processorMs(pid)];
  const idle: WebSocket[] = [];
  const began = performance.now();
  for (const id of others)
    for (const type of ['SERIAL', 'VNC']) if (idle.length < sessions) idle.push(await open(id, type));
  const seconds = (performance.now() - began) / 1_000;
  const processor = (processorMs(pid) - worked) / sessions;
  await pause(3_000);
  console.log(
    `${`${sessions} sessions opened`.padEnd(34)} ${(sessions / seconds).toFixed(0)} per s, ` +
      `${processor.toFixed(1)} ms of processor time each, ` +
      `RSS ${before.toFixed(0)} → ${residentMb(pid).toFixed(0)} MB: ${(residentMb(pid) - before).toFixed(1)} MB more`,
  );
  await measured(`key → echo beside ${sessions}`, typed);
  for (const socket of [typed, ...idle]) socket.terminate();
} finally {
  await bench.close();
}
