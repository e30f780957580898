import { parseArgs } from 'node:util';
import { startControl } from './control.ts';
import { startPeer } from './peer.ts';

/** Runs the peer as its own process: prints one line of JSON {connectionString, discoveryString, control}. */
const { values } = parseArgs({
  options: { port: { type: 'string', default: '0' }, 'control-port': { type: 'string', default: '0' } },
});
const peer = await startPeer({ port: Number(values.port) });
const stop = async (): Promise<void> => {
  await control.close();
  await peer.stop();
};
const control = await startControl(peer, Number(values['control-port']), stop);
const { connectionString, discoveryString } = peer;
process.stdout.write(`${JSON.stringify({ connectionString, discoveryString, control: control.url })}\n`);
process.once('SIGTERM', () => void stop());
process.once('SIGINT', () => void stop());
