import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { HUB_STORIES, hubStory } from '../support/hubs/story-suite.ts';
import type { HubServer } from '../support/hubs/served-hub.ts';
import { notRunHere } from '../support/not-run-here.ts';
import { realHubServer } from '../support/hubs/real-hub-server.ts';

/**
 * The whole service and a tenant's order from its first day to its last on the real kube-apiserver, as
 * test/e2e/hubs-*.test.ts and test/e2e/more-hubs/ tell it on the stand-in: the automation platform is a server in a
 * process of its own, whose jobs write to the real API server. Mode eda is driven by the real ansible-rulebook, in the
 * suites beside this one.
 */
const binary = kubeBinary((line) => console.log(`  ${line}`));

if ('missing' in binary) {
  describe('the modes of a hub on a real kube-apiserver', () => {
    it('run', function () {
      notRunHere(this, 'kube-apiserver', binary.missing);
    });
  });
} else {
  const start = (): Promise<HubServer> => realHubServer(binary.path);
  hubStory('mode operator on a real kube-apiserver', HUB_STORIES.operator, start);
  hubStory('mode aap with an operator on a real kube-apiserver', HUB_STORIES.aapWithOperator, start);
  hubStory('mode aap without an operator on a real kube-apiserver', HUB_STORIES.aapAlone, start);
}
