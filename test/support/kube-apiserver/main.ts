import { parseArgs } from 'node:util';
import { serveAsProcess } from './control.ts';
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
await serveAsProcess(server);
