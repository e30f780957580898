import { parentPort } from 'node:worker_threads';
import { systemClock, systemTimers } from '../../system/system-ports.ts';
import type { Ask, FromWorker } from './protocol.ts';
import { createRoom } from './room.ts';

/**
 * The thread of all Kubernetes hubs of a process: their client library takes half a second to load, and parsing lists
 * of thousands of orders would hold the thread that answers HTTP. Credentials come by message and stay in memory.
 */
const port = parentPort;
if (port === null) throw new Error('hub-worker runs as a worker thread only');

const send = (message: FromWorker): void => port.postMessage(message);
const room = createRoom({
  clock: systemClock(),
  timers: systemTimers(),
  random: Math.random,
  note: (note) => send({ note }),
});

type Asked = { readonly number: number; readonly hub: number; readonly question: Ask };
port.on('message', (questions: readonly Asked[]) => {
  for (const { number, hub, question } of questions)
    room.answer(hub, question).then(
      (answer) => send({ number, answer }),
      (error: unknown) => send({ number, answer: { ok: false, fault: String(error) } }),
    );
});
