import { kubeBinary } from './binary.ts';
import { startKubeServers } from './servers.ts';

/**
 * `node ops/real/kube-apiserver/main.ts`: a real API server on loopback until SIGINT or SIGTERM. Prints one JSON line
 * `{url, kubeconfig}` when it is ready; the kubeconfig is a file in a folder that goes when it ends.
 */
const binary = kubeBinary((line) => process.stderr.write(`${line}\n`));
if ('missing' in binary) {
  process.stderr.write(`no API server here: ${binary.missing}\n`);
  process.exit(1);
}
const servers = await startKubeServers(binary.path);
// Signals alone do not run what is to be done at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void servers.close().finally(() => process.exit(0));
  });
}
process.stdout.write(`${JSON.stringify({ url: servers.url, kubeconfig: `${servers.folder}/kubeconfig` })}\n`);
setInterval(() => undefined, 60_000);
