import { expect } from 'chai';
import {
  type CallOptions,
  digestOfLook,
  TENANT_ANNOTATION,
} from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER,
  CLUSTER_ORDER_UUID_LABEL,
  type ClusterOrderManifest,
  HOSTED_CLUSTER,
  type ObservedClusterOrder,
} from '../../../src/domain/clusters/hub-objects.ts';
import { type HubObjectEvent, SIMULATION_ANNOTATION } from '../../../src/domain/hubs/hub-object.ts';
import type { HubMark } from '../../../src/domain/hubs/mark.ts';
import { sameJson } from '../../../src/domain/json-tools.ts';
import { failure, untilHolds, type ManagementClusterUnderTest } from './contract-kit.ts';

/** What every adapter of the port does, whatever cluster is behind it (OSAC's operator). */
export const describeManagementClusterContract = (
  name: string,
  factory: () => Promise<ManagementClusterUnderTest>,
): void => {
  describe(`management cluster: ${name}`, function () {
    this.timeout(120_000);
    let hub: ManagementClusterUnderTest;
    let names = 0;
    const aborts: AbortController[] = [];

    beforeEach(async () => {
      hub = await factory();
    });
    afterEach(async () => {
      for (const abort of aborts.splice(0)) abort.abort();
      await hub.close();
    });

    const by = (more: Partial<CallOptions> = {}): CallOptions => ({
      effectId: `contract-${process.pid}-${(names += 1)}`,
      // Nothing waits for it: a slow machine only needs it.
      deadlineMs: 60_000,
      signal: new AbortController().signal,
      ...more,
    });
    const manifestOf = (order: string, clusterId = `id-of-${order}`): ClusterOrderManifest => ({
      name: order,
      namespace: hub.namespace,
      labels: { [CLUSTER_ORDER_UUID_LABEL]: clusterId },
      annotations: { [TENANT_ANNOTATION]: 'acme' },
      spec: {
        templateID: 'osac.templates.ocp_small',
        templateParameters: '{}',
        nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
        pullSecret: '{"auths":{}}',
        releaseImage: 'registry.example/ocp/release:4.22.0',
      },
    });
    const refOf = (order: string) => ({ namespace: hub.namespace, name: order });
    const get = (order: string) => hub.cluster.get(CLUSTER_ORDER, refOf(order), by());
    const create = (order: string, clusterId?: string) =>
      hub.cluster.create(CLUSTER_ORDER, manifestOf(order, clusterId), by());

    const until = <T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> =>
      untilHolds(read, holds, hub.patienceMs);
    const untilReady = (order: string) =>
      until(
        () => get(order),
        (seen) => seen?.phase === 'Ready',
      );
    const untilGone = (order: string) =>
      until(
        () => get(order),
        (seen) => seen === undefined,
      );

    /** Follows a watch in the background; `seen` grows as events come. */
    const watch = (cluster = hub.cluster) => {
      const abort = new AbortController();
      aborts.push(abort);
      const seen: HubObjectEvent<ObservedClusterOrder>[] = [];
      const ended = (async () => {
        for await (const event of cluster.watch(CLUSTER_ORDER, hub.namespace, abort.signal)) seen.push(event);
      })();
      const untilSeen = (holds: (event: HubObjectEvent<ObservedClusterOrder>) => boolean) =>
        until(
          () => Promise.resolve(seen.find(holds)),
          (event) => event !== undefined,
        );
      return { seen, abort, ended, untilSeen };
    };
    const isApplied =
      (order: string, holds: (seen: ObservedClusterOrder) => boolean = () => true) =>
      (event: HubObjectEvent<ObservedClusterOrder>): boolean =>
        event.type === 'applied' && event.object.name === order && holds(event.object);

    /** A simulated hub keeps no pull secret (test/unit/simulated-hub/pull-secret.test.ts). */
    const kept = (spec: object): object => {
      const { pullSecret: _secret, ...others } = { pullSecret: '', ...spec };
      return hub.cluster.simulated ? others : spec;
    };

    describe('creation', () => {
      it('answers with the object as it is stored', async () => {
        const made = await create('order-a');
        const manifest = manifestOf('order-a');
        expect(made).to.include({ name: 'order-a', id: 'id-of-order-a', generation: 1 });
        expect(kept(made.spec)).to.deep.equal(kept(manifest.spec));
        expect(made.annotations).to.include(manifest.annotations);
        expect(made.uid).to.match(/^[0-9a-f-]{36}$/);
        expect(Number.isFinite(Date.parse(made.creationTimestamp))).to.equal(true);
        expect(made.deletionTimestamp).to.equal(undefined);
        expect((await get('order-a'))?.uid).to.equal(made.uid);
      });

      it('of a name that is taken fails as already-exists and shows whose it is', async () => {
        const first = await create('order-a');
        const mine = await failure(create('order-a'));
        expect([mine.kind, mine.object?.uid, mine.object?.id]).to.deep.equal([
          'already-exists',
          first.uid,
          'id-of-order-a',
        ]);
        const foreign = await failure(create('order-a', 'another'));
        expect([foreign.kind, foreign.object?.id]).to.deep.equal(['already-exists', 'id-of-order-a']);
      });

      it('of one name by two instances at once makes one object', async () => {
        const other = await hub.another();
        const results = await Promise.allSettled(
          [hub.cluster, other, hub.cluster, other].map((cluster) =>
            cluster.create(CLUSTER_ORDER, manifestOf('order-a'), by()),
          ),
        );
        expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        expect(await hub.cluster.find(CLUSTER_ORDER, hub.namespace, 'id-of-order-a', by())).to.have.length(1);
      });

      it('of an invalid object fails as invalid with the field', async () => {
        const manifest = manifestOf('order-a');
        const bad = { ...manifest, spec: { ...manifest.spec, templateID: 'ocp-small' } };
        const error = await failure(hub.cluster.create(CLUSTER_ORDER, bad, by()));
        expect(error.kind).to.equal('invalid');
        expect(error.message).to.include('spec.templateID');
        expect(await get('order-a')).to.equal(undefined);
      });

      it('in a namespace that does not exist fails', async () => {
        const manifest = { ...manifestOf('order-a'), namespace: hub.missingNamespace };
        const { kind } = await failure(hub.cluster.create(CLUSTER_ORDER, manifest, by()));
        expect(kind).to.equal(hub.inMissingNamespace ?? 'not-found');
      });
    });

    describe('reading', () => {
      it('gives undefined or nothing for what is not there', async () => {
        expect(await get('nobody')).to.equal(undefined);
        expect(await hub.cluster.find(CLUSTER_ORDER, hub.namespace, 'nobody', by())).to.deep.equal([]);
        const ref = { namespace: `${hub.namespace}-nobody`, name: 'nobody' };
        expect(await hub.cluster.get(HOSTED_CLUSTER, ref, by())).to.equal(undefined);
        expect(await hub.cluster.readSecret({ ...ref, key: 'kubeconfig' }, by())).to.equal(undefined);
      });

      it('gives the whole object for webhooks and jobs, what the hub keeps of its pull secret included', async () => {
        await create('order-a');
        const whole = await hub.cluster.read(CLUSTER_ORDER, refOf('order-a'), by());
        expect(whole).to.include({ apiVersion: 'osac.openshift.io/v1alpha1', kind: 'ClusterOrder' });
        expect(kept(whole?.['spec'] as object)).to.deep.equal(kept(manifestOf('order-a').spec));
        expect(whole?.['metadata']).to.not.have.property('managedFields');
        expect(await hub.cluster.read(CLUSTER_ORDER, refOf('nobody'), by())).to.equal(undefined);
      });

      it('tells by a digest of each whether many objects show what they showed, and nothing of absent ones', async () => {
        for (const order of ['order-a', 'order-b']) await create(order);
        const looks = ['order-b', 'nobody', 'order-a'].map((order) => ({ place: refOf(order) }));
        const read = async (order: string) => {
          const shown = await get(order);
          return shown === undefined ? undefined : digestOfLook(shown, null);
        };
        const asRead = () => Promise.all(looks.map(({ place }) => read(place.name)));
        // The hub works on them meanwhile.
        const told = await until(
          async () => [await asRead(), await hub.cluster.digests?.(CLUSTER_ORDER, looks, by())],
          ([before, digests]) => sameJson(before ?? [], digests ?? []),
        );
        expect(new Set(told[1]).size).to.equal(3);
        expect(told[1]?.[1]).to.equal(undefined);
      });

      it('a check finds nothing wrong with a hub that works, and what is wrong with one that is away', async () => {
        const healthy = await hub.cluster.check(by());
        expect(healthy.problems).to.deep.equal([]);
        expect(healthy.version).to.be.a('string').and.not.equal('');
        await hub.misbehave.refuseConnections();
        const away = await hub.cluster.check(by());
        expect(away.problems.map(({ code }) => code)).to.deep.equal(['Unreachable']);
      });

      it('finds every order of a cluster by its label, whatever its name', async () => {
        await create('order-a', 'one');
        await create('order-b', 'one');
        await create('order-c', 'two');
        const found = await hub.cluster.find(CLUSTER_ORDER, hub.namespace, 'one', by());
        expect(found.map(({ name: order }) => order)).to.have.members(['order-a', 'order-b']);
      });
    });

    describe('progress', () => {
      it('ends with a ready order, a healthy HostedCluster with its nodes, and credentials', async () => {
        await create('order-a');
        const order = await untilReady('order-a');
        expect(order?.conditions.find(({ type }) => type === 'ClusterAvailable')?.status).to.equal('True');
        expect(order?.jobs.at(-1)).to.include({ type: 'provision', state: 'Succeeded' });
        expect(order?.desiredConfigVersion)
          .to.match(/^[0-9a-f]{16}$/)
          .and.equal(order?.jobs.at(-1)?.configVersion);
        const reference = order?.clusterReference ?? { namespace: '', hostedClusterName: '' };
        const { namespace } = reference;
        const hosted = await hub.cluster.get(
          HOSTED_CLUSTER,
          { namespace, name: reference.hostedClusterName },
          by(),
        );
        const conditions = Object.fromEntries(
          (hosted?.conditions ?? []).map(({ type, status }) => [type, status]),
        );
        expect(conditions).to.include({
          Available: 'True',
          Degraded: 'False',
          ClusterVersionSucceeding: 'True',
        });
        expect(hosted?.controlPlaneEndpoint?.host).to.be.a('string').and.not.equal('');
        if (hosted?.nodePools !== undefined) {
          expect(hosted.nodePools).to.deep.equal([{ resourceClass: 'fc430', desired: 2, ready: 2 }]);
        }
        const secret = (secretName: string | undefined, key: string) =>
          hub.cluster.readSecret({ namespace, name: secretName ?? '', key }, by());
        const kubeconfig = Buffer.from(
          (await secret(hosted?.kubeconfigSecret, 'kubeconfig')) ?? [],
        ).toString();
        expect(kubeconfig).to.include('kind: Config');
        expect((await secret(hosted?.passwordSecret, 'password'))?.length).to.be.greaterThan(0);
        expect(await secret(hosted?.kubeconfigSecret, 'no-such-key')).to.equal(undefined);
      });
    });

    describe('patch', () => {
      it('changes the given fields only, and the generation', async () => {
        const made = await create('order-a');
        await until(
          () => get('order-a'),
          (seen) => (seen?.finalizers.length ?? 0) > 0,
        );
        const nodeRequests = [{ resourceClass: 'fc430', numberOfNodes: 3 }];
        const patched = await hub.cluster.patch(CLUSTER_ORDER, refOf('order-a'), { nodeRequests }, by());
        expect(patched.spec).to.deep.equal({ ...made.spec, nodeRequests });
        expect(patched.generation).to.be.greaterThan(made.generation);
        expect(patched.uid).to.equal(made.uid);
        expect(patched.finalizers.length).to.be.greaterThan(0);
        const again = await hub.cluster.patch(CLUSTER_ORDER, refOf('order-a'), { nodeRequests }, by());
        expect(again.generation).to.equal(patched.generation);
      });

      it('of a running order is carried out', async () => {
        await create('order-a');
        const before = await untilReady('order-a');
        const nodeRequests = [{ resourceClass: 'fc430', numberOfNodes: 3 }];
        await hub.cluster.patch(CLUSTER_ORDER, refOf('order-a'), { nodeRequests }, by());
        await until(
          () => get('order-a'),
          (seen) =>
            seen?.desiredConfigVersion !== before?.desiredConfigVersion &&
            seen?.jobs.at(-1)?.configVersion === seen?.desiredConfigVersion &&
            seen?.jobs.at(-1)?.state === 'Succeeded',
        );
      });

      it('of the template fails as invalid, of what is not there as not-found', async () => {
        await create('order-a');
        const change = { templateID: 'osac.templates.other' };
        const fixed = await failure(hub.cluster.patch(CLUSTER_ORDER, refOf('order-a'), change, by()));
        expect(fixed.kind).to.equal('invalid');
        const absent = await failure(hub.cluster.patch(CLUSTER_ORDER, refOf('nobody'), change, by()));
        expect(absent.kind).to.equal('not-found');
      });
    });

    describe('deletion', () => {
      it('is only requested at first; meanwhile the name is taken', async () => {
        const manifest = manifestOf('order-a');
        // A simulated hub never ends this one.
        const annotations = { ...manifest.annotations, [SIMULATION_ANNOTATION]: 'stuckDeletion=forever' };
        await hub.cluster.create(CLUSTER_ORDER, { ...manifest, annotations }, by());
        await untilReady('order-a');
        expect(await hub.cluster.delete(CLUSTER_ORDER, refOf('order-a'), by())).to.equal(true);
        const deleting = await get('order-a');
        expect(deleting?.deletionTimestamp).to.be.a('string');
        const taken = await failure(create('order-a'));
        expect(taken.kind).to.equal('already-exists');
        expect(taken.object?.deletionTimestamp).to.equal(deleting?.deletionTimestamp);
      });

      it('is confirmed by absence; then the name is free', async () => {
        const made = await create('order-a');
        await untilReady('order-a');
        expect(await hub.cluster.delete(CLUSTER_ORDER, refOf('order-a'), by())).to.equal(true);
        await untilGone('order-a');
        expect((await create('order-a')).uid).not.to.equal(made.uid);
      });

      it('of an object whose name another one has by now is a conflict, and that one stays', async () => {
        const made = await create('order-a');
        const uid = `${made.uid.startsWith('0') ? 1 : 0}${made.uid.slice(1)}`;
        const refused = await failure(hub.cluster.delete(CLUSTER_ORDER, { ...refOf('order-a'), uid }, by()));
        expect(refused.kind).to.equal('conflict');
        expect((await get('order-a'))?.deletionTimestamp).to.equal(undefined);
        const asked = { ...refOf('order-a'), uid: made.uid };
        expect(await hub.cluster.delete(CLUSTER_ORDER, asked, by())).to.equal(true);
        await untilGone('order-a');
        expect(await hub.cluster.delete(CLUSTER_ORDER, asked, by())).to.equal(false);
      });

      it('of what is not there is false', async () => {
        expect(await hub.cluster.delete(CLUSTER_ORDER, refOf('nobody'), by())).to.equal(false);
      });
    });

    describe('watch', () => {
      it('lists once, then shows every change to the end', async () => {
        const made = await create('order-a');
        const watching = watch();
        const synced = await watching.untilSeen(({ type }) => type === 'synced');
        expect(watching.seen[0]).to.deep.include({ type: 'applied' });
        expect(synced).to.deep.include({ type: 'synced', names: ['order-a'] });
        await create('order-b');
        await watching.untilSeen(isApplied('order-b'));
        await watching.untilSeen(isApplied('order-a', ({ phase }) => phase === 'Ready'));
        await hub.cluster.delete(CLUSTER_ORDER, refOf('order-a'), by());
        await watching.untilSeen(
          isApplied('order-a', ({ deletionTimestamp }) => deletionTimestamp !== undefined),
        );
        const deleted = await watching.untilSeen(({ type }) => type === 'deleted');
        expect(deleted?.type === 'deleted' ? deleted.object.uid : '').to.equal(made.uid);
        const versions = watching.seen
          .filter((event) => event.type !== 'synced' && event.object.name === 'order-a')
          .map((event) => (event.type === 'synced' ? '' : event.object.resourceVersion));
        expect(new Set(versions).size).to.equal(versions.length);
      });

      it('shows what other instances write', async () => {
        const watching = watch(await hub.another());
        await watching.untilSeen(({ type }) => type === 'synced');
        await create('order-a');
        await watching.untilSeen(isApplied('order-a'));
      });

      it('ends on its signal, and when the adapter is closed', async () => {
        const aborted = watch();
        await aborted.untilSeen(({ type }) => type === 'synced');
        aborted.abort.abort();
        await aborted.ended;
        const other = await hub.another();
        const closed = watch(other);
        await closed.untilSeen(({ type }) => type === 'synced');
        await other.close();
        await closed.ended;
      });

      it('goes on by itself after the hub was away, and misses nothing', async () => {
        await create('order-a');
        const watching = watch();
        await watching.untilSeen(({ type }) => type === 'synced');
        await hub.misbehave.refuseConnections();
        expect((await failure(get('order-a'))).kind).to.equal('unavailable');
        await hub.misbehave.healthy();
        await create('order-b');
        await watching.untilSeen(isApplied('order-b'));
        await watching.untilSeen(isApplied('order-a', ({ phase }) => phase === 'Ready'));
      });
    });

    describe('doubt', () => {
      it('a write whose answer is lost is of unknown outcome, and was done', async () => {
        await hub.misbehave.loseNextAnswer();
        expect((await failure(create('order-a'))).kind).to.equal('unknown-outcome');
        await hub.misbehave.healthy();
        expect((await get('order-a'))?.id).to.equal('id-of-order-a');
        expect((await failure(create('order-a'))).object?.id).to.equal('id-of-order-a');
      });

      it('past its deadline a write is of unknown outcome, a read is unavailable', async () => {
        await hub.misbehave.neverAnswer();
        const hurried = by({ deadlineMs: 1_000 });
        const write = failure(hub.cluster.create(CLUSTER_ORDER, manifestOf('order-a'), hurried));
        const read = failure(hub.cluster.get(CLUSTER_ORDER, refOf('order-a'), hurried));
        expect([(await write).kind, (await read).kind]).to.deep.equal(['unknown-outcome', 'unavailable']);
      });

      it('a refused connection is unavailable: nothing was done', async () => {
        await hub.misbehave.refuseConnections();
        expect((await failure(create('order-a'))).kind).to.equal('unavailable');
        await hub.misbehave.healthy();
        expect(await get('order-a')).to.equal(undefined);
      });

      it('an abort ends a call at once; before it was sent nothing is done', async () => {
        const abort = new AbortController();
        await hub.misbehave.neverAnswer();
        const pending = failure(
          hub.cluster.create(CLUSTER_ORDER, manifestOf('order-a'), by({ signal: abort.signal })),
        );
        // The call is on its way once a later read was given up at its own deadline.
        await failure(hub.cluster.get(CLUSTER_ORDER, refOf('order-a'), by({ deadlineMs: 1_000 })));
        abort.abort();
        expect((await pending).kind).to.equal('unknown-outcome');
        await hub.misbehave.healthy();
        const unsent = failure(
          hub.cluster.create(CLUSTER_ORDER, manifestOf('order-b'), by({ signal: abort.signal })),
        );
        expect((await unsent).kind).to.equal('unavailable');
        expect(await get('order-b')).to.equal(undefined);
      });

      it('a closed adapter is unavailable, and may be closed again', async () => {
        const other = await hub.another();
        await other.close();
        await other.close();
        expect((await failure(other.get(CLUSTER_ORDER, refOf('order-a'), by()))).kind).to.equal(
          'unavailable',
        );
      });
    });

    describe('the mark', () => {
      const mark: HubMark = {
        deploymentId: 'deployment-1',
        name: 'prod-east',
        formerIds: ['deployment-0'],
        epoch: 7,
        nonce: 'nonce-7',
        holder: '6f0c2f6e@ledger-0:2049:131077',
        renewedAt: '2026-11-21T12:00:00.000Z',
        released: false,
      };
      /** The hub may tell the time more exactly. */
      const read = async (cluster = hub.cluster) => {
        const stored = await cluster.readMark(by());
        if (stored === undefined) return undefined;
        const { renewedAt: _at, ...rest } = stored.mark;
        return { version: stored.version, mark: rest };
      };
      const { renewedAt: _at, ...shown } = mark;

      it('is absent at first, and then read as it was written, by every instance', async () => {
        expect(await read()).to.equal(undefined);
        const version = await hub.cluster.writeMark(mark, undefined, by());
        expect(await read()).to.deep.equal({ version, mark: shown });
        expect(await read(await hub.another())).to.deep.equal({ version, mark: shown });
      });

      it('is written over exactly what was read: of two one wins', async () => {
        const first = await hub.cluster.writeMark(mark, undefined, by());
        expect(await hub.cluster.writeMark({ ...mark, nonce: 'late' }, undefined, by())).to.equal(undefined);
        const other = await hub.another();
        const second = await other.writeMark({ ...mark, epoch: 8, nonce: 'nonce-8' }, first, by());
        expect(second).to.be.a('string').and.not.equal(first);
        expect(await hub.cluster.writeMark({ ...mark, nonce: 'late' }, first, by())).to.equal(undefined);
        expect((await read())?.mark).to.include({ epoch: 8, nonce: 'nonce-8' });
      });

      it('is renewed by a write that changes nothing but its version, and says that it was given back', async () => {
        const first = await hub.cluster.writeMark(mark, undefined, by());
        const second = await hub.cluster.writeMark(
          { ...mark, renewedAt: '2026-11-21T12:00:05.000Z' },
          first,
          by(),
        );
        expect(second).not.to.equal(first);
        await hub.cluster.writeMark({ ...mark, released: true }, second, by());
        expect((await read())?.mark).to.deep.equal({ ...shown, released: true });
      });
    });
  });
};
