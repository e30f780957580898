import { hubStory } from '../support/e2e-hub-story.ts';

hubStory('a hub in mode eda without an operator', {
  mode: 'eda',
  controller: 'ledger',
  built: [
    /The ledger, which controls the orders of hub "munich", made .*namespace osac-hub-order-/,
    /was asked to build or change the cluster by a webhook/,
  ],
  removed: [/was asked to tear down the cluster by a webhook/],
});
