import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, type ApiClient } from '../api-client.ts';
import { ClaimFailed } from './narrator.ts';
import { readHubFiles } from './on-hubs.ts';
import type { Cluster } from './orders.ts';
import type { Stage } from './stage.ts';

export const PUBLIC = '/api/fulfillment/v1';
export const PRIVATE = '/api/private/v1';
const POOLS = `${PRIVATE}/external_ip_pools`;
const IPS = `${PUBLIC}/external_ips`;
const ATTACHMENTS = `${PUBLIC}/external_ip_attachments`;

export type Shown = {
  readonly id: string;
  readonly status?: {
    readonly state?: string;
    readonly hub?: string;
    readonly external_ip_address?: string;
    readonly attached?: boolean;
  };
};

/** An address for the API of a cluster, and back: each is one object on the hub. */
export const attachAddress = async (stage: Stage, cluster: Cluster): Promise<void> => {
  const { narrator, request } = stage;
  // On a real hub an operator would have to hand out addresses that are somebody's.
  if (request.hub !== undefined) return;
  narrator.chapter('Address: an external IP at the API of the cluster');
  const { status } = await stage.admin().get<Shown>(`${PRIVATE}/clusters/${cluster.id}`);
  const pool = await makePool(stage, 'demo-pool', '192.0.2.0/28', status?.hub ?? '');
  const poolId = pool.slice(POOLS.length + 1);
  narrator.say('the provider offers a pool of addresses on the hub of the cluster');
  const tenant = stage.tenant();
  const ip = await tenant.send<Shown>('POST', IPS, {
    metadata: { name: 'demo-api' },
    spec: { pool: { id: poolId } },
  });
  await shows(stage, tenant, `${IPS}/${ip.id}`, 'ALLOCATED');
  const attachment = await tenant.send<Shown>('POST', ATTACHMENTS, {
    metadata: { name: 'demo-api' },
    spec: {
      external_ip: { id: ip.id },
      cluster: { id: cluster.id },
      target_endpoint: 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_API',
    },
  });
  const attached = await shows(stage, tenant, `${ATTACHMENTS}/${attachment.id}`, 'READY');
  const address = attached.status?.external_ip_address ?? '';
  narrator.check('the API of the cluster has an address of its own', address.startsWith('192.0.2.'), address);
  narrator.check(
    'nobody deletes an address that is in use',
    (await refusal(tenant, 'DELETE', `${IPS}/${ip.id}`)) === 400,
  );
  for (const path of [`${ATTACHMENTS}/${attachment.id}`, `${IPS}/${ip.id}`]) {
    await tenant.send('DELETE', path);
    await isGone(stage, tenant, path);
  }
  await stage.admin().send('DELETE', pool);
  await isGone(stage, stage.admin(), pool);
  narrator.say('taken down again: first the attachment, then the address and its pool');
  for (const [kind, { id }] of [
    ['ExternalIPPool', { id: poolId }],
    ['ExternalIP', ip],
    ['ExternalIPAttachment', attachment],
  ] as const) {
    const { objectsOf } = readHubFiles(stage.dataDir, kind);
    narrator.check(
      `the hub's journal holds exactly one ${kind}`,
      objectsOf.get(id) === 1 && objectsOf.size === 1,
    );
  }
};

/** Path of a pool of addresses that is ready on a hub. */
export const makePool = async (stage: Stage, name: string, cidr: string, hub: string): Promise<string> => {
  const admin = stage.admin();
  const { id } = await admin.send<Shown>('POST', POOLS, {
    metadata: {
      name,
      annotations: { 'fulfillment-ledger/hub': hub, 'fulfillment-ledger/quarantine': 'PT0S' },
    },
    spec: { cidrs: [cidr], ip_family: 'IP_FAMILY_IPV4' },
  });
  await shows(stage, admin, `${POOLS}/${id}`, 'READY');
  return `${POOLS}/${id}`;
};

export const shows = async (stage: Stage, client: ApiClient, path: string, state: string): Promise<Shown> => {
  const deadline = performance.now() + stage.patienceMs;
  for (;;) {
    const shown = await client.get<Shown>(path);
    if (shown.status?.state?.endsWith(`_STATE_${state}`) === true) return shown;
    if (performance.now() > deadline)
      throw new ClaimFailed(`${path} shows ${shown.status?.state ?? 'no state'} instead of ${state}`);
    await pause(100);
  }
};

export const isGone = async (stage: Stage, client: ApiClient, path: string): Promise<void> => {
  const deadline = performance.now() + stage.patienceMs;
  while ((await refusal(client, 'GET', path)) !== 404) {
    if (performance.now() > deadline) throw new ClaimFailed(`${path} is still there`);
    await pause(100);
  }
};

/** Status of the refusal; undefined: it was answered. */
export const refusal = async (
  client: ApiClient,
  verb: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<number | undefined> => {
  try {
    await (verb === 'GET' ? client.get(path) : client.send(verb, path, body));
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
};
