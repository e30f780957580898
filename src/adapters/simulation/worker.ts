import { parentPort } from 'node:worker_threads';
import type { Asked, EngineRoom, FromWorker } from './channel.ts';

/** Shortest time between two batches: waking up for each question costs more than answering it. */
const GATHER_MS = 10;

/** The thread in which simulated systems of one kind live: SQLite never holds the thread that answers HTTP. */
export const serveRoom = <Question>(room: EngineRoom<Question>): void => {
  const port = parentPort;
  if (port === null) throw new Error('simulated systems are served in a worker thread only');
  type Numbered = Asked<Question> & { readonly number: number };
  let waiting: Numbered[] = [];
  let answeredAt = 0;

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

  port.on('message', (questions: readonly Numbered[]) => {
    const rested = performance.now() - answeredAt;
    if (waiting.length === 0 && rested >= GATHER_MS) setImmediate(answerWaiting);
    else if (waiting.length === 0) setTimeout(answerWaiting, GATHER_MS - rested);
    waiting.push(...questions);
  });
};
