import { expect } from 'chai';
import { auditRoutes } from '../../../../src/http/audit/routes.ts';
import type { AuditServices } from '../../../../src/http/audit/services.ts';
import { AUDIT, startAuditStage, until, type AuditStage } from '../../../support/audit/stage.ts';
import { callerOf, itemsOf, PRIVATE, PUBLIC, textAt, type Caller } from '../../../support/http/service.ts';

/** Every look at the history is one event, whatever route it takes. */
describe('audit API: what is written down', function () {
  // Some wait for a signed head, which comes every ten seconds.
  this.timeout(60_000);
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

  it('is every call that is refused, once: what was asked for in words of the service alone', async () => {
    await stage.service.close();
    stage = await startAuditStage({ audit: { refusals: true } });
    const { admin, alice, auditor, callerFor, exported, order, service, settled } = stage;
    const theirs = await callerFor({ user: 'tara', tenants: ['t2'], roles: ['auditor'] });
    const id = await order(alice, 'one');
    await settled();
    const file = textAt(await exported(auditor, {}), 'id');
    const cursor = textAt((await auditor('GET', `${AUDIT}/events?limit=1`)).json, 'next_cursor');
    const [REJECTED, DENIED] = ['rejected', 'denied'];
    const about = { kind: 'auditExport', resourceId: file };
    const failures: readonly (readonly [Caller, string, string, number, object, object?])[] = [
      [theirs, 'GET', `exports/${file}/file`, 404, { code: 'NOT_FOUND', outcome: REJECTED, ...about }],
      [theirs, 'DELETE', `exports/${file}`, 404, { code: 'NOT_FOUND', outcome: REJECTED, ...about }],
      [auditor, 'GET', `events?cursor=${cursor}&kind=cluster`, 400, { code: 'CURSOR_MISMATCH' }],
      [theirs, 'GET', `events?cursor=${cursor}`, 400, { code: 'CURSOR_MISMATCH' }],
      [auditor, 'GET', 'events?cursor=bm90aGluZw', 400, { code: 'CURSOR_INVALID' }],
      [auditor, 'GET', 'events?type=Nope', 400, { code: 'INVALID_ARGUMENT' }],
      [auditor, 'GET', 'events?tenant=t2', 403, { code: 'PERMISSION_DENIED', outcome: DENIED }],
      [auditor, 'GET', 'events?colour=red', 400, { code: 'INVALID_ARGUMENT' }],
      [auditor, 'GET', 'events?subject=nobody.here', 400, { code: 'INVALID_ARGUMENT' }],
      [
        auditor,
        'GET',
        `resources/clusters/${id}?as_of=yesterday`,
        400,
        { code: 'INVALID_ARGUMENT', kind: 'cluster', resourceId: id },
      ],
      [
        auditor,
        'GET',
        `resources/cluster/${id}?as_of=2999-01-01T00:00:00Z`,
        400,
        { code: 'IN_THE_FUTURE', kind: 'cluster', resourceId: id },
      ],
      [auditor, 'GET', `resources/colour/${id}/events`, 404, { code: 'NOT_FOUND' }],
      [auditor, 'GET', 'consistency?from=5&to=1', 400, { code: 'INVALID_ARGUMENT' }],
      [auditor, 'GET', 'tile/0/000', 403, { code: 'PERMISSION_DENIED', outcome: DENIED }],
      [auditor, 'GET', 'nothing/here', 404, { code: 'NOT_FOUND', command: 'GET /audit.v1/' }],
      [auditor, 'GET', 'holds', 403, { code: 'PERMISSION_DENIED', command: 'GET /audit.v1/holds' }],
      [
        auditor,
        'DELETE',
        'holds/0193a1b2-0000-7000-8000-000000000004?reason=mine',
        403,
        { code: 'PERMISSION_DENIED', command: 'DELETE /audit.v1/holds/{id}' },
      ],
      [
        auditor,
        'POST',
        'holds',
        403,
        { code: 'PERMISSION_DENIED', command: 'POST /audit.v1/holds', fields: ['reason'] },
        { reason: 'mine' },
      ],
      [auditor, 'DELETE', 'events', 405, { code: 'METHOD_NOT_ALLOWED', command: 'DELETE /audit.v1/events' }],
      [alice, 'GET', 'nothing/here', 403, { code: 'PERMISSION_DENIED', outcome: DENIED }],
      [admin, 'POST', 'holds', 400, { fields: ['reason'] }, { reason: 'why', colour: 'red' }],
      [
        admin,
        'POST',
        'erasures',
        404,
        { fields: ['subject_id', 'reason'] },
        { subject_id: 'x', reason: 'y' },
      ],
      [admin, 'POST', 'grants', 400, { fields: ['subject'] }, { subject: 'bob' }],
      [
        auditor,
        'POST',
        'exports',
        400,
        { fields: ['tenant', 'filter.resource_id'] },
        { tenant: 't1', filter: { resource_id: 'nothing' } },
      ],
    ];
    const { store } = service;
    for (const [caller, verb, path, status, says, body] of failures) {
      const what = `${verb} ${path}`;
      const before = (await store.lastPosition()) ?? '';
      const reply = await caller(verb, `${AUDIT}/${path}`, body);
      expect(reply.status, `${what}: ${reply.text}`).to.equal(status);
      const left: { type: string; data: object }[] = [];
      await until(async () => {
        left.length = 0;
        for await (const event of store.readAll({ after: before, limit: 100 }))
          if (!event.stream.startsWith('sys-')) left.push(event);
        return left.length > 0;
      });
      expect(
        left.map(({ type }) => type),
        what,
      ).to.deep.equal(['RequestRefused']);
      expect(left[0]?.data, what).to.deep.include(says);
      expect(left[0]?.data, what).to.have.property('subjectId').that.is.not.equal('');
    }
    // A question to which there is no answer is a look, and no refusal beside it.
    for (const path of [
      'events/nothing@0',
      `resources/cluster/nothing`,
      `exports/${file.replace(/.$/, 'x')}`,
    ])
      expect((await auditor('GET', `${AUDIT}/${path}`)).status, path).to.equal(404);
    expect((await alice('PATCH', `${PUBLIC}/clusters/${id}`, { nonsense: 1 })).status).to.equal(400);
    const refused: unknown[] = [];
    await until(async () => {
      refused.length = 0;
      for await (const { type, data } of store.readAll({ limit: 2_000 }))
        if (type === 'RequestRefused') refused.push(data['command']);
      return refused.at(-1) === '/osac.public.v1.Clusters/Update';
    });
    expect(refused).to.have.length(failures.length + 1);
  });

  it('is each refused call no more often than refused writes are, and counted beyond that', async () => {
    await stage.service.close();
    stage = await startAuditStage({ audit: { refusals: true } });
    const { auditor, service } = stage;
    const stranger = callerOf(service);
    const began = performance.now();
    for (const caller of [auditor, stranger])
      for (let i = 0; i < 100; i += 1) await caller('GET', `${AUDIT}/nothing/${i}`);
    const refused = async (): Promise<unknown[]> => {
      const found: unknown[] = [];
      for await (const { type, data } of service.store.readAll({ limit: 2_000 }))
        if (type === 'RequestRefused') found.push(data['subjectId']);
      return found;
    };
    await until(async () => (await refused()).length >= 120);
    const found = await refused();
    // Sixty at once, and one more each second.
    const most = 61 + (performance.now() - began) / 1_000;
    expect(found.filter((subject) => subject === '').length).to.be.within(60, most);
    expect(found.filter((subject) => subject !== '').length).to.be.within(60, most);
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
