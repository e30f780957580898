import { hubStory } from '../support/e2e-hub-story.ts';

hubStory('a hub in mode eda with an operator', {
  mode: 'eda',
  controller: 'operator',
  built: [/was asked to build or change the cluster by a webhook/],
  removed: [/was asked to tear down the cluster by a webhook/],
});
