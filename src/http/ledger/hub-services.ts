import type { HubHealthMonitor } from '../../app/hubs/hub-health.ts';
import type { HubObserver } from '../../app/hubs/hub-observer.ts';
import type { HubRegistry, RegisteredHub } from '../../app/hubs/hub-registry.ts';
import type { ManagementClusters } from '../../app/hubs/management-cluster.ts';
import type { ProcessRunner } from '../../app/process-runner/types.ts';
import { hub as hubKind } from '../../domain/kinds.ts';
import { ApiError } from '../errors.ts';
import type { WriteServices } from '../osac/write-context.ts';
import type { Positions } from '../positions.ts';
import type { ActServices } from './acts.ts';
import type { LedgerCall } from './serve.ts';

export type HubServices = Pick<WriteServices, 'runner' | 'resources'> &
  ActServices & {
    readonly positions: Positions;
    /** Absent where no hubs are followed: nothing is found then. */
    readonly hubRegistry?: Pick<HubRegistry, 'hubs' | 'get' | 'onChange' | 'spacesOn'>;
    readonly hubHealth?: Pick<HubHealthMonitor, 'check' | 'checkCandidate'>;
    readonly clusters?: Pick<ManagementClusters, 'candidate' | 'hostOf'>;
    readonly lanes?: Pick<ProcessRunner, 'status'>;
    readonly hubWatches?: HubObserver['status'];
  };

/** The registry follows the log by itself: a hub that this instance shows already may reach it a moment later. */
const REGISTRY_MS = 2_000;

/** The hub that a path names. Throws ApiError 404. */
export const hubOf = async (call: LedgerCall, services: HubServices): Promise<RegisteredHub> => {
  const id = call.path['id'] ?? '';
  const found = services.hubRegistry?.get(id) ?? (await arriving(id, call.signal, services));
  if (found === undefined)
    throw new ApiError('NOT_FOUND', `hub '${id}' not found; ledgerctl hubs list shows all`);
  return found;
};

const arriving = async (
  id: string,
  signal: AbortSignal,
  { hubRegistry, resources }: HubServices,
): Promise<RegisteredHub | undefined> => {
  if (hubRegistry === undefined || resources.get(hubKind.kind, id, { all: true }) === undefined)
    return undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(REGISTRY_MS)]);
  limit.addEventListener('abort', () => resolve(), { once: true });
  const stop = hubRegistry.onChange((changed) => {
    if (changed === id) resolve();
  });
  await promise;
  stop();
  return hubRegistry.get(id);
};
