import { parseArgs } from 'node:util';
import { serveAsProcess } from '../kube-apiserver/control.ts';
import { startKubeApiServer } from '../kube-apiserver/start.ts';
import { playHub } from './hub.ts';

/**
 * A whole hub in its own process: the stand-in API server and everything that plays beside it. Prints one line of
 * JSON {url, ca, token, kubeconfig, control}; `--pace 0.1` makes the players ten times as fast as recorded.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    namespace: { type: 'string', default: 'osac-hub' },
    pace: { type: 'string', default: '1' },
    every: { type: 'string', default: '100' },
    hosts: { type: 'string', multiple: true, default: ['fc430=8'] },
    operator: { type: 'string', default: 'on' },
  },
});
const { namespace } = values;
const server = await startKubeApiServer({ port: Number(values.port), namespaces: [namespace], audit: false });
const hub = playHub({
  call: server.call,
  namespace,
  pace: Number(values.pace),
  operator: values.operator === 'on',
});
await hub.prepare(Object.fromEntries(values.hosts.map(hostCount)));
hub.start(Number(values.every));
await serveAsProcess(server, hub.stop);

/** `fc430=8`: eight hosts of that class. */
function hostCount(text: string): [string, number] {
  const [resourceClass = '', count = '1'] = text.split('=');
  return [resourceClass, Number(count)];
}
