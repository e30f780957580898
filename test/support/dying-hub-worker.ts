import { parentPort } from 'node:worker_threads';
import '../../src/adapters/management-cluster/kubernetes/hub-worker.ts';

/** The thread of the Kubernetes hubs, which ends when a call with the effect id `die` reaches it. */
parentPort?.on('message', ({ question }: { question: { effectId?: string } }) => {
  if (question.effectId === 'die') process.exit(1);
});
