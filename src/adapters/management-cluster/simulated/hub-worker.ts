import { parentPort } from 'node:worker_threads';
import { createEngineRoom, type Ask, type FromWorker } from './channel.ts';

/** The thread in which the simulated hubs of a process live: SQLite never holds the thread that answers HTTP. */
const port = parentPort;
if (port === null) throw new Error('hub-worker runs as a worker thread only');

type Question = { readonly number: number; readonly hub: number; readonly question: Ask };

const room = createEngineRoom(() => performance.now());
let waiting: Question[] = [];

/** Everything that came while the last batch was written is the next batch. */
const answerWaiting = (): void => {
  const batch = waiting;
  waiting = [];
  const answers = room.answerAll(batch);
  for (const [index, answer] of answers.entries()) {
    const number = batch[index]?.number;
    if (number === undefined) continue;
    const told: FromWorker = { number, answer };
    port.postMessage(told);
  }
};

port.on('message', (question: Question) => {
  if (waiting.length === 0) setImmediate(answerWaiting);
  waiting.push(question);
});
