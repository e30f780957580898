import { hash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { HubError, type CallOptions, type HubReport } from '../../../app/hubs/management-cluster.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import { HUB_OBJECTS, hubObjectOf, isOwned, ownedObjects } from '../../../domain/hub-objects.ts';
import type { HubObject, OwnedObject } from '../../../domain/hubs/hub-object.ts';
import { createApi, type Api } from './api.ts';
import { checkHub, type HubNeeds } from './check.ts';
import { openConnection } from './connection.ts';
import { createObjectFields } from './crd-fields.ts';
import { hubController } from './controller.ts';
import { createIdentity, verifiedApi, type Identity } from './identity.ts';
import { InvalidKubeconfig, readKubeconfig } from './kubeconfig.ts';
import { objectOperations } from './objects.ts';
import { isKinded, type HubOperations, type Operation } from './protocol.ts';
import { createRights } from './rights.ts';
import { surroundingsOperations } from './surroundings.ts';
import { markOperations } from './marks.ts';
import { watchObjects, type ObjectWatch, type WatchNote, type WatchSettings } from './watch.ts';

export type HubClientOptions = {
  readonly clock: Clock;
  readonly timers: Timers;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
  readonly note: WatchNote;
  readonly watch?: WatchSettings;
  /** Kinds that are known here. Default: all declared ones. */
  readonly objects?: readonly HubObject[];
};

/** One hub with the credentials of the moment, in the thread where its sockets are. */
export type HubClient = {
  /** Takes credentials over, the first or others. Throws nothing: bad ones are told by `check` and every call. */
  open(needs: HubNeeds, kubeconfig: Uint8Array): Promise<void>;
  call(op: Operation, args: readonly unknown[], by: CallOptions): Promise<unknown>;
  watch(kind: string, namespace: string): ObjectWatch;
  close(): void;
};

type Connected = {
  readonly api: Api;
  readonly identity: Identity;
  readonly operations: HubOperations;
  /** Only which cluster is expected has changed. True: watches that gave up on another one may go on. */
  readonly settle: (needs: HubNeeds) => boolean;
};

export const createHubClient = (options: HubClientOptions): HubClient => {
  const { timers, note, objects = HUB_OBJECTS } = options;
  const watches = new Set<ObjectWatch>();
  let connected: Connected | undefined;
  let refused: InvalidKubeconfig | undefined;
  /** Of kubeconfig and needs: the same again changes nothing. */
  let digest = '';
  let last: Promise<void> = Promise.resolve();
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  const replace = async (needs: HubNeeds, kubeconfig: Uint8Array): Promise<void> => {
    const { cluster: _known, ...others } = needs;
    const given = `${JSON.stringify(others)} ${hash('sha256', kubeconfig, 'hex')}`;
    // Which cluster it is becomes known meanwhile; who follows it need not begin anew for that.
    if (given === digest) {
      if (connected?.settle(needs) === true) for (const watch of watches) watch.restart();
      return;
    }
    const before = connected;
    try {
      connected = await connect(needs, kubeconfig, options);
      refused = undefined;
    } catch (error) {
      if (!(error instanceof InvalidKubeconfig)) throw error;
      connected = undefined;
      refused = error;
    }
    digest = given;
    for (const watch of watches) watch.restart();
    // Calls that are under way on the old sockets end; what they wrote is looked for as after any lost answer.
    before?.api.connection.close();
  };

  const current = (): Connected => {
    if (connected !== undefined) return connected;
    // Its work waits until somebody registers other credentials, as after a 401.
    throw new HubError('unauthorized', refused?.message ?? 'the hub has no credentials yet', {
      facts: { reason: 'InvalidKubeconfig' },
    });
  };

  const ownedObjectOf = (kind: string): OwnedObject => {
    const found = hubObjectOf(kind, objects);
    if (!isOwned(found)) throw new RangeError(`${kind} is not watched`);
    return found;
  };

  const invalid = (error: InvalidKubeconfig): HubReport => ({
    problems: [{ code: 'InvalidKubeconfig', message: error.message, subject: 'kubeconfig' }],
  });

  return {
    open: (needs, kubeconfig) => {
      // One after the other: the later credentials win.
      last = last.catch(() => undefined).then(() => replace(needs, kubeconfig));
      return last;
    },
    call: async (op, args, by) => {
      if (op === 'check' && refused !== undefined) return invalid(refused);
      const { identity, operations } = current();
      // Of a connection that leads to another cluster than the hub nothing is used but its check.
      if (op !== 'check' && op !== 'identify') await identity.ready(by);
      const [first, ...others] = args;
      const given = isKinded(op) ? [hubObjectOf(String(first), objects), ...others] : args;
      // The arguments were typed where they were sent from; both sides are one program.
      const run = operations[op] as (...all: readonly unknown[]) => Promise<unknown>;
      return run(...given, by);
    },
    watch: (kind, namespace) => {
      const started = watchObjects({
        kind: ownedObjectOf(kind),
        api: async () => {
          const { api, identity } = current();
          await identity.ready({ effectId: 'watch', deadlineMs: WATCH_MS, signal: closing.signal });
          return api;
        },
        namespace,
        timers,
        random: options.random,
        note,
        ...(options.watch === undefined ? {} : { settings: options.watch }),
      });
      watches.add(started);
      return {
        ...started,
        close: () => {
          watches.delete(started);
          started.close();
        },
      };
    },
    close: () => {
      closing.abort();
      for (const watch of watches) watch.close();
      watches.clear();
      connected?.api.connection.close();
      connected = undefined;
    },
  };
};

/** Milliseconds in which a watch must learn which cluster it follows. */
const WATCH_MS = 30_000;

const connect = async (
  given: HubNeeds,
  kubeconfig: Uint8Array,
  { clock, timers, objects = HUB_OBJECTS }: HubClientOptions,
): Promise<Connected> => {
  const access = readKubeconfig(kubeconfig);
  const connection = await openConnection(access, timers);
  const proxyPassword = access.proxyUrl === undefined ? undefined : new URL(access.proxyUrl).password;
  const asked = createApi(connection, [access.token, access.keyData, proxyPassword]);
  let needs = given;
  const identity = createIdentity(asked, needs.cluster);
  const api = verifiedApi(asked, identity);
  const rights = createRights(asked, () => clock.monotonicMs());
  const objectFields = createObjectFields(asked, rights);
  return {
    api,
    identity,
    settle: (changed) => {
      needs = changed;
      return identity.expect(changed.cluster);
    },
    operations: {
      check: (thorough: boolean, by: CallOptions) =>
        checkHub({ api: asked, rights, identity, needs, clock, objects, objectFields, thorough }, by),
      identify: (by: CallOptions) => identity.read(by),
      ...objectOperations(api, rights),
      ...markOperations(api, needs.namespace),
      ...surroundingsOperations(api, rights, ownedObjects(objects), needs),
      ...hubController(api, needs.namespace, () => clock.now()),
    },
  };
};
