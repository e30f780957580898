import { expect } from 'chai';
import { auditRoutes } from '../../../src/http/audit/routes.ts';
import type { AuditServices } from '../../../src/http/audit/services.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit-callers.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt, type Caller } from '../../support/http-service.ts';

/** Every look at the history is one event, whatever route it takes. */
describe('audit API: what is written down', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  /** What is recorded otherwise than as AuditRead, and why. */
  const OTHERWISE: { readonly [path: string]: string } = {
    // The download is an event of the export, which names the reader, too.
    'exports/{id}/file': 'AuditExportDownloaded',
  };

  /** Types of the events that a call leaves. */
  const leftBy = async (
    call: () => Promise<{ status: number; text: string }>,
    path: string,
  ): Promise<string[]> => {
    const { store } = stage.service;
    const before = (await store.lastPosition()) ?? '';
    const reply = await call();
    expect(reply.status, `${path}: ${reply.text}`).to.equal(200);
    const types: string[] = [];
    for await (const event of store.readAll({ after: before, limit: 100 }))
      if (!event.stream.startsWith('sys-')) types.push(event.type);
    return types;
  };

  it('is every GET, once', async () => {
    const { admin, auditor, alice, order, settled, exported } = stage;
    const id = await order(alice, 'one');
    await settled();
    const [event] = itemsOf(await auditor('GET', `${AUDIT}/events?type=ClusterOrdered`));
    const state = await exported(auditor, {});
    const subject = textAt(event, 'actor', 'subject');
    const erased = await admin('POST', `${AUDIT}/erasures`, {
      subject_id: subject,
      tenant: 't1',
      reason: 'r',
    });
    expect(erased.status, erased.text).to.equal(200);
    const again = await exported(auditor, {});
    expect(textAt(state, 'id')).not.to.equal(textAt(again, 'id'));
    await settled();
    const [head] = itemsOf(await auditor('GET', `${AUDIT}/checkpoints`));
    const ids: { readonly [start: string]: string } = {
      events: textAt(event, 'id'),
      resources: id,
      exports: textAt(again, 'id'),
      erasures: textAt(erased.json, 'id'),
    };
    const queries: { readonly [path: string]: string } = {
      'resources/{kind}/{id}/diff': '?from=2020-01-01T00:00:00Z',
      consistency: `?from=1&to=${JSON.stringify(head?.['size'])}`,
    };
    const forAdmins = ['holds', 'erasures', 'grants', 'tile'];
    // The rows need no services; what stands behind them is not called.
    const routes = auditRoutes({} as AuditServices).filter(({ verb }) => verb === 'GET');
    expect(routes.length).to.be.greaterThan(15);
    const left: { [path: string]: string[] } = {};
    for (const { path } of routes) {
      const [start = ''] = path.split('/');
      const filled = path
        .replace('{kind}', 'cluster')
        .replace('{id}', ids[start] ?? '')
        .replace('{path*}', '0/000.p/1');
      const caller: Caller = forAdmins.includes(start) ? admin : auditor;
      left[path] = await leftBy(() => caller('GET', `${AUDIT}/${filled}${queries[path] ?? ''}`), path);
    }
    expect(left).to.deep.equal(
      Object.fromEntries(routes.map(({ path }) => [path, [OTHERWISE[path] ?? 'AuditRead']])),
    );
  });

  it('is no GET of objects themselves, nor how they were: it shows what GET showed then, and no history', async () => {
    const { admin, alice, order, settled } = stage;
    const id = await order(alice, 'one');
    const position = (
      await alice('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { a: 'b' } } })
    ).headers.get('x-ledger-position');
    await settled(false);
    const asOf = `as_of=${encodeURIComponent(position ?? '')}`;
    for (const path of [
      `${PUBLIC}/clusters/${id}?${asOf}`,
      `${PUBLIC}/clusters?${asOf}`,
      `${PRIVATE}/clusters/${id}?${asOf}`,
      '/openapi.json',
    ]) {
      const caller = path.startsWith(PRIVATE) ? admin : alice;
      expect(await leftBy(() => caller('GET', path), path), path).to.deep.equal([]);
    }
  });
});
