import { serveStandIn, standInOptions } from '../stand-in/process.ts';
import type { AapEnd } from './aap-jobs.ts';
import { startAap, type AapOptions, type LaunchBehaviour } from './aap-server.ts';

/**
 * The automation platform's stand-in as a process of its own. Each job that begins to run is posted to `playbookUrl`,
 * when there is one, and runs until that was answered.
 */
const { playbookUrl, ...options } = standInOptions<
  Omit<AapOptions, 'playbook'> & { readonly playbookUrl?: string }
>();
const aap = await startAap({
  ...options,
  playbook: async (job) => {
    if (playbookUrl !== undefined) await fetch(playbookUrl, { method: 'POST', body: JSON.stringify(job) });
  },
});
await serveStandIn(aap.url, {
  nextLaunch: (behaviour: LaunchBehaviour, times?: number) => aap.nextLaunch(behaviour, times),
  alwaysLaunch: (behaviour: LaunchBehaviour) => aap.alwaysLaunch(behaviour),
  advance: (id: number) => aap.advance(id),
  endNext: (end: AapEnd) => aap.endNext(end),
  vanish: (id: number) => aap.vanish(id),
  remakeTemplate: (name: string) => aap.remakeTemplate(name),
  kill: () => aap.kill(),
  restart: () => aap.restart(),
  jobs: () => aap.jobs,
  requests: () => aap.requests,
});
