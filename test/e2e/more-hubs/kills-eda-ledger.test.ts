import { HUB_STORIES } from '../../support/hubs/story-suite.ts';
import { hubKillSuite } from '../../support/hubs/kill-suite.ts';

hubKillSuite('a hub in mode eda without an operator', HUB_STORIES.edaAlone);
