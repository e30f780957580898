import { z } from 'zod';
import { OSAC_GROUP } from '../hubs/hub-object.ts';
import {
  filled,
  shownConditions,
  shownLastWords,
  shownList,
  shownMeta,
  shownPart,
  shownText,
  wholeNumber,
  wholeText,
} from '../hubs/hub-codecs.ts';
import { defined } from '../json-tools.ts';
import { jobState } from './event-types.ts';
import type { ClusterOrderSpecShape } from './observed.ts';

/** What we write into a ClusterOrder, and what we read of it (OSAC's operator). */
export const CLUSTER_ORDER_UUID_LABEL = `${OSAC_GROUP}/clusterorder-uuid`;

const TEMPLATE_ID = /^[a-zA-Z_][a-zA-Z0-9._]*$/;
const RELEASE_IMAGE = /^.+\/.+:.+$/;
const LABEL_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const CIDR = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/;
const MAX_NODES = 2 ** 31 - 1;

const limitedText = (bytes: number) =>
  z.string().refine((text) => new TextEncoder().encode(text).length <= bytes, `has more than ${bytes} bytes`);

const isJsonObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
};

const isCidr = (text: string): boolean => {
  const [, a, b, c, d, length] = CIDR.exec(text) ?? [];
  return length !== undefined && [a, b, c, d].every((part) => Number(part) <= 255) && Number(length) <= 32;
};
const range = z.string().refine(isCidr, 'is not an IPv4 range');

/** Ansible takes only one entry of a class. The operator drops an empty list, and the generation moves without us. */
const writtenNodes = z
  .array(
    z.object({
      resourceClass: z.string().regex(LABEL_NAME, 'is not a label value'),
      numberOfNodes: z.int('is not a number of nodes').min(0, 'is below 0').max(MAX_NODES, 'is too high'),
    }),
  )
  .superRefine((requests, { addIssue }) => {
    for (const [index, { resourceClass }] of requests.entries())
      if (requests.findIndex((other) => other.resourceClass === resourceClass) !== index)
        addIssue({ code: 'custom', path: [index, 'resourceClass'], message: 'is there twice' });
  });

/** Fields that we write and no others. */
export const written = z.object({
  templateID: z.string().regex(TEMPLATE_ID, 'is not a template id'),
  templateParameters: z.string().refine(isJsonObject, 'is not a JSON object as text'),
  nodeRequests: writtenNodes,
  pullSecret: z.exactOptional(limitedText(262_144)),
  sshPublicKey: z.exactOptional(limitedText(16_384)),
  releaseImage: z.exactOptional(
    limitedText(512).refine(
      (image) => image === '' || RELEASE_IMAGE.test(image),
      'is not an image with a tag or digest',
    ),
  ),
  network: z.exactOptional(
    z.object({ podCIDR: z.exactOptional(range), serviceCIDR: z.exactOptional(range) }),
  ),
});
/** Counts as they are stored, negative ones too: the CRD has no minimum (OSAC's operator). */
const shownNodes = shownList(
  z.object({
    resourceClass: shownText,
    numberOfNodes: wholeNumber.transform((number) => number ?? 0),
  }),
);

const PHASES = ['Progressing', 'Failed', 'Ready', 'Deleting'] as const;
const MAX_JOBS = 50;

const shownJob = z
  .object({
    jobID: shownText,
    type: z.enum(['provision', 'deprovision']),
    state: jobState.catch('Unknown'),
    timestamp: shownText,
    message: shownLastWords,
    configVersion: shownText,
  })
  .transform(({ jobID, type, state, timestamp, ...texts }) => ({
    jobId: jobID,
    type,
    state,
    timestamp,
    ...filled(texts),
  }));

export type Phase = (typeof PHASES)[number];
export type Job = z.infer<typeof shownJob>;

const shownOrder = shownPart({
  spec: shownPart({
    // Compared and hashed as a whole, and never recorded: these are not cut.
    templateID: wholeText,
    templateParameters: wholeText,
    nodeRequests: shownNodes,
    pullSecret: wholeText,
    sshPublicKey: wholeText,
    releaseImage: wholeText,
    network: shownPart({ podCIDR: shownText, serviceCIDR: shownText }).transform(filled),
  }).transform(
    ({ templateID, templateParameters, nodeRequests, network, ...texts }): ClusterOrderSpecShape => ({
      templateID,
      templateParameters,
      nodeRequests,
      ...filled(texts),
      ...(Object.keys(network).length === 0 ? {} : { network }),
    }),
  ),
  status: shownPart({
    phase: z.enum(PHASES).optional().catch(undefined),
    conditions: shownConditions,
    desiredConfigVersion: shownText,
    provisioningJobs: shownList<Job>(shownJob, MAX_JOBS),
    clusterReference: z
      .object({ namespace: shownText, hostedClusterName: shownText })
      .optional()
      .catch(undefined),
    // Named after the resource class of a node request; only that there are hosts, and how many, is of use.
    nodeSets: shownList(z.object({ name: z.string().min(1), agents: z.array(z.unknown()).catch([]) })),
    nodeRequests: shownNodes,
    apiEndpoint: shownText,
    ingressEndpoint: shownText,
  }),
});

/** One ClusterOrder as the hub shows it; without phase it is not accepted yet (OSAC's operator). */
export type ObservedClusterOrder = ReturnType<typeof observedClusterOrder>;

export const observedClusterOrder = (object: unknown) => {
  const { spec, status } = shownOrder.parse(object);
  const { phase, conditions, provisioningJobs: jobs, clusterReference, nodeSets, ...others } = status;
  const { nodeRequests, ...texts } = others;
  const hosts = nodeSets.map(({ name, agents }) => ({ resourceClass: name, hosts: agents.length }));
  return {
    ...shownMeta(object, CLUSTER_ORDER_UUID_LABEL),
    spec,
    conditions,
    jobs,
    ...defined({
      phase,
      clusterReference,
      nodeSets: hosts.length === 0 ? undefined : hosts,
      observedNodes: nodeRequests.length === 0 ? undefined : nodeRequests,
    }),
    ...filled(texts),
  };
};
