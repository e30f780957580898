/** Verified tokens per second, cold and warm, and calls in a tenant of 1 and of N users. Arguments: [users] [seconds] [repetitions] [clients]. */
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type autocannon from 'autocannon';
import {
  openDevelopmentIssuer,
  type DevelopmentIssuer,
} from '../../src/adapters/identity/development-issuer.ts';
import { createTokenVerifier } from '../../src/adapters/identity/token-verifier.ts';
import { SERVICE_STORE } from './support/event-store.ts';
import { printMachine, range, residentMb } from './support/report.ts';
import { load, startBenchService, type BenchService, type LoadResult } from './support/service.ts';

const users = Number(process.argv[2] ?? 10_000);
const seconds = Number(process.argv[3] ?? 5);
const repetitions = Number(process.argv[4] ?? 3);
const clients = Number(process.argv[5] ?? 32);
/** Tokens that the cold measurements may use; each is seen once. */
const TOKENS = 2_000;
const TENANT = 'acme';

const show = (name: string, columns: readonly string[]): void =>
  console.log(`${name.padEnd(46)}${columns.map((text) => text.padEnd(22)).join('')}`);

const mintMany = (
  issuer: DevelopmentIssuer,
  prefix: string,
  groups: readonly string[] = [],
): Promise<string[]> =>
  Promise.all(
    Array.from({ length: TOKENS }, (_, i) =>
      issuer.mintToken({
        user: `${prefix}-${hash('md5', String(i))}`,
        tenant: TENANT,
        groups,
        ttlSeconds: 7_200,
        now: Date.now(),
      }),
    ),
  );

/** The verifier alone: what a signature costs, and what remembering it saves. */
const verifyAlone = async (): Promise<void> => {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-auth-'));
  try {
    const issuer = await openDevelopmentIssuer(dir);
    const groups = Array.from({ length: 1_000 }, (_, i) => `g${i}`);
    for (const [name, tokens] of [
      ['a plain token', await mintMany(issuer, 'v')],
      ['a token of 1,000 groups', (await mintMany(issuer, 'g', groups)).slice(0, 500)],
    ] as const) {
      const cold: number[] = [];
      const warm: number[] = [];
      for (let run = 0; run < repetitions; run += 1) {
        const issuers = new Map([[issuer.issuer, issuer.keys]]);
        const verifier = createTokenVerifier({ issuers, now: Date.now });
        cold.push(
          await perSecond(tokens.length, async () => {
            for (let i = 0; i < tokens.length; i += clients)
              await Promise.all(tokens.slice(i, i + clients).map((token) => verifier.verify(token)));
          }),
        );
        const rounds = 20;
        warm.push(
          await perSecond(tokens.length * rounds, async () => {
            for (let round = 0; round < rounds; round += 1)
              for (const token of tokens)
                if (verifier.recall(token) === undefined) throw new Error('a token was forgotten');
          }),
        );
      }
      show(`verified per second, ${name}`, [`cold ${range(cold)}`, `warm ${range(warm)}`]);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

const perSecond = async (count: number, work: () => Promise<void>): Promise<number> => {
  const started = performance.now();
  await work();
  return (count * 1000) / (performance.now() - started);
};

const CLUSTERS = '/api/fulfillment/v1/clusters';

/** Calls that read nothing: what is left is authentication, the User of the caller, and the way there and back. */
const measureCalls = async (bench: BenchService, label: string): Promise<void> => {
  const runs: LoadResult[] = [];
  for (let i = 0; i < repetitions; i += 1)
    runs.push(
      await load(bench.service.http, bench.userToken, clients, seconds, {
        method: 'GET',
        path: `${CLUSTERS}?limit=0`,
      }),
    );
  show(`GET, known caller, ${label}`, [
    `${range(runs.map((run) => run.perSecond))}/s`,
    `p50 ${range(runs.map((run) => run.p50))} ms`,
    `p99 ${range(runs.map((run) => run.p99))} ms`,
    `failed ${runs.reduce((sum, run) => sum + run.errors, 0)}`,
  ]);
};

/** First calls: a signature each, and a User made behind each. */
const measureFirstCalls = async (bench: BenchService, tokens: readonly string[]): Promise<void> => {
  let failed = 0;
  const rate = await perSecond(tokens.length, async () => {
    let next = 0;
    const one = async (): Promise<void> => {
      for (let token = tokens[next++]; token !== undefined; token = tokens[next++]) {
        const answer = await fetch(`${bench.service.http}${CLUSTERS}?limit=0`, {
          headers: { authorization: `Bearer ${token}` },
        });
        if (!answer.ok) failed += 1;
        await answer.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: clients }, one));
  });
  show(`GET, ${tokens.length} callers seen for the first time`, [`${range([rate])}/s`, `failed ${failed}`]);
};

const userRequest = (): Partial<autocannon.Request> => {
  let n = 0;
  return {
    method: 'POST',
    path: '/api/private/v1/users',
    setupRequest: (request) => {
      n += 1;
      const name = `user-${hash('md5', `${performance.now()} ${n}`).slice(0, 24)}`;
      const body = {
        metadata: { name, tenant: TENANT },
        spec: { username: name, email: `${name}@x.example` },
      };
      return { ...request, body: JSON.stringify(body) };
    },
  };
};

const usersStored = async (bench: BenchService): Promise<number> => {
  const answer = await fetch(`${bench.service.http}/api/private/v1/users?limit=0`, {
    headers: { authorization: `Bearer ${bench.adminToken}` },
  });
  return ((await answer.json()) as { total?: number }).total ?? 0;
};

printMachine({ users, seconds, repetitions, clients, loader: 'same machine', store: SERVICE_STORE });
await verifyAlone();
const bench = await startBenchService('api');
try {
  await measureCalls(bench, '1 user in the tenant');
  const made: LoadResult[] = [];
  while ((await usersStored(bench)) < users)
    made.push(await load(bench.service.http, bench.adminToken, clients, 2, userRequest()));
  show('POST of users', [`${range(made.map((run) => run.perSecond))}/s`]);
  await measureCalls(bench, `${await usersStored(bench)} users in the tenant`);
  const issuer = await openDevelopmentIssuer(join(bench.dataDir, 'secrets'));
  await measureFirstCalls(bench, await mintMany(issuer, 'first'));
  console.log(`RSS ${residentMb(bench.service.pid).toFixed(0)} MB at the end`);
} finally {
  await bench.close();
}
