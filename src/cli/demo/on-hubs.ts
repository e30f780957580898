import { globSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../../domain/json.ts';
import { ClaimFailed } from './narrator.ts';
import { CLUSTERS, read, type Cluster } from './orders.ts';
import { ordersOnHub } from './real-hub.ts';
import type { DemoOptions, Stage } from './stage.ts';

/** What the simulated hubs themselves say, read from their files without any of the service's code. */
type HubRecord = {
  readonly calls: number;
  /** Objects ever created, by the id of what they were made for. */
  readonly objectsOf: ReadonlyMap<string, number>;
};

const CLUSTER_OBJECT = 'ClusterOrder';

/** `kind`: objects of this kind alone. */
export const readHubFiles = (dataDir: string, kind: string): HubRecord => {
  const objectsOf = new Map<string, number>();
  let calls = 0;
  for (const file of globSync(join(dataDir, 'hubs', '*.sqlite'))) {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
    try {
      calls += Number(db.prepare('SELECT count(*) AS n FROM calls').get()?.['n']);
      for (const row of db.prepare('SELECT object_id FROM objects WHERE kind = ?').iterate(kind)) {
        const id = String(row['object_id']);
        objectsOf.set(id, (objectsOf.get(id) ?? 0) + 1);
      }
    } finally {
      db.close();
    }
  }
  return { calls, objectsOf };
};

export const askTheHubs = async (stage: Stage, clusters: readonly Cluster[]): Promise<void> => {
  const { hub } = stage.request;
  if (hub === undefined) askTheJournals(stage, clusters);
  else await askTheHub(stage, hub, clusters);
};

const askTheJournals = (stage: Stage, clusters: readonly Cluster[]): void => {
  const { narrator } = stage;
  narrator.chapter("The hubs' own journals");
  const { calls, objectsOf } = readHubFiles(stage.dataDir, CLUSTER_OBJECT);
  for (const { id, metadata } of clusters)
    narrator.check(`the hub holds exactly one object for ${metadata.name}`, objectsOf.get(id) === 1);
  narrator.check(
    'no other cluster was ever created',
    objectsOf.size === clusters.length,
    `${calls} calls in the journals`,
  );
};

const askTheHub = async (stage: Stage, hub: JsonObject, clusters: readonly Cluster[]): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('The hub itself, through its kubeconfig');
  const orders = await ordersOnHub(
    hub,
    clusters.map(({ id }) => id),
  );
  for (const { id, metadata } of clusters) {
    const found = orders.filter(({ cluster }) => cluster === id);
    const names = found.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
    narrator.check(`the hub holds exactly one ClusterOrder for ${metadata.name}`, found.length === 1, names);
  }
  const { calls } = readHubFiles(stage.dataDir, CLUSTER_OBJECT);
  narrator.check('no simulated hub was called', calls === 0);
};

export const deleteBoth = async (stage: Stage, clusters: readonly Cluster[]): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Delete: both clusters, gone only when the hub confirms it');
  for (const { id } of clusters) await stage.tenant().send('DELETE', `${CLUSTERS}/${id}`);
  for (const { id, metadata } of clusters) {
    const deadline = performance.now() + stage.patienceMs;
    while ((await read(stage, id)) !== undefined) {
      if (performance.now() > deadline) throw new ClaimFailed(`${metadata.name} is still there`);
      await pause(100);
    }
    narrator.check(`${metadata.name} answers 404`, true);
  }
  const { hub } = stage.request;
  if (hub === undefined) return;
  const left = await ordersOnHub(
    hub,
    clusters.map(({ id }) => id),
  );
  narrator.check('the hub holds no ClusterOrder of them any more', left.length === 0);
};

/** A demo that failed leaves its orders on a real hub; nobody knows of them when its data are gone. */
export const leftBehind = async ({ hub }: DemoOptions, ordered: readonly string[]): Promise<string> => {
  if (hub === undefined || ordered.length === 0) return '';
  const orders = await ordersOnHub(hub, ordered).catch(() => undefined);
  if (orders === undefined)
    return `\n   what it left on the hub cannot be seen; its clusters are ${ordered.join(', ')}\n`;
  return orders
    .map(
      ({ namespace, name }) => `\n   left on the hub: kubectl -n ${namespace} delete clusterorder ${name}\n`,
    )
    .join('');
};
