import { hubStory } from '../support/e2e-hub-story.ts';

hubStory('a hub without an operator, and a namespace for each tenant', {
  mode: 'eda',
  controller: 'ledger',
  tenantNamespaces: true,
  built: [/The ledger, which controls the orders of hub "munich", made .*namespace acme-order-/],
  removed: [/was asked to tear down the cluster by a webhook/],
});
