import { expect } from 'chai';
import { stringify } from 'yaml';
import {
  InvalidKubeconfig,
  readKubeconfig,
} from '../../../src/adapters/management-cluster/kubernetes/kubeconfig.ts';
import { createAuthority, type KeyPair } from '../../support/kube-apiserver/access/certificates.ts';

const TOKEN = 'canary-token-5Ff2';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('kubeconfig of a hub', () => {
  let ca: string;
  let pair: KeyPair;
  let other: KeyPair;
  before(async function () {
    this.timeout(20_000);
    const authority = await createAuthority('127.0.0.1');
    ca = base64(authority.ca);
    pair = await authority.issue('someone', []);
    other = await authority.issue('other', []);
  });

  const config = (cluster: object = {}, user: object = {}, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: { server: 'https://hub.example:6443', 'certificate-authority-data': ca, ...cluster },
      },
    ],
    users: [{ name: 'u', user: { token: TOKEN, ...user } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'osac-hub' } }],
    'current-context': 'x',
    ...more,
  });
  const refusal = (source: string): string => {
    try {
      readKubeconfig(source);
    } catch (error) {
      if (error instanceof InvalidKubeconfig) return error.message;
      throw error;
    }
    return 'accepted';
  };

  it('is read from YAML and from JSON, text and bytes', () => {
    const expected = { server: 'https://hub.example:6443', insecure: false, caData: ca, token: TOKEN };
    expect(readKubeconfig(stringify(config()))).to.deep.equal(expected);
    expect(readKubeconfig(Buffer.from(JSON.stringify(config())))).to.deep.equal(expected);
  });

  it('may hold a client certificate, a server name, a proxy, and a path', () => {
    const cluster = {
      server: 'https://hub.example/k8s/clusters/c-1/',
      'tls-server-name': 'kubernetes.default',
      'proxy-url': 'socks5://proxy.example:1080',
    };
    const user = {
      token: undefined,
      'client-certificate-data': base64(pair.cert),
      'client-key-data': base64(pair.key),
    };
    expect(readKubeconfig(JSON.stringify(config(cluster, user)))).to.deep.equal({
      server: 'https://hub.example/k8s/clusters/c-1',
      insecure: false,
      caData: ca,
      tlsServerName: 'kubernetes.default',
      proxyUrl: 'socks5://proxy.example:1080',
      certData: base64(pair.cert),
      keyData: base64(pair.key),
    });
  });

  it('on loopback may be plain HTTP or unverified', () => {
    for (const server of ['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080'])
      expect(readKubeconfig(JSON.stringify(config({ server }))).server).to.equal(server);
    const local = { server: 'https://127.0.0.1:6443', 'insecure-skip-tls-verify': true };
    expect(readKubeconfig(JSON.stringify(config(local))).insecure).to.equal(true);
  });

  const CASES: readonly (readonly [string, () => object, string])[] = [
    [
      'no current-context',
      () => config({}, {}, { 'current-context': undefined }),
      'current-context names no entry',
    ],
    ['a context that is not there', () => config({}, {}, { 'current-context': 'y' }), 'is not there'],
    ['no cluster', () => config({}, {}, { clusters: [] }), 'an entry of clusters that is not there'],
    ['no user', () => config({}, {}, { users: [] }), 'an entry of users that is not there'],
    ['lists that are none', () => config({}, {}, { clusters: 'c', contexts: 7 }), 'is not there'],
    ['no server', () => config({ server: undefined }), 'has no server'],
    ['a server that is no address', () => config({ server: 'hub' }), 'not an https address'],
    ['another scheme', () => config({ server: 'ftp://hub.example' }), 'not an https address'],
    [
      'credentials in the address',
      () => config({ server: 'https://a:b@hub.example' }),
      'more than an address',
    ],
    ['plain HTTP', () => config({ server: 'http://hub.example' }), 'server is not https'],
    [
      'HTTP to what only looks like loopback',
      () => config({ server: 'http://127.evil.example' }),
      'not https',
    ],
    ['unverified TLS', () => config({ 'insecure-skip-tls-verify': true }), 'insecure-skip-tls-verify'],
    [
      'a CA file',
      () => config({ 'certificate-authority': '/etc/ca.crt' }),
      'certificate-authority points to a file',
    ],
    [
      'a certificate file',
      () => config({}, { 'client-certificate': 'c.crt' }),
      'client-certificate points to a file',
    ],
    ['a key file', () => config({}, { 'client-key': 'c.key' }), 'client-key points to a file'],
    ['a token file', () => config({}, { tokenFile: '/var/run/token' }), 'tokenFile points to a file'],
    ['an exec plugin', () => config({}, { exec: { command: 'aws' } }), 'exec plugin'],
    ['an auth provider', () => config({}, { 'auth-provider': { name: 'gcp' } }), 'auth-provider'],
    ['user name and password', () => config({}, { username: 'a', password: 'b' }), 'user name and password'],
    ['impersonation', () => config({}, { as: 'root' }), 'impersonates'],
    ['no credentials', () => config({}, { token: '' }), 'neither token nor client certificate'],
    ['a token with a line in it', () => config({}, { token: 'a\nb: c' }), 'token has characters'],
    ['a CA that is not base64', () => config({ 'certificate-authority-data': '***' }), 'is not base64'],
    ['a CA that is no PEM', () => config({ 'certificate-authority-data': base64('x') }), 'is not PEM'],
    [
      'a CA that is no certificate',
      () => config({ 'certificate-authority-data': base64('-----BEGIN CERTIFICATE-----\nx\n') }),
      'is not a certificate',
    ],
    [
      'a certificate without its key',
      () => config({}, { 'client-certificate-data': base64(pair.cert) }),
      'belong together',
    ],
    [
      'the key of another certificate',
      () =>
        config({}, { 'client-certificate-data': base64(pair.cert), 'client-key-data': base64(other.key) }),
      'does not belong',
    ],
    ['another kind of proxy', () => config({ 'proxy-url': 'ftp://p' }), 'proxy-url'],
  ];
  for (const [name, make, words] of CASES)
    it(`is refused with ${name}`, () => {
      const message = refusal(stringify(make()));
      expect(message).to.include(words).and.to.not.include(TOKEN);
    });

  it('is refused when it is not YAML, and the message shows none of it', () => {
    const broken = `users:\n  - name: u\n    user: {token: ${TOKEN}\n  : : [`;
    expect(refusal(broken))
      .to.match(/not YAML or JSON \(line \d+\)/)
      .and.to.not.include(TOKEN);
    for (const source of ['', '   ', '7', '[]', 'null', '\u0000'])
      expect(refusal(source)).to.match(/it is empty|not YAML or JSON/);
    expect(
      refusal('a: &a [x,x]\nb: [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]'),
    ).to.match(/aliases|current-context/);
    expect(refusal(`a: ${'x'.repeat(1_100_000)}`)).to.include('more than');
  });

  it('cannot smuggle fields in through a prototype', () => {
    const source = '{"__proto__":{"current-context":"x"},"clusters":[],"users":[],"contexts":[]}';
    expect(refusal(source)).to.include('current-context names no entry');
  });
});
