import { hubStory } from '../support/e2e-hub-story.ts';

hubStory('a hub in mode aap without an operator', {
  mode: 'aap',
  controller: 'ledger',
  built: [
    /The ledger, which controls the orders of hub "munich", made .*namespace osac-hub-order-/,
    /was asked to build or change the cluster: job \d+ of template osac-create-hosted-cluster/,
  ],
  removed: [/was asked to tear down the cluster: job \d+ of template osac-delete-hosted-cluster/],
});
