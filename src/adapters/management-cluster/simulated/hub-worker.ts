import { parentPort } from 'node:worker_threads';
import { createEngineRoom, type Ask, type FromWorker } from './channel.ts';

/** The thread in which the simulated hubs of a process live: SQLite never holds the thread that answers HTTP. */
const port = parentPort;
if (port === null) throw new Error('hub-worker runs as a worker thread only');

const room = createEngineRoom(() => performance.now());

port.on('message', ({ number, hub, question }: { number: number; hub: number; question: Ask }) => {
  const told: FromWorker = { number, answer: room.answer(hub, question) };
  port.postMessage(told);
});
