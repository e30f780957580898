import { expect } from 'chai';
import { ApiError, type ApiClient } from '../../../src/cli/api-client.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { createE2eHub, HUB, type AskedFor, type E2eHub, type HubCase } from './served-hub.ts';
import { CLUSTERS, isReady, until, untilCluster, untilGone, type ClusterBody } from '../service/stack.ts';
import { createRandom } from '../event-store/faulty-store.ts';
import type { KubeObject } from '../kube-apiserver/types.ts';
import { requestsOf } from '../kube-controllers/ansible.ts';
import type { CallOnItsWay } from '../kube-apiserver/fault-proxy.ts';

const PHASES = ['create', 'scale', 'delete'] as const;
type Phase = (typeof PHASES)[number];

/** When the service is killed: at a call to the hub, when the hub's automation was asked, or did not hear that it was. */
type Death = {
  readonly phase: Phase;
  readonly name: string;
} & (
  | { readonly at: (call: CallOnItsWay) => boolean }
  | { readonly asked: AskedFor['kind'] }
  | { readonly dropped: true }
);

/** What passed between the service and its hub, in order. */
type Passed =
  | { readonly call: string; readonly path: string }
  | { readonly asked: AskedFor['kind']; readonly nodes: number }
  | { readonly lost: string };

const SEED = Number(process.env['LEDGER_TEST_SEED'] ?? Date.now() % 1_000_000);
/** Unset: one kill. Any number, as in test:faults, which runs these suites: at every moment. */
const ALL = process.env['LEDGER_TEST_KILLS'] !== undefined;
/** A request without an answer is looked after when it surely came or never will: after a minute. */
const SETTLED_MS = 120_000;
const TEMPLATE = { id: 'osac.templates.ocp_small' };
const ORDERS = /\/clusterorders$/;
const ORDER = /\/clusterorders\/[^/]+$/;
/** At a HostedCluster, or at the order, which is gone when all is. */
const LOOK = /^GET .*\/(?:hostedclusters|clusterorders)\/[^/]+$/;

/** Both sides of one write: it does not arrive any more, and it was carried out but never answered. */
const around = (phase: Phase, method: string, path: RegExp): readonly Death[] =>
  (['arrived', 'answered'] as const).map((moment) => ({
    phase,
    name: `${method} of ${path.source.replaceAll(/[\\$]/g, '').replaceAll('[^/]+', '{name}')} ${moment === 'arrived' ? 'was sent' : 'was carried out'}`,
    at: (call) => call.method === method && call.moment === moment && path.test(pathOf(call)),
  }));
const pathOf = ({ path }: CallOnItsWay): string => path.split('?')[0] ?? '';
const isRehearsal = ({ path }: Pick<CallOnItsWay, 'path'>): boolean => path.includes('dryRun=');
type Seen = ReturnType<E2eHub['seen']>[number];
const isMade = (call: Seen): boolean =>
  call.method === 'POST' &&
  call.code === 201 &&
  /\/clusterorders(?:\?|$)/.test(call.path) &&
  !isRehearsal(call);

/**
 * Every kind of write that a mode makes, and the automation's turn. What we write to an order that an operator reconciles
 * does not hang on who asks the automation: mode operator has those moments, the other modes their own.
 */
const deathsOf = ({ mode, controller }: HubCase): readonly Death[] => {
  const writes: readonly Death[] = [
    ...around('create', 'POST', ORDERS),
    ...around('scale', 'PATCH', ORDER),
    ...around('delete', 'DELETE', ORDER),
  ];
  if (mode === 'operator') return writes;
  const requests: readonly Death[] = [
    { phase: 'create', name: 'the automation was asked', asked: 'create' },
    { phase: 'scale', name: 'the automation was asked', asked: 'create' },
    { phase: 'delete', name: 'the automation was asked', asked: 'delete' },
    { phase: 'create', name: 'a request to the automation was lost', dropped: true },
  ];
  if (controller === 'operator') return requests;
  return [
    ...writes,
    ...requests,
    ...around('create', 'POST', /\/rolebindings$/),
    ...around('scale', 'PATCH', /\/clusterorders\/[^/]+\/status$/),
    ...around('delete', 'PATCH', ORDER),
  ];
};

/** One life of a cluster for each: all moments of a phase come in turn, or one seeded moment after the creation. */
const livesOf = (hubCase: HubCase): readonly (readonly Death[])[] => {
  const deaths = deathsOf(hubCase);
  if (!ALL) {
    const later = deaths.filter(({ phase }) => phase !== 'create');
    return [later.slice(Math.floor(createRandom(SEED)() * later.length)).slice(0, 1)];
  }
  const by = PHASES.map((phase) => deaths.filter((death) => death.phase === phase));
  const longest = Math.max(...by.map(({ length }) => length));
  return Array.from({ length: longest }, (_, n) => by.flatMap((each) => each.slice(n, n + 1)));
};

/** The service killed for real while it orders, scales and removes on a hub; one suite for each way to register it. */
export const hubKillSuite = (title: string, hubCase: HubCase): void => {
  describe(`kill -9 at a call to ${title} (seed ${SEED})`, function () {
    this.timeout(300_000);
    const { mode, controller } = hubCase;
    let hub: E2eHub;
    let alice: ApiClient;
    let passed: Passed[] = [];

    before(async () => {
      hub = await createE2eHub(hubCase);
      await hub.stack.start();
      alice = await hub.stack.client({ tenant: 'acme', user: 'alice' });
      // On a busy machine a check's calls may come too late; that a hub is registered is told by other suites.
      await until('the hub is registered', async () => {
        const { code } = await hub.ledgerctl('hubs', 'add', ...hub.registration);
        return code === 0;
      });
      const admin = await hub.stack.client({ admin: true, user: 'root' });
      await until('the hub was looked at', async () => {
        const { health } = await admin.get<{ health: string }>(`/api/ledger/v1/hubs/${HUB}`);
        return health === 'ok';
      });
    });
    after(() => hub?.dispose());

    /** Resolves when the service is dead. Without a death nothing is killed; what passes is written down either way. */
    const arm = (death: Death | undefined): Promise<void> => {
      const killed = Promise.withResolvers<void>();
      let armed = death !== undefined;
      const kill = (): void => {
        armed = false;
        process.kill(hub.stack.service().pid, 'SIGKILL');
        void hub.stack.service().ended.then(() => killed.resolve());
      };
      hub.onCall((call) => {
        if (isRehearsal(call)) return 'pass';
        const fatal = armed && death !== undefined && 'at' in death && death.at(call);
        const lost = fatal && call.moment === 'arrived';
        if (call.moment === 'arrived' && !lost) passed.push({ call: call.method, path: pathOf(call) });
        if (!fatal) return 'pass';
        kill();
        return 'cut';
      });
      hub.onAsked(async () => {
        const last = hub.asked().at(-1);
        if (last !== undefined) passed.push({ asked: last.kind, nodes: nodesOf(last.order) });
        if (armed && death !== undefined && 'asked' in death && last?.kind === death.asked) kill();
      });
      return killed.promise;
    };

    /** Kills the service when the automation has not heard what it was asked for. */
    const killWhenDropped = async (): Promise<void> => {
      await until('the request was lost', async () => (await hub.dropped()) > 0);
      await hub.stack.stop('SIGKILL');
    };

    /** Asks the service for something, in which it dies; asks the next one again with the same key. */
    const through = async (death: Death | undefined, ask: () => Promise<void>): Promise<void> => {
      const killed = arm(death);
      if (death === undefined) return ask();
      if ('dropped' in death) await hub.dropNext();
      await ask().catch((error: unknown) => {
        if (error instanceof ApiError) throw error;
      });
      let dead = false;
      void ('dropped' in death ? killWhenDropped() : killed).then(() => (dead = true));
      await until(`the service dies when ${death.name}`, () => dead);
      if ('dropped' in death) passed.push({ lost: death.name });
      if ('asked' in death) await until('the automation did it', done[death.phase]);
      await hub.stack.start();
      alice = await hub.stack.client({ tenant: 'acme', user: 'alice' });
      await ask();
    };

    const orders = (): Promise<readonly KubeObject[]> => hub.list('clusterorders');
    const poolsAre = async (field: 'spec' | 'status', replicas: number): Promise<boolean> =>
      (await hub.list('nodepools')).some(
        (pool) => objectAt(pool as JsonObject, field)['replicas'] === replicas,
      );
    /** What was asked for is there to be seen; the minute after which a webhook counts as lost is for other suites. */
    const done: { readonly [Of in Phase]: () => Promise<boolean> } = {
      create: () => poolsAre('spec', 2),
      scale: () => poolsAre('spec', 3),
      delete: async () => (await hub.list('hostedclusters')).length === 0,
    };
    /** What changes on a HostedCluster alone is seen at the next timed read, within a minute; a touch hastens it. */
    const touch = async (): Promise<void> => {
      const [order] = await orders();
      const { namespace = '', name = '' } = order?.metadata ?? {};
      const metadata = { annotations: { 'example.com/looked-at': String(performance.now()) } };
      await hub.play.api.merge('clusterorders', namespace, name, { metadata });
    };

    livesOf(hubCase).forEach((deaths, life) => {
      const names = deaths.map(({ phase, name }) => `${phase}: ${name}`).join('; ');
      it(`${names}: nothing is made or asked for twice, and all ends as its owner wanted it`, async () => {
        passed = [];
        const [before, seen] = [hub.asked().length, hub.seen().length];
        const deathIn = (phase: Phase): Death | undefined => deaths.find((each) => each.phase === phase);
        const key = (what: Phase) => ({ 'idempotency-key': `"${what}-${life}"` });
        let id = '';
        await through(deathIn('create'), async () => {
          const body = { metadata: { name: `killed-${life}` }, spec: { template: TEMPLATE } };
          ({ id } = await alice.send<ClusterBody>('POST', CLUSTERS, body, key('create')));
        });
        await untilCluster(alice, id, isReady, SETTLED_MS);

        const scaled = ALL || deathIn('scale') !== undefined;
        if (scaled) {
          await through(deathIn('scale'), async () => {
            const body = { spec: { node_sets: { workers: { size: 3 } } } };
            const mask = 'update_mask=spec.node_sets.workers.size';
            await alice.send('PATCH', `${CLUSTERS}/${id}?${mask}`, body, key('scale'));
          });
          await until('the pool has grown', () => poolsAre('status', 3), SETTLED_MS);
          await touch();
          const whole = (seen: ClusterBody): boolean =>
            isReady(seen) && seen.status?.node_sets?.['workers']?.size === 3;
          await untilCluster(alice, id, whole, SETTLED_MS);
          expect(requestsOf(objectAt((await orders())[0] as JsonObject, 'spec'))).to.deep.equal([
            { resourceClass: 'fc430', numberOfNodes: 3 },
          ]);
        }

        await through(deathIn('delete'), async () => {
          await alice.send('DELETE', `${CLUSTERS}/${id}`, undefined, key('delete'));
        });
        await untilGone(alice, id, SETTLED_MS);
        expect(await orders()).to.deep.equal([]);
        expect(await hub.list('hostedclusters')).to.deep.equal([]);
        expect(hub.play.failure()).to.equal(undefined);

        const asked = hub.asked().slice(before);
        const wishes = asked.map(({ kind, order }) => `${kind} ${nodesOf(order)}`);
        const wanted = scaled ? ['create 2', 'create 3', 'delete 3'] : ['create 2', 'delete 2'];
        expect([...new Set(wishes)], 'what the automation was asked for').to.deep.equal(wanted);
        // A job is never launched twice, a webhook only where the hub does not let us see what came of the first one.
        if (mode !== 'eda' || controller === 'ledger') expect(wishes).to.deep.equal(wanted);
        expect(repeatedBlindly(passed), 'repeated without a look').to.deep.equal([]);
        const made = hub.seen().slice(seen).filter(isMade);
        expect(made, 'orders that the hub ever made').to.have.length(1);
      });
    });
  });
};

const nodesOf = (order: JsonObject): number =>
  requestsOf(objectAt(order, 'spec')).reduce((sum, { numberOfNodes }) => sum + numberOfNodes, 0);

/** What was asked for again, also after a request that was lost, without a look at what the first one left on the hub. */
const repeatedBlindly = (passed: readonly Passed[]): readonly Passed[] =>
  passed.filter((one, index) => {
    if (!('asked' in one)) return false;
    const last = passed
      .slice(0, index)
      .findLastIndex(
        (other) =>
          'lost' in other || ('asked' in other && other.asked === one.asked && other.nodes === one.nodes),
      );
    const since = passed.slice(last + 1, index);
    return last >= 0 && !since.some((other) => 'call' in other && LOOK.test(`${other.call} ${other.path}`));
  });
