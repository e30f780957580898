import { HubError, type CallOptions } from '../../../app/hubs/management-cluster.ts';
import { objectAt, stringAt } from '../../../domain/json-tools.ts';
import { differentCluster, IDENTITY_NAMESPACE } from '../../../domain/hubs/identity.ts';
import { NAMESPACE } from '../../../domain/hubs/hub-objects.ts';
import { isMissing, type Api } from './api.ts';

/** Which cluster a connection leads to, and whether it is the one that the hub is known to be. */
export type Identity = {
  /** Undefined: any cluster may answer. True: the one that does was another one, and is the hub from now on. */
  expect(cluster: string | undefined): boolean;
  /** Asks now. Undefined: the rights do not show it. Throws HubError when it cannot be asked. */
  read(by: CallOptions): Promise<string | undefined>;
  /** Asks now. Throws HubError `other-cluster`, and what `read` throws; without the right to look, too. */
  verify(by: CallOptions): Promise<void>;
  /** As `verify`, but asks only a connection of which it is not known yet. */
  ready(by: CallOptions): Promise<void>;
};

export const createIdentity = (api: Api, initially: string | undefined): Identity => {
  let expected = initially;
  let seen: string | undefined;

  const ask = async (by: CallOptions): Promise<string | undefined> => {
    const namespace = await api.get(NAMESPACE, { name: IDENTITY_NAMESPACE }, by);
    seen = stringAt(objectAt(namespace, 'metadata'), 'uid') || undefined;
    return seen;
  };

  const isOther = (): boolean => expected !== undefined && seen !== undefined && seen !== expected;

  const compare = (): void => {
    if (expected === undefined || seen === expected) return;
    const { code, message } = differentCluster(expected, seen ?? 'unknown');
    throw new HubError('other-cluster', message, { facts: { reason: code } });
  };

  const verify = async (by: CallOptions): Promise<void> => {
    if (expected === undefined) return;
    await ask(by);
    compare();
  };

  return {
    expect: (cluster) => {
      const differed = isOther();
      expected = cluster;
      return differed && !isOther();
    },
    read: async (by) => {
      try {
        return await ask(by);
      } catch (error) {
        if (error instanceof HubError && error.facts['status'] === 403) return undefined;
        throw error;
      }
    },
    verify,
    ready: (by) => (seen === undefined ? verify(by) : Promise.resolve().then(compare)),
  };
};

/**
 * Absence is believed only of the cluster that the hub is known to be: wherever it shows, the cluster is asked who it is,
 * after the answer and on the same address. Otherwise every order would look as if it had been deleted there.
 */
export const verifiedApi = (api: Api, { verify }: Pick<Identity, 'verify'>): Api => ({
  ...api,
  get: async (kind, at, by) => {
    const object = await api.get(kind, at, by);
    if (object === undefined) await verify(by);
    return object;
  },
  mergePatch: async (kind, at, patch, by, secrets) => {
    try {
      return await api.mergePatch(kind, at, patch, by, secrets);
    } catch (error) {
      if (isMissing(error)) await verify(by);
      throw error;
    }
  },
  remove: async (kind, at, by, uid) => {
    const existed = await api.remove(kind, at, by, uid);
    if (!existed) await verify(by);
    return existed;
  },
  list: async function* (kind, at, by) {
    yield* api.list(kind, at, by);
    await verify(by);
  },
});
