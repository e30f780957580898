import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { UsageQuery, UsageRow } from '../../../../src/domain/metering/usage.ts';
import { USAGE_SCHEMA } from '../../../../src/projections/usage/usage-view.ts';
import { UsageRefused } from '../../../../src/projections/usage/usage-refused.ts';
import { MAX_USAGE_ROWS, scanUsageFile } from '../../../../src/projections/usage/usage-scan.ts';
import {
  createUsageScans,
  ROWS_AT_ONCE,
  WORKER_MODULE,
} from '../../../../src/projections/usage/usage-scans.ts';

const TENANTS = 50;

describe('usage of a file, on a thread of its own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'usage-'));
  const file = join(folder, 'usage.sqlite');
  const query = (more: Partial<UsageQuery> = {}): UsageQuery => ({
    periods: [{ fromMs: 0, toMs: 1_000_000 }],
    by: ['tenant'],
    only: {},
    asOfMs: 1_000_000,
    ...more,
  });
  const never = new AbortController().signal;

  before(() => {
    const db = new DatabaseSync(file);
    db.exec('PRAGMA journal_mode = WAL');
    db.exec(USAGE_SCHEMA);
    db.exec(`
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${MAX_USAGE_ROWS})
      INSERT INTO intervals SELECT 'c' || i, 'control_plane', '_control_plane', i, CASE i % 2 WHEN 0 THEN i + 10 END,
        'cluster', 't' || (i % ${TENANTS}), '', 'small', 'c', 'Small', 0, '_control_plane', 1 FROM n`);
    db.close();
  });
  after(() => rmSync(folder, { recursive: true }));

  it('is what a look at the file itself gives, while this thread goes on', async () => {
    const scans = createUsageScans(() => file);
    const scan = scans.run(query(), never);
    let ended = false;
    void scan.finally(() => (ended = true));
    // A scan on this thread would have ended before its next turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended, 'this thread was free').to.equal(false);
    const rows = await scan;
    expect(rows).to.have.length(TENANTS);
    expect(rows).to.deep.equal(scanUsageFile(file, query()));
    await scans.close();
  });

  it('comes in parts, each when it was asked for: what a thread takes over at once holds it', async () => {
    const ofOne = query({ by: ['resource'], only: { tenant: 't1' } });
    const worker = new Worker(WORKER_MODULE, { workerData: { path: file, query: ofOne } });
    const parts: { rows: readonly UsageRow[]; last: boolean }[] = [];
    for (;;) {
      const [part] = (await once(worker, 'message')) as [{ rows: readonly UsageRow[]; last: boolean }];
      parts.push(part);
      expect(part.rows.length).to.be.within(1, ROWS_AT_ONCE);
      if (part.last) break;
      worker.postMessage('next');
    }
    await worker.terminate();
    expect(parts).to.have.length(Math.ceil(MAX_USAGE_ROWS / TENANTS / ROWS_AT_ONCE));
    const scans = createUsageScans(() => file);
    expect(await scans.run(ofOne, never)).to.deep.equal(parts.flatMap((part) => part.rows));
    expect(await scans.run(query({ only: { tenant: 'none' } }), never)).to.deep.equal([]);
    await scans.close();
  });

  it('is refused when the answer would be too long, and the next one is answered', async () => {
    const scans = createUsageScans(() => file);
    const refused = await scans.run(query({ by: ['resource'] }), never).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(UsageRefused).with.property('reason', 'too-many-rows');
    expect(await scans.run(query({ only: { tenant: 't1' } }), never)).to.have.length(1);
    await scans.close();
  });

  it('ends with its caller, with the service, and says when there is no file', async () => {
    const scans = createUsageScans(() => file);
    const gone = new AbortController();
    const left = scans.run(query(), gone.signal).catch((error: unknown) => error);
    setImmediate(() => gone.abort());
    expect(await left)
      .to.be.instanceOf(UsageRefused)
      .with.property('reason', 'cancelled');
    const running = scans.run(query(), never).catch((error: unknown) => error);
    setImmediate(() => void scans.close());
    expect(await running)
      .to.be.instanceOf(UsageRefused)
      .with.property('reason', 'cancelled');
    const missing = createUsageScans(() => join(folder, 'none.sqlite'));
    expect(await missing.run(query(), never).catch((error: unknown) => error)).to.be.instanceOf(Error);
    await missing.close();
  });

  it('is of the new file when a rebuild has replaced the old one meanwhile', async () => {
    const paths = [join(folder, 'old.sqlite'), file];
    const scans = createUsageScans(() => paths.shift() ?? file);
    expect(await scans.run(query(), never)).to.have.length(TENANTS);
    await scans.close();
  });
});
