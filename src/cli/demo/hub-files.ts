import { globSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** What the simulated hubs themselves say, read from their files without any of the service's code. */
export type HubRecord = {
  readonly calls: number;
  /** Objects ever created, by the cluster that they were made for. */
  readonly objectsByCluster: ReadonlyMap<string, number>;
};

export const readHubFiles = (dataDir: string): HubRecord => {
  const objectsByCluster = new Map<string, number>();
  let calls = 0;
  for (const file of globSync(join(dataDir, 'hubs', '*.sqlite'))) {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
    try {
      calls += Number(db.prepare('SELECT count(*) AS n FROM calls').get()?.['n']);
      for (const row of db.prepare("SELECT object_id FROM objects WHERE kind = 'ClusterOrder'").iterate()) {
        const cluster = String(row['object_id']);
        objectsByCluster.set(cluster, (objectsByCluster.get(cluster) ?? 0) + 1);
      }
    } finally {
      db.close();
    }
  }
  return { calls, objectsByCluster };
};
