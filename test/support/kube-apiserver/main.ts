import { parseArgs } from 'node:util';
import { startControl } from './control.ts';
import { startKubeApiServer } from './start.ts';

/**
 * Runs the stand-in as its own process: prints one line of JSON {url, ca, token, kubeconfig, control}.
 * `control` takes commands by HTTP POST (control.ts).
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    namespace: { type: 'string', multiple: true, default: ['osac-hub'] },
    audit: { type: 'boolean', default: false },
  },
});
const server = await startKubeApiServer({
  port: Number(values.port),
  namespaces: values.namespace,
  audit: values.audit,
});
const stop = async (): Promise<void> => {
  await control.close();
  await server.close();
};
const control = await startControl(server, stop);
const { url, ca, adminToken: token } = server;
process.stdout.write(
  `${JSON.stringify({ url, ca, token, kubeconfig: server.kubeconfig(), control: control.url })}\n`,
);
process.once('SIGTERM', () => void stop());
process.once('SIGINT', () => void stop());
