import { hubStory } from '../support/e2e-hub-story.ts';

hubStory('a hub in mode operator', {
  mode: 'operator',
  controller: 'operator',
  built: [],
  removed: [],
});
