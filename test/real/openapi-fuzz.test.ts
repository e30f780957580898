import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { JsonObject } from '../../src/domain/json.ts';
import { listAt, stringAt } from '../../src/domain/json-tools.ts';
import { callerOf, type Caller } from '../support/service/caller.ts';
import { AS_DEPLOYED, createStack, type Stack, type Who } from '../support/service/stack.ts';
import { narrowed } from '../support/openapi/narrowed-document.ts';
import { SCHEMATHESIS, installPythonTools } from '../support/openapi/python-tools.ts';
import { notRunHere } from '../support/not-run-here.ts';

/**
 * Random calls from our own document, valid and not, to the running service: no fault of the service, no answer that
 * the
 * document does not tell of (issue: "Conformance"). Needs python3 and PyPI once; skipped, with the reason, without
 * them.
 */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
].join(',');
const SEED = Number(process.env['LEDGER_TEST_SEED'] ?? 20261121);
/** Random calls per operation and pass, besides those that cover every boundary of the schemas once. */
const EXAMPLES = Number(process.env['LEDGER_TEST_FUZZ'] ?? 10);

/**
 * Verbs that a path does not have are answered 501 there, as OSAC does: they are not asked for. Nor are
 * operations that a surface only declares, whose 501 is what the document says, nor consoles, whose 501 for what has none
 * is OSAC's.
 */
const SETTINGS = `[phases.coverage]
unexpected-methods = []

[[operations]]
include-operation-id-regex = "^public_((Tenants|ExternalIPPools|BareMetalInstanceTypes|BareMetalInstanceTemplates)_(Create|Update|Delete)|ConsoleSessions_Create)$"
enabled = false
`;

/**
 * Answers that go on until the caller leaves, those that wait for the next signed head (ten seconds each), and the one
 * call that writes a file wherever it is told to.
 */
const NOT_FUZZED = '/events|/trust\\.json|/store/backup';
/** Options of the fuzzer's command line. */
type Options = { readonly [name: string]: string };

const ADMIN: Who = { admin: true, user: 'fuzz-admin' };
const TENANT: Who = { tenant: 'acme', user: 'fuzz-user' };

describe(`the service under ${SCHEMATHESIS}`, function () {
  this.timeout(900_000);
  let stack: Stack;
  let folder: string;
  let command: string;
  let validator: string;
  let admin: Caller;
  let running: ChildProcess | undefined;

  before(async function () {
    const tools = installPythonTools();
    if ('missing' in tools) return notRunHere(this, 'schemathesis', tools.missing);
    command = tools.programOf('schemathesis');
    validator = tools.programOf('openapi-spec-validator');
    folder = mkdtempSync(join(tmpdir(), 'ledger-fuzz-'));
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
    admin = await callerOf(stack, ADMIN);
  });
  after(async () => {
    running?.kill('SIGKILL');
    await stack?.dispose();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  /** Runs the fuzzer beside this process, which goes on reading the log of the service. */
  const fuzz = async (who: Who, location: string, more: Options): Promise<string> => {
    const options: Options = {
      url: stack.http(),
      header: `Authorization: Bearer ${await stack.token(who)}`,
      checks: CHECKS,
      seed: String(SEED),
      'max-examples': String(EXAMPLES),
      workers: '1',
      'request-timeout': '10',
      'suppress-health-check': 'all',
      'generation-database': 'none',
      warnings: 'off',
      'exclude-path-regex': NOT_FUZZED,
      ...more,
    };
    const settings = join(folder, 'schemathesis.toml');
    writeFileSync(settings, SETTINGS);
    const argv = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    argv.push('--continue-on-failure', '--no-color');
    const child = spawn(command, ['--config-file', settings, 'run', location, ...argv], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running = child;
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => (said += part));
    child.stderr.setEncoding('utf8').on('data', (part: string) => (said += part));
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect(code, said).to.equal(0);
    return said;
  };

  const casesIn = (said: string): number => Number(/(\d+) generated/.exec(said)?.[1] ?? 0);
  /** Changes that were carried out since the start, as the metrics count them. */
  const written = async (): Promise<number> => {
    const text = await (await fetch(`${stack.service().metrics}/metrics`)).text();
    const counted = text.matchAll(
      /^ledger_http_request_seconds_count\{method="(?:POST|PATCH|DELETE)",[^}]*status="200"\} (\d+)/gm,
    );
    return [...counted].reduce((sum, [, count]) => sum + Number(count), 0);
  };

  it('has a document that fits the official schema of OpenAPI 3.1', async () => {
    const location = join(folder, 'openapi.json');
    writeFileSync(location, (await admin('GET', '/openapi.json')).text);
    const run = spawnSync(validator, ['--schema', '3.1', location], { encoding: 'utf8' });
    expect(run.status, run.stdout + run.stderr).to.equal(0);
  });

  it('answers what the document says to calls at every boundary of its schemas', async () => {
    const said = await fuzz(ADMIN, `${stack.http()}/openapi.json`, {
      phases: 'examples,coverage',
      // The private surface has the same schemas and handlers but for these.
      'include-path-regex': '^/(?!api/private/)|/(hubs|tenants|users)',
    });
    expect(casesIn(said), said).to.be.greaterThan(1_000);
  });

  it('answers what the document says to every random call', async () => {
    const said = await fuzz(ADMIN, `${stack.http()}/openapi.json`, { phases: 'fuzzing' });
    expect(casesIn(said), said).to.be.greaterThan(1_000);
  });

  /** Another service: what the calls before deleted (a tenant, a template) must not decide what this caller can do. */
  const afresh = async (): Promise<void> => {
    await stack.dispose();
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
    admin = await callerOf(stack, ADMIN);
  };
  const expectWell = async (): Promise<void> => {
    const ready = await fetch(`${stack.http()}/readyz`);
    expect(ready.status, await ready.text()).to.equal(200);
    expect(stack.service().log.filter((line) => line.includes('"request failed"'))).to.deep.equal([]);
  };

  it('is well after them and has logged no fault', expectWell);

  for (const [surface, who] of [
    ['fulfillment', TENANT],
    ['private', ADMIN],
  ] as const)
    it(`answers what the document says to callers of /api/${surface} who know what is there`, async () => {
      await afresh();
      const { json } = await admin('GET', '/openapi.json');
      const location = join(folder, `${surface}.json`);
      writeFileSync(location, JSON.stringify(narrowed(json() as JsonObject, await knownIds(admin), 'acme')));
      const before = await written();
      const said = await fuzz(who, location, {
        // The examples too: hardly a random call of a plain tenant is one that may change something.
        phases: 'examples,fuzzing',
        mode: 'positive',
        'include-path-regex': `^/api/${surface}/`,
      });
      expect(casesIn(said), said).to.be.greaterThan(100);
      expect(await written(), `changes that were carried out\n${said}`).to.be.greaterThan(before);
      await expectWell();
    });
});

/** Ids of what the catalogue made, by collection. */
const knownIds = async (admin: Caller): Promise<ReadonlyMap<string, readonly string[]>> => {
  const document = (await admin('GET', '/openapi.json')).json() as JsonObject;
  const collections = Object.keys(document['paths'] as JsonObject).flatMap((path) => {
    const [, collection] = /^\/api\/private\/v1\/([a-z_]+)\/\{id\}$/.exec(path) ?? [];
    return collection === undefined ? [] : [collection];
  });
  const found = collections.map(async (collection): Promise<readonly [string, readonly string[]]> => {
    const list = (await admin('GET', `/api/private/v1/${collection}?limit=20`)).json() as JsonObject;
    return [collection, listAt(list, 'items').map((item) => stringAt(item, 'id'))];
  });
  return new Map(await Promise.all(found));
};
