import { expect } from 'chai';
import fc from 'fast-check';
import { redacted, secretsInPullSecret, tailOf, withoutControls } from '../../../src/domain/redact.ts';
import { check } from '../../support/property.ts';

const PASSWORD = 'hunter2-canary';
const AUTH = Buffer.from(`robot:${PASSWORD}`).toString('base64');
const PULL_SECRET = JSON.stringify({ auths: { 'quay.io': { auth: AUTH, email: 'a@example' } } });

describe('what is kept of an output', () => {
  const escaped = JSON.stringify(JSON.stringify({ a: PULL_SECRET }));
  for (const [what, text] of [
    ['a pull secret', `"pullSecret": ${JSON.stringify(PULL_SECRET)}`],
    ['a pull secret in JSON in JSON', escaped],
    ['a docker configuration', PULL_SECRET],
    ['a password in YAML', `password: ${PASSWORD}`],
    ['a password in a command line', `--password=${PASSWORD} --verbose`],
    ['a quoted password with blanks', `"password": "${PASSWORD} and ${PASSWORD}"`],
    ['a password in single quotes', `{'password': '${PASSWORD}'}`],
    ['a bearer token', `Authorization: Bearer ${PASSWORD}`],
    ['another authorization', `authorization: token ${PASSWORD}`],
    ['a bearer token alone', `sent bearer ${PASSWORD}`],
    ['a token by name', `OSAC_AAP_TOKEN=${PASSWORD}`],
    ['a client secret', `client_secret: '${PASSWORD}'`],
    ['an AWS key', `aws_secret_access_key = ${PASSWORD}`],
    ['an address with a password', `cloning https://robot:${PASSWORD}@git.example/x.git`],
    ['a private key', `-----BEGIN RSA PRIVATE KEY-----\n${PASSWORD}\n-----END RSA PRIVATE KEY-----`],
    ['a private key without an end', `-----BEGIN PRIVATE KEY-----\n${PASSWORD}`],
    ['a kubeconfig key', `client-key-data: ${Buffer.from(PASSWORD).toString('base64')}`],
    ['a docker configuration in base64', `.dockerconfigjson: ${Buffer.from(PULL_SECRET).toString('base64')}`],
    ['a token of a service account', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.c2lnbmF0dXJl'],
    ['a token of OpenShift', 'sha256~hunter2hunter2hunter2hunter2hunter2xxx'],
  ] as const) {
    it(`hides ${what}`, () => {
      const kept = redacted(`before\n${text}\nafter`);
      expect(kept).to.include('***');
      for (const secret of [
        PASSWORD,
        AUTH,
        'hunter2',
        Buffer.from(PASSWORD).toString('base64'),
        'c2lnbmF0dXJl',
      ]) {
        expect(kept).not.to.include(secret);
      }
      expect(kept.startsWith('before\n')).to.equal(true);
    });
  }

  it('leaves what is said about the failure', () => {
    const text = [
      'TASK [osac.service.hosted_cluster : Create HostedCluster] ****',
      'fatal: [localhost]: FAILED! => {"changed": false, "msg": "namespaces \\"orders-a\\" not found", "rc": 1}',
      'authentication failed for user admin; see the token review',
      'PLAY RECAP: localhost : ok=12 changed=3 unreachable=0 failed=1',
    ].join('\n');
    expect(redacted(text)).to.equal(text);
  });

  it('hides values that it is told of, however they are written', () => {
    const value = 'va"l\nue-canary';
    check(
      fc.property(fc.constantFrom(0, 1, 2, 3), fc.string(), (way, around) => {
        const once = JSON.stringify(value).slice(1, -1);
        const ways = [value, once, JSON.stringify(once).slice(1, -1), Buffer.from(value).toString('base64')];
        const written = ways[way] ?? '';
        return !redacted(`${around} ${written} ${around}`, [value]).includes(written);
      }),
    );
  });

  it('knows every credential of a pull secret', () => {
    expect(secretsInPullSecret(PULL_SECRET)).to.include.members([PULL_SECRET, AUTH, PASSWORD]);
    expect(secretsInPullSecret('no json')).to.deep.equal(['no json']);
  });

  it('takes no longer for a text that was made to take long', () => {
    const parts = [
      'a-',
      'eyJ-',
      'token ',
      '"password":"',
      '-----BEGIN PRIVATE KEY-----',
      '://a:',
      '\\"',
      '{',
    ];
    for (const part of parts) {
      const text = part.repeat(Math.ceil((512 * 1024) / part.length));
      const begun = performance.now();
      redacted(text, ['some-value']);
      expect(performance.now() - begun, JSON.stringify(part)).to.be.lessThan(20_000);
    }
  });

  it('is the end of it, in whole lines', () => {
    expect(tailOf('one\ntwo\nthree\n', 100)).to.equal('one\ntwo\nthree');
    expect(tailOf('one\ntwo\nthree', 8)).to.equal('three');
    expect(tailOf('x'.repeat(10), 4)).to.equal('xxxx');
  });

  it('has no terminal controls', () => {
    expect(withoutControls('\u001B[0;31mfatal\u001B[0m\r\n\tdone\u0007')).to.equal('fatal\n\tdone');
  });
});
