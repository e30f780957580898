import { parentPort } from 'node:worker_threads';
import '../../../src/adapters/management-cluster/kubernetes/hub-worker.ts';

/** The thread of the Kubernetes hubs, which ends when a call with the effect id `die` reaches it. */
parentPort?.on('message', (questions: readonly { question: { effectId?: string } }[]) => {
  if (questions.some(({ question }) => question.effectId === 'die')) process.exit(1);
});
