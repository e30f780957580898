import { createClusterView, follow } from '../../../fixtures/consumers/cluster-view.ts';

/** The reference consumer as a process of its own, which prints each document that changed: `{"id", "document"}`, null when gone. */
const view = createClusterView();
const brokers = (process.argv[2] ?? '').split(',');
await follow(brokers, view, (id) => {
  process.stdout.write(`${JSON.stringify({ id, document: view.clusters.get(id) ?? null })}\n`);
});
