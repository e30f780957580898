import { spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../free-ports.ts';

/** A real API server on loopback, with everything that a test needs to use and to harm it. */
export type KubeServers = {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** PEM of the certificate authority that its certificate is signed with. */
  readonly ca: string;
  /** Member of `system:masters`. */
  readonly adminToken: string;
  /** Folder of data and logs; removed by `close`. */
  readonly folder: string;
  /** Kubeconfig of a token, as YAML (it is JSON, which YAML includes). */
  kubeconfig(token?: string): string;
  /** SIGKILL of the API server alone; `restart` brings it back on the same port. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Ends every process and removes the folder. */
  close(): Promise<void>;
};

const READY_MS = 90_000;

/**
 * Starts etcd, kube-apiserver and the controllers for namespaces, service accounts, tokens and garbage.
 *
 * @param binary path of the program (`binary.ts`).
 * @throws Error when a server ends before it is ready, with the end of its log.
 */
export const startKubeServers = async (binary: string): Promise<KubeServers> => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-kube-'));
  const pki = join(folder, 'pki');
  mkdirSync(pki);
  const adminToken = randomBytes(24).toString('hex');
  writeFileSync(join(folder, 'tokens.csv'), `${adminToken},admin,admin,"system:masters"\n`, { mode: 0o600 });
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(join(folder, 'sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(join(folder, 'sa.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });

  const [client = 0, peer = 0, secure = 0] = await freePorts(3);
  const url = `https://127.0.0.1:${secure}`;
  const running = new Map<string, ChildProcess>();
  const endAll = (): void => {
    for (const child of running.values()) child.kill('SIGKILL');
  };
  // Servers would outlive a runner that crashes, or that is told to end and has no handler of its own for it.
  process.once('exit', endAll);
  const told = (): void => {
    if (process.listenerCount('SIGTERM') === 1) process.exit(143);
  };
  process.on('SIGTERM', told);

  const start = (role: string, argv: readonly string[]): void => {
    const log = createWriteStream(join(folder, `${role}.log`), { flags: 'a' });
    const child = spawn(binary, [role, ...argv], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    child.once('exit', () => running.delete(role));
    running.set(role, child);
  };

  const apiserver = (): void => start('kube-apiserver', apiserverFlags(folder, client, secure));
  const ready = (): Promise<void> =>
    until(`${url}/readyz`, async () => {
      if (!running.has('kube-apiserver') || !running.has('etcd')) throw new Error(tailOf(folder));
      return (await get(`${url}/readyz`, adminToken)) === 200;
    });

  const kill = async (role: string): Promise<void> => {
    const child = running.get(role);
    if (child === undefined) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    // SIGTERM would take it more than 20 s: it waits for its watches.
    child.kill('SIGKILL');
    await ended;
  };

  const kubeconfig = (token = adminToken): string =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'hub', cluster: { server: url, 'certificate-authority-data': base64(ca()) } }],
      users: [{ name: 'user', user: { token } }],
      contexts: [{ name: 'hub', context: { cluster: 'hub', user: 'user' } }],
      'current-context': 'hub',
    });
  const ca = (): string => readFileSync(join(pki, 'apiserver.crt'), 'utf8');

  const close = async (): Promise<void> => {
    process.removeListener('exit', endAll);
    process.removeListener('SIGTERM', told);
    for (const role of running.keys()) await kill(role);
    rmSync(folder, { recursive: true, force: true });
  };

  try {
    start('etcd', etcdFlags(folder, client, peer));
    apiserver();
    await ready();
    writeFileSync(join(folder, 'kubeconfig'), kubeconfig(), { mode: 0o600 });
    start('kube-controller-manager', controllerFlags(folder));
    return {
      url,
      ca: ca(),
      adminToken,
      folder,
      kubeconfig,
      kill: () => kill('kube-apiserver'),
      restart: async () => {
        apiserver();
        await ready();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
};

const etcdFlags = (folder: string, client: number, peer: number): readonly string[] => [
  '--name=t',
  `--data-dir=${join(folder, 'etcd')}`,
  `--listen-client-urls=http://127.0.0.1:${client}`,
  `--advertise-client-urls=http://127.0.0.1:${client}`,
  `--listen-peer-urls=http://127.0.0.1:${peer}`,
  `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
  `--initial-cluster=t=http://127.0.0.1:${peer}`,
  // The data ends with the test.
  '--unsafe-no-fsync',
  '--log-level=warn',
];

const apiserverFlags = (folder: string, client: number, secure: number): readonly string[] => [
  `--etcd-servers=http://127.0.0.1:${client}`,
  '--bind-address=127.0.0.1',
  '--advertise-address=127.0.0.1',
  `--secure-port=${secure}`,
  `--cert-dir=${join(folder, 'pki')}`,
  // Loopback is no legal address of an endpoint.
  '--endpoint-reconciler-type=none',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--authorization-mode=RBAC',
  `--token-auth-file=${join(folder, 'tokens.csv')}`,
  '--service-account-issuer=https://kubernetes.default.svc',
  `--service-account-key-file=${join(folder, 'sa.pub')}`,
  `--service-account-signing-key-file=${join(folder, 'sa.key')}`,
  '--profiling=false',
];

const controllerFlags = (folder: string): readonly string[] => [
  `--kubeconfig=${join(folder, 'kubeconfig')}`,
  '--controllers=namespace-controller,serviceaccount-controller,serviceaccount-token-controller,garbage-collector-controller',
  `--service-account-private-key-file=${join(folder, 'sa.key')}`,
  `--root-ca-file=${join(folder, 'pki', 'apiserver.crt')}`,
  '--leader-elect=false',
  '--bind-address=127.0.0.1',
  '--secure-port=0',
  '--profiling=false',
];

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Status of a GET, 0 when nobody answers. The certificate is not checked: only readiness is asked for. */
const get = (url: string, token: string): Promise<number> =>
  new Promise((resolve) => {
    const options = {
      rejectUnauthorized: false,
      headers: { authorization: `Bearer ${token}` },
      timeout: 2_000,
    };
    const call = request(url, options, (answer) => {
      answer.resume();
      answer.once('end', () => resolve(answer.statusCode ?? 0));
    });
    call.once('timeout', () => call.destroy());
    call.once('error', () => resolve(0));
    call.end();
  });

const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const end = performance.now() + READY_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`${what} did not hold within ${READY_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

const tailOf = (folder: string): string => {
  const tails = ['etcd', 'kube-apiserver'].map((role) => {
    const log = readFileSync(join(folder, `${role}.log`), 'utf8');
    return `${role}: ${log.trim().split('\n').slice(-3).join('\n')}`;
  });
  return `a server ended before it was ready\n${tails.join('\n')}`;
};
