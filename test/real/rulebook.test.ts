import { createHmac } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { rulebookEnvironment, type RulebookEnvironment } from '../../ops/real/rulebook/environment.ts';
import { startRealRulebook, type RealRulebook } from '../../ops/real/rulebook/server.ts';
import { createAutomations } from '../../src/adapters/automation/automations.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { objectAt, stringAt, valueAt } from '../../src/domain/json-tools.ts';
import {
  callBy,
  connectionTo,
  describeAutomationContract,
  HMAC_SECRET,
  nameOf,
  orderCalled,
  refusedWith,
  secretStore,
  TOKEN,
  type Credentials,
} from '../integration/automation/contract.ts';
import { loopbackTls } from '../support/http/loopback-tls.ts';
import { startRulebook } from '../support/rulebook/rulebook-server.ts';
import { eventually } from '../support/eventually.ts';
import { obtained } from '../support/not-run-here.ts';

/**
 * Our adapter and our rulebook on the real ansible-rulebook, and our stand-in beside it: it must answer as that does. The
 * program installs itself from PyPI once; where it cannot, this suite is not run here.
 */
const RIGHT: Credentials = { token: TOKEN, hmacSecret: HMAC_SECRET };
const PLAYBOOK_MS = 30_000;

type Real = RealRulebook & { readonly given: () => readonly JsonObject[] };

let environment: RulebookEnvironment;
const startReal = async (tls?: Awaited<ReturnType<typeof loopbackTls>>): Promise<Real> => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-given-'));
  const rulebook = await startRealRulebook({
    environment,
    token: TOKEN,
    hmacSecret: HMAC_SECRET,
    env: { GIVEN_FOLDER: folder },
    ...(tls === undefined ? {} : { tls }),
  });
  return {
    ...rulebook,
    // A file is renamed into place by Ansible when it is complete.
    given: () =>
      readdirSync(folder)
        .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
        .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as JsonObject),
    close: async () => {
      await rulebook.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
const endpointOf = (given: JsonObject): string =>
  stringAt(valueAt(given, 'eda.event.meta') as JsonObject, 'endpoint');

describe('Event-Driven Ansible by the real program', () => {
  before(function () {
    this.timeout(600_000);
    environment = obtained(this, 'rulebook', rulebookEnvironment);
  });

  describeAutomationContract(
    'Event-Driven Ansible, the real ansible-rulebook',
    async () => {
      const rulebook = await startReal();
      const automations = createAutomations({ secrets: secretStore });
      return {
        connect: (change) => automations.of(connectionTo('eda', rulebook.url, { ...RIGHT, ...change })),
        connectNowhere: () => automations.of(connectionTo('eda', 'http://127.0.0.1:1', RIGHT)),
        given: async () =>
          rulebook.given().map((given) => ({
            purpose: endpointOf(given).startsWith('create')
              ? ('provision' as const)
              : ('deprovision' as const),
            order: objectAt(objectAt(given, 'job_vars'), 'resource'),
          })),
        patienceMs: PLAYBOOK_MS,
        close: rulebook.close,
      };
    },
    { signed: true, each: 'shared' },
  );

  describe('the real ansible-rulebook', function () {
    this.timeout(180_000);
    let real: Real;
    before(async () => {
      real = await startReal();
    });
    after(() => real?.close());

    const automations = createAutomations({ secrets: secretStore });
    const post = (url: string, order: JsonObject, ca?: string) =>
      automations
        .of(connectionTo('eda', url, RIGHT, ca === undefined ? {} : { ca }))
        .trigger(
          { purpose: 'provision', orderName: nameOf(order), order },
          callBy({ effectId: 'run-1/trigger:1' }),
        );
    const givenTo = (rulebook: Real, name: string): JsonObject | undefined =>
      rulebook
        .given()
        .find(
          (given) => stringAt(valueAt(given, 'job_vars.resource.metadata') as JsonObject, 'name') === name,
        );

    const sign = (body: string, secret = HMAC_SECRET): string =>
      createHmac('sha256', secret).update(body).digest('hex');
    const GOOD = JSON.stringify({ metadata: { name: 'raw' } });
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const signed = (body: string): Record<string, string> => ({
      ...bearer,
      'x-hub-signature-256': `sha256=${sign(body)}`,
    });
    const LARGE = JSON.stringify('x'.repeat(1_048_576));

    const cases: readonly (readonly [
      what: string,
      method: string,
      body: string,
      headers: Record<string, string>,
    ])[] = [
      ['a good request', 'POST', GOOD, signed(GOOD)],
      ['a signature without its prefix', 'POST', GOOD, { ...bearer, 'x-hub-signature-256': sign(GOOD) }],
      ['an array', 'POST', '[]', signed('[]')],
      ['no authorization', 'POST', GOOD, {}],
      ['a wrong token', 'POST', GOOD, { ...signed(GOOD), authorization: 'Bearer wrong' }],
      ['another scheme', 'POST', GOOD, { ...signed(GOOD), authorization: 'Basic wrong' }],
      ['a scheme in small letters', 'POST', GOOD, { ...signed(GOOD), authorization: `bearer ${TOKEN}` }],
      ['no signature', 'POST', GOOD, bearer],
      [
        'a wrong signature',
        'POST',
        GOOD,
        { ...bearer, 'x-hub-signature-256': `sha256=${sign(GOOD, 'wrong')}` },
      ],
      ['the signature of another body', 'POST', GOOD, signed('{}')],
      [
        'a signature in capitals',
        'POST',
        GOOD,
        { ...bearer, 'x-hub-signature-256': `sha256=${sign(GOOD).toUpperCase()}` },
      ],
      ['no JSON', 'POST', '{', signed('{')],
      ['an empty body', 'POST', '', signed('')],
      ['a body that is too large', 'POST', LARGE, signed(LARGE)],
      ['GET without a signature', 'GET', '', bearer],
      ['GET', 'GET', '', signed('')],
      ['PUT', 'PUT', GOOD, signed(GOOD)],
      ['GET without authorization', 'GET', '', {}],
    ];
    for (const [what, method, body, headers] of cases) {
      it(`answers ${what} as our stand-in does`, async () => {
        const standIn = await startRulebook({ token: TOKEN, hmacSecret: HMAC_SECRET });
        try {
          // No rule is about this path, so that a good request runs nothing.
          const [real_, ours] = await Promise.all(
            [real.url, standIn.url].map((url) => ask(`${url}/no-rule?x=1`, method, body, headers)),
          );
          expect(ours).to.deep.equal(real_);
        } finally {
          await standIn.close();
        }
      });
    }

    it('gives its playbooks both shapes of the order and our idempotency key, but not the token', async () => {
      const order = orderCalled('order-shapes');
      await post(real.url, order);
      await eventually('the playbook ran', () => givenTo(real, 'order-shapes') !== undefined, PLAYBOOK_MS);
      const given = givenTo(real, 'order-shapes') ?? {};
      expect(valueAt(given, 'job_vars.resource')).to.deep.equal(order);
      expect(valueAt(given, 'eda.event.payload')).to.deep.equal(order);
      const headers = valueAt(given, 'eda.event.meta.headers') as JsonObject;
      expect(headers).to.include({ 'Idempotency-Key': 'run-1/trigger:1' });
      expect(JSON.stringify(given)).not.to.include(TOKEN);
    });

    it('would carry out a template in an order, which is why our adapter refuses one', async () => {
      const body = JSON.stringify({ metadata: { name: 'order-evil' }, spec: { a: 'answer {{ 6 * 7 }}' } });
      const answer = await ask(`${real.url}/create-hosted-cluster`, 'POST', body, signed(body));
      expect(answer.status).to.equal(200);
      await eventually('the playbook ran', () => givenTo(real, 'order-evil') !== undefined, PLAYBOOK_MS);
      expect(valueAt(givenTo(real, 'order-evil') ?? {}, 'job_vars.resource.spec.a')).to.equal('answer 42');
    });

    it('listens with TLS as its comment says, and is reached with its authority only', async () => {
      const tls = await loopbackTls();
      const secure = await startReal(tls);
      try {
        await post(secure.url, orderCalled('order-tls'), tls.cert);
        await eventually('the playbook ran', () => givenTo(secure, 'order-tls') !== undefined, PLAYBOOK_MS);
        expect((await refusedWith(post(secure.url, orderCalled('order-tls')))).kind).to.equal('unavailable');
      } finally {
        await secure.close();
      }
    });

    it('loses what it accepted when it is killed, and takes orders again when it is back', async () => {
      await Promise.all(Array.from({ length: 4 }, (_, n) => post(real.url, orderCalled(`order-lost-${n}`))));
      await real.kill();
      expect((await refusedWith(post(real.url, orderCalled('order-dead')))).kind).to.equal('unavailable');
      await real.restart();
      await post(real.url, orderCalled('order-after'));
      await eventually('the playbook ran', () => givenTo(real, 'order-after') !== undefined, PLAYBOOK_MS);
      const lost = [0, 1, 2, 3].filter((n) => givenTo(real, `order-lost-${n}`) === undefined);
      expect(lost).not.to.deep.equal([]);
    });
  });

  type Answer = {
    readonly status: number | undefined;
    readonly reason: string | undefined;
    readonly text: string;
    readonly allow: string | undefined;
  };

  /** One request whose every byte is ours. */
  const ask = (url: string, method: string, body: string, headers: Record<string, string>): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const length = { 'content-length': String(Buffer.byteLength(body)) };
      const asked = plainRequest(
        url,
        { method, headers: { ...headers, ...length }, agent: false },
        (answer) => {
          let text = '';
          answer.setEncoding('utf8').on('data', (part: string) => (text += part));
          answer.once('end', () =>
            resolve({
              status: answer.statusCode,
              reason: answer.statusMessage,
              text,
              allow: answer.headers.allow,
            }),
          );
        },
      );
      asked.once('error', reject);
      asked.end(body);
    });
});
