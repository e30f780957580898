import { configVersion } from './config-version.ts';
import { ENDED, latestJob } from './observed-facts.ts';
import type { ClusterOrderSpecShape, ObservedJob } from './observed.ts';

/**
 * What a retry writes into `templateParameters`, so that the hub's operator launches a job again; undefined: nothing has
 * to be written for that.
 *
 * The operator launches when the hash of the spec is not that of its latest job. Otherwise it does so minutes after a job
 * failed, and never after one succeeded, though the cluster is gone since. So a retry has to change what is hashed without
 * changing what is ordered. Of the hashed fields this is the only one whose text has no meaning beyond what Ansible parses
 * from it: a JSON object. A space is put behind its opening brace, one more with each retry, so that no hash comes twice;
 * before the brace it might keep Ansible from taking the text for an object. Nothing on the hub is deleted for it: to
 * make the order anew would tear down what there is of the cluster.
 */
export const relaunchParameters = (
  { spec, jobs }: { readonly spec: ClusterOrderSpecShape; readonly jobs: readonly ObservedJob[] },
  wanted: string,
): string | undefined => {
  const job = latestJob(jobs, 'provision');
  // Without any job the operator tries by itself, and what runs is waited for.
  if (job === undefined || !ENDED.includes(job.state)) return undefined;
  const version = configVersion(spec);
  // It was not launched yet for what is stored: an attempt of this retry whose answer was lost, or another change.
  if ((job.configVersion ?? version) !== version) return undefined;
  const [, spaces = ''] = /^\{( *)/.exec(spec.templateParameters) ?? [];
  return `{${spaces} ${wanted.slice(1)}`;
};
