import { parentPort } from 'node:worker_threads';
import { createEngineRoom, type Ask, type FromWorker } from './channel.ts';

/** The thread in which the simulated hubs of a process live: SQLite never holds the thread that answers HTTP. */
const port = parentPort;
if (port === null) throw new Error('hub-worker runs as a worker thread only');

type Question = { readonly number: number; readonly hub: number; readonly question: Ask };

const room = createEngineRoom(() => performance.now());
let waiting: Question[] = [];
let answeredAt = 0;

/** Shortest time between two batches: waking up for each question costs more than answering it. */
const GATHER_MS = 10;

/** Everything that came since the last batch is the next one. */
const answerWaiting = (): void => {
  answeredAt = performance.now();
  const batch = waiting;
  waiting = [];
  const answers = room.answerAll(batch);
  const told: FromWorker[] = batch.flatMap(({ number }, index) => {
    const answer = answers[index];
    return answer === undefined ? [] : [{ number, answer }];
  });
  port.postMessage(JSON.stringify(told));
};

port.on('message', (questions: readonly Question[]) => {
  const rested = performance.now() - answeredAt;
  if (waiting.length === 0 && rested >= GATHER_MS) setImmediate(answerWaiting);
  else if (waiting.length === 0) setTimeout(answerWaiting, GATHER_MS - rested);
  waiting.push(...questions);
});
