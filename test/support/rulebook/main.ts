import { serveStandIn, standInOptions } from '../stand-in/process.ts';
import { startRulebook, type RulebookBehaviour, type RulebookOptions } from './rulebook-server.ts';

/**
 * The rulebook stand-in as a process of its own. Each playbook run is posted as its event to `playbookUrl`, when there is
 * one, so that whoever plays the hub can do what Ansible would.
 */
const { playbookUrl, ...options } = standInOptions<
  Omit<RulebookOptions, 'playbook'> & { readonly playbookUrl?: string }
>();
const rulebook = await startRulebook({
  ...options,
  playbook: async (event) => {
    if (playbookUrl !== undefined) {
      await fetch(playbookUrl, { method: 'POST', body: JSON.stringify(event) });
    }
  },
});
await serveStandIn(rulebook.url, {
  next: (behaviour: RulebookBehaviour, times?: number) => rulebook.next(behaviour, times),
  always: (behaviour: RulebookBehaviour) => rulebook.always(behaviour),
  hold: () => rulebook.hold(),
  release: () => rulebook.release(),
  kill: () => rulebook.kill(),
  restart: () => rulebook.restart(),
  requests: () => rulebook.requests,
  runs: () => rulebook.runs,
  most: () => rulebook.most,
  queued: () => rulebook.queued(),
});
