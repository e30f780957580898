import { expect } from 'chai';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { mintToken } from '../../../src/adapters/identity/development-issuer.ts';
import { createLogger } from '../../../src/composition/logger.ts';
import { startService, type Service } from '../../../src/composition/service.ts';
import { readConfig } from '../../../src/config.ts';
import { textAt, type Json } from '../../support/http-service.ts';

const TEXTS = {
  name: 'canary-name-5e1f',
  username: 'Canary.Username-5e1f',
  email: 'canary-5e1f@mail.example',
  display: 'Canary Display 5e1f',
  password: 'canary-password-5e1f',
  annotation: 'Canary Annotation 5e1f',
  keycloak: 'canary-keycloak-5e1f',
  condition: 'Canary Condition 5e1f',
  caller: 'canary-caller-5e1f',
  callerMail: 'caller-5e1f@mail.example',
} as const;

/** As careless writers would write it. */
const spellings = (text: string): readonly string[] => [
  text,
  text.toLowerCase(),
  Buffer.from(text).toString('base64').replace(/=+$/, ''),
  Buffer.from(text).toString('hex'),
  encodeURIComponent(text),
];

/**
 * With the whole service on its files: what names a person is in read models alone, which are
 * disposable, and can be read nowhere once the key is gone.
 */
describe('personal canaries of users', () => {
  let directory: string;
  let service: Service;
  let logged: string;

  const start = async (): Promise<void> => {
    const config = readConfig({
      LEDGER_DATA_DIR: directory,
      LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
      LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
      LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
      LEDGER_LOG_LEVEL: 'trace',
    });
    const logger = createLogger('trace', { write: (line: string) => void (logged += line) });
    service = await startService(config, { logger, nodeEnv: 'test', announce: () => undefined });
  };
  const token = (claims: object): Promise<string> =>
    mintToken(join(directory, 'secrets'), {
      user: 'root',
      ttlSeconds: 600,
      now: Date.now(),
      ...claims,
    });
  const call = async (bearer: string, verb: string, path: string, body?: object): Promise<Json> => {
    const response = await fetch(service.http + path, {
      method: verb,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return JSON.parse(text) as Json;
  };
  const rebuild = async (bearer: string): Promise<string> => {
    const response = await fetch(`${service.http}/api/ledger/v1/projections/resources/rebuild`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}` },
    });
    return response.text();
  };
  const filesWith = async (texts: readonly string[]): Promise<string[]> => {
    const found: string[] = [];
    for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const content = (await readFile(path)).toString('latin1');
      if (texts.flatMap(spellings).some((text) => content.includes(text)))
        found.push(relative(directory, path));
    }
    return found;
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-people-'));
    logged = '';
    await start();
  });
  afterEach(async () => {
    await service.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it('are in no log, log line, snapshot or index, and gone with their key', async function () {
    this.timeout(30_000);
    const admin = await token({ admin: true });
    await call(admin, 'POST', '/api/private/v1/tenants', { metadata: { name: 't1' } });
    const boss = await token({
      user: TEXTS.caller,
      email: TEXTS.callerMail,
      tenant: 't1',
      roles: ['tenant-admin'],
    });
    const created = await call(boss, 'POST', '/api/fulfillment/v1/users', {
      metadata: {
        name: TEXTS.name,
        display_name: TEXTS.display,
        annotations: { 'example.com/note': TEXTS.annotation },
      },
      spec: {
        username: TEXTS.username,
        email: TEXTS.email,
        credentials: { password: TEXTS.password },
      },
    });
    const path = `/api/fulfillment/v1/users/${textAt(created, 'id')}`;
    await call(boss, 'PATCH', path, { spec: { enabled: true } });
    const condition = { type: 'Synced', status: 'CONDITION_STATUS_TRUE', message: TEXTS.condition };
    const reported = await call(admin, 'PATCH', path.replace('fulfillment', 'private'), {
      status: { keycloak_user_id: TEXTS.keycloak, conditions: [condition] },
    });
    expect(textAt(reported, 'status', 'keycloak_user_id')).to.equal(TEXTS.keycloak);
    expect(textAt(reported, 'status', 'conditions', '0', 'message')).to.equal(TEXTS.condition);
    await call(boss, 'PATCH', path, { metadata: { labels: { a: 'b' } } });
    const shown = await call(boss, 'GET', path);
    expect(textAt(shown, 'metadata', 'annotations', 'example.com/note')).to.equal(TEXTS.annotation);
    expect(textAt(shown, 'spec', 'email')).to.equal(TEXTS.email);
    const creator = await call(
      boss,
      'GET',
      `/api/fulfillment/v1/users/${textAt(shown, 'metadata', 'creator')}`,
    );
    expect(textAt(creator, 'spec', 'username')).to.equal(TEXTS.caller);

    const taken = await fetch(`${service.http}/api/fulfillment/v1/users`, {
      method: 'POST',
      headers: { authorization: `Bearer ${boss}`, 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name: TEXTS.name } }),
    });
    expect(taken.status).to.equal(409);
    expect(await taken.text()).not.to.include(TEXTS.name);
    expect(await rebuild(admin), 'a copy made from ciphertext is the same').to.include(
      '"outcome":"switched"',
    );
    await service.stop();

    const inFiles = await filesWith(Object.values(TEXTS));
    expect(inFiles.filter((file) => !file.startsWith('read-models/'))).to.deep.equal([]);
    expect(inFiles, 'read models show clear text').not.to.have.length(0);
    for (const text of Object.values(TEXTS).flatMap(spellings))
      expect(logged.includes(text), `${text} in the log`).to.equal(false);

    // Read models are made again from the log; without the keys nothing is left to show.
    await rm(join(directory, 'read-models'), { recursive: true });
    await rm(join(directory, 'secrets', 'subjects'), { recursive: true });
    await start();
    const erased = await call(await token({ admin: true }), 'GET', path.replace('fulfillment', 'private'));
    expect(erased['spec']).to.deep.equal({ username: 'erased', email: 'erased', enabled: true });
    expect(textAt(erased, 'metadata', 'name')).to.equal('erased');
    expect(textAt(erased, 'metadata', 'annotations', 'example.com/note')).to.equal('erased');
    expect(textAt(erased, 'status', 'keycloak_user_id')).to.equal('erased');
    expect(textAt(erased, 'status', 'conditions', '0', 'message')).to.equal('erased');
    await service.stop();
    expect(await filesWith(Object.values(TEXTS))).to.deep.equal([]);
    await start();
  });
});
