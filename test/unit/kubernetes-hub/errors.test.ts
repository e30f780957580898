import { inspect } from 'node:util';
import { expect } from 'chai';
import {
  redactor,
  refusal,
  retryAfterMs,
  silence,
} from '../../../src/adapters/management-cluster/kubernetes/api-errors.ts';
import { NoAnswer } from '../../../src/adapters/management-cluster/kubernetes/connection.ts';
import { HubError } from '../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';

const status = (code: number, more: object = {}) => ({
  status: code,
  headers: {},
  body: JSON.stringify({ apiVersion: 'v1', kind: 'Status', status: 'Failure', code, ...more }),
});
const plain = (text: string) => text;
const kindOf = (answer: { status: number; headers: object; body: string }, write = true): string =>
  refusal({ ...answer, headers: {} }, 'create clusterorders a/b', write, plain).kind;

describe('answers of an API server that are no success', () => {
  const CASES: readonly (readonly [string, ReturnType<typeof status>, string, string])[] = [
    ['400', status(400, { reason: 'BadRequest' }), 'invalid', 'invalid'],
    ['401', status(401, { reason: 'Unauthorized' }), 'unauthorized', 'unauthorized'],
    ['403', status(403, { reason: 'Forbidden', message: 'cannot create' }), 'unauthorized', 'unauthorized'],
    [
      '403 of a namespace that ends',
      status(403, { reason: 'Forbidden', details: { causes: [{ reason: 'NamespaceTerminating' }] } }),
      'conflict',
      'conflict',
    ],
    [
      '403 of a quota',
      status(403, { message: 'x is forbidden: exceeded quota: y' }),
      'throttled',
      'throttled',
    ],
    [
      '403 of an admission webhook',
      status(403, { message: 'admission webhook "images.example.org" denied the request: not from there' }),
      'invalid',
      'invalid',
    ],
    [
      '403 of an admission policy',
      status(403, {
        reason: 'Forbidden',
        message:
          "clusterorders.osac.openshift.io \"b\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no",
      }),
      'invalid',
      'invalid',
    ],
    [
      '403 of a user of that name',
      status(403, { message: 'User "denied request: x" cannot create resource "clusterorders"' }),
      'unauthorized',
      'unauthorized',
    ],
    [
      '404 of an object',
      status(404, { reason: 'NotFound', details: { name: 'b' } }),
      'not-found',
      'not-found',
    ],
    ['404 of a kind, as Status', status(404, { reason: 'NotFound', details: {} }), 'not-ready', 'not-ready'],
    [
      '404 of a kind, as text',
      { status: 404, headers: {}, body: '404 page not found' },
      'not-ready',
      'not-ready',
    ],
    ['409 of a name', status(409, { reason: 'AlreadyExists' }), 'already-exists', 'already-exists'],
    ['409 of a version', status(409, { reason: 'Conflict' }), 'conflict', 'conflict'],
    ['410', status(410, { reason: 'Expired' }), 'unavailable', 'unavailable'],
    ['422', status(422, { reason: 'Invalid' }), 'invalid', 'invalid'],
    ['429', status(429), 'throttled', 'throttled'],
    ['500', status(500), 'unknown-outcome', 'unavailable'],
    ['502 of a proxy', { status: 502, headers: {}, body: '<html>' }, 'unknown-outcome', 'unavailable'],
    ['503', status(503), 'unavailable', 'unavailable'],
    ['504', status(504, { reason: 'Timeout' }), 'unknown-outcome', 'unavailable'],
    ['a redirect', { status: 307, headers: {}, body: '' }, 'unavailable', 'unavailable'],
  ];
  for (const [name, answer, write, read] of CASES)
    it(`${name}: ${write} for a write, ${read} for a read`, () => {
      expect([kindOf(answer), kindOf(answer, false)]).to.deep.equal([write, read]);
    });

  it('tell the field and why, and skip the cause that says nothing', () => {
    const causes = [
      { field: 'spec.releaseImage', reason: 'FieldValueInvalid', message: 'Invalid value: "x"' },
      { field: '<nil>', reason: 'FieldValueInvalid', message: 'some validation rules were not checked' },
    ];
    const error = refusal(status(422, { details: { causes } }), 'create', true, plain);
    expect(error.message).to.equal('create: spec.releaseImage: Invalid value: "x"');
    expect(error.facts['causes']).to.have.length(1);
  });

  it('never repeat a pull secret, however it is quoted', () => {
    const secret = '{"auths":{"r":{"auth":"canary-9fA"}}}';
    const quoted = JSON.stringify(secret);
    const redact = redactor([secret]);
    const cause = { field: 'spec.pullSecret', reason: 'FieldValueTooLong', message: `Too long: ${quoted}` };
    for (const body of [
      { message: `spec.pullSecret: Invalid value: ${quoted}: no` },
      { message: `admission webhook says ${secret}` },
      { message: `admission webhook says ${quoted}` },
      { details: { causes: [cause] } },
      { details: { causes: [{ ...cause, field: 'spec', message: `pullSecret: Invalid value: ${quoted}` }] } },
    ]) {
      const error = refusal(status(422, body), 'create', true, redact);
      expect(JSON.stringify([error.message, error.facts])).to.not.include('canary');
    }
  });

  it('are short, whatever the hub says', () => {
    const error = refusal(status(500, { message: 'x'.repeat(1_000_000) }), 'get', false, redactor([]));
    expect(error.message.length).to.be.lessThan(1_000);
  });

  it('say when to come again: seconds, a date, or the Status; not longer than ten minutes', () => {
    expect(retryAfterMs({ headers: { 'retry-after': '3' } })).to.equal(3_000);
    const date = 'Sat, 21 Nov 2026 20:00:00 GMT';
    expect(retryAfterMs({ headers: { date, 'retry-after': 'Sat, 21 Nov 2026 20:00:07 GMT' } })).to.equal(
      7_000,
    );
    expect(retryAfterMs({ headers: { 'retry-after': '999999' } })).to.equal(600_000);
    for (const text of ['', 'soon', '-3']) {
      const answer = { ...status(429), headers: { 'retry-after': text } };
      expect(refusal(answer, 'get', false, plain).retryAfterMs ?? 0).to.equal(0);
    }
    const inBody = refusal(status(429, { details: { retryAfterSeconds: 2 } }), 'get', false, plain);
    expect(inBody.retryAfterMs).to.equal(2_000);
  });
});

describe('calls without an answer', () => {
  it('leave a write in doubt only when it may have been seen', () => {
    const kinds = (['ECONNREFUSED', 'ECONNRESET'] as const).map(
      (code) => silence(new NoAnswer(code === 'ECONNRESET', code), 'create', true).kind,
    );
    expect(kinds).to.deep.equal(['unavailable', 'unknown-outcome']);
    expect(silence(new NoAnswer(true, 'TIMEOUT'), 'get', false).kind).to.equal('unavailable');
  });
});

describe('errors of a hub', () => {
  it('do not show the order they carry to who logs their fields', () => {
    const order = CLUSTER_ORDER.shown({ metadata: { name: 'a' }, spec: { pullSecret: 'canary' } });
    const error = new HubError('already-exists', 'taken', { object: order });
    expect(error.object?.spec).to.have.property('pullSecret', 'canary');
    expect(JSON.stringify(Object.entries(error)) + inspect(error)).to.not.include('canary');
  });
});
