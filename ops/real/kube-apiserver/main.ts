import { parseArgs } from 'node:util';
import { kubeBinary } from './binary.ts';
import { startKubeServers } from './servers.ts';

/**
 * `node ops/real/kube-apiserver/main.ts`: a real API server on loopback until SIGINT or SIGTERM. Prints one JSON line
 * `{url, kubeconfig}` when it is ready; the kubeconfig is a file in a folder that goes when it ends.
 *
 * `--play-operator`: a hub to try things on. CRDs and rights are installed, operator, Ansible, HyperShift and hosts are
 * played beside it (`--play-hypershift`: no operator, for `controller: ledger`), and `kubeconfig` has the rights that
 * the service gets on a hub (`admin` has all). `--namespace`, `--pace` (1: as fast as the real ones were recorded,
 * without the wait for machines) and `--hosts class=n` say more.
 */
const USAGE = `node ops/real/kube-apiserver/main.ts [--play-operator | --play-hypershift] [--namespace osac-hub] [--pace 0.3]
  [--hosts fc430=8]
a real API server on loopback until Ctrl-C; --play-operator: with CRDs, rights and everything that works on a hub;
--play-hypershift: the same without the operator
`;
const { values } = readArguments();
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const binary = kubeBinary((line) => process.stderr.write(`${line}\n`));
if ('missing' in binary) {
  process.stderr.write(`no API server here: ${binary.missing}\n`);
  process.exit(1);
}
const servers = await startKubeServers(binary.path);
const close = [servers.close];
// Signals alone do not run what is to be done at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void (async () => {
      for (const each of close.toReversed()) await each();
    })().finally(() => process.exit(0));
  });
}
const admin = `${servers.folder}/kubeconfig`;
if (values['play-operator'] || values['play-hypershift']) {
  const { playOn } = await import('./play.ts');
  const hosts = Object.fromEntries(values.hosts.map((text) => hostCount(text)));
  const { namespace, pace, 'play-operator': operator } = values;
  const play = await playOn(servers, { namespace, pace: Number(pace), hosts, operator });
  close.push(play.stop);
  const { url } = servers;
  process.stdout.write(`${JSON.stringify({ url, kubeconfig: play.kubeconfig, admin })}\n`);
} else {
  process.stdout.write(`${JSON.stringify({ url: servers.url, kubeconfig: admin })}\n`);
}
setInterval(() => undefined, 60_000);

/** `fc430=8`: eight hosts of that class. */
function hostCount(text: string): [string, number] {
  const [resourceClass = '', count = '1'] = text.split('=');
  return [resourceClass, Number(count)];
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        'play-operator': { type: 'boolean', default: false },
        'play-hypershift': { type: 'boolean', default: false },
        namespace: { type: 'string', default: 'osac-hub' },
        pace: { type: 'string', default: '0.3' },
        hosts: { type: 'string', multiple: true, default: ['fc430=8'] },
      },
    });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}
