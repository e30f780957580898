import { expect } from 'chai';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { systemMetadata } from '../../../src/app/log/metadata.ts';
import type { ClusterEvent } from '../../../src/domain/clusters/state.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { UsageRefused } from '../../../src/projections/usage/usage-refused.ts';
import {
  callerOf,
  PRIVATE,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { dispatched, ordered, selected } from '../../unit/domain/clusters/samples.ts';

const USAGE = '/api/ledger/v1/usage';
const NOVEMBER = 'from=2026-11-01T00:00:00Z&to=2026-11-03T00:00:00Z';
const codec = createEventCodec(eventTypes);

/** A cluster that is ready from `from` on, and fails at `until`, if it does; `orderedAt`: it was not ready at once. */
const history = (
  id: string,
  more: object,
  from: string,
  until?: string,
  orderedAt: string = from,
): ClusterEvent[] => [
  { type: 'ClusterOrdered', data: { ...ordered, id, at: orderedAt, ...more } },
  ...[selected, dispatched].map(
    (event) => ({ ...event, data: { ...event.data, at: orderedAt } }) as ClusterEvent,
  ),
  { type: 'ClusterBecameReady', data: { at: from } },
  ...(until === undefined
    ? []
    : ([
        { type: 'ClusterFailed', data: { at: until, reason: 'x', message: 'y', permanent: true } },
      ] as const)),
];

describe('usage over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let last = '';

  const tell = async (id: string, events: ClusterEvent[]): Promise<void> => {
    const metadata = systemMetadata(`command-${id}`, 'Test', '2026-11-21T12:00:00.000Z', 'test');
    const stream = `cluster-${id}`;
    const { position } = await service.store.append(
      stream,
      'no_stream',
      codec.encodeAll(events, stream, metadata),
    );
    last = service.positions.format(position);
  };
  const rows = async (query: string): Promise<unknown> => {
    const reply = await admin('GET', `${USAGE}?${query}`, undefined, { 'x-ledger-min-position': last });
    expect(reply.status, reply.text).to.equal(200);
    return (reply.json as unknown as { items: unknown }).items;
  };

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    const formula = { '=cmd()': { hostType: { id: 'h', name: 'say "h", please' }, size: 1 } };
    await tell(
      'c1',
      history(
        'c1',
        { tenant: 'acme', project: 'web' },
        '2026-11-01T12:00:00.000Z',
        '2026-11-02T06:00:00.500Z',
      ),
    );
    await tell('c2', history('c2', { tenant: 'acme', nodeSets: formula }, '2026-11-02T23:00:00.000Z'));
    await tell(
      'c3',
      history('c3', { tenant: 'other' }, '2026-10-31T23:59:59.999Z', '2026-11-01T00:00:01.000Z'),
    );
  });
  after(() => service.close());

  const whole = { period_start: '2026-11-01T00:00:00.000Z', period_end: '2026-11-03T00:00:00.000Z' };
  const ofTemplate = { kind: 'cluster', template: 'osac.templates.small', template_name: 'small' };
  const built = { provisioning_resource_seconds: 0, provisioning_node_seconds: 0 };

  it('is a look at the history of each tenant that it shows, and of nobody where it only adds up', async () => {
    const toldBy = async (query: string): Promise<readonly unknown[]> => {
      const before = (await service.store.lastPosition()) ?? '';
      await rows(query);
      const told: unknown[] = [];
      for await (const { type, metadata, data } of service.store.readAll({ after: before, limit: 10 }))
        told.push(type === 'AuditRead' ? data['tenants'] : [type, metadata['tenant'], data['what']]);
      return told;
    };
    const notice = (tenant: string) => ['AuditReadNoticed', tenant, 'usage'];
    expect(await toldBy(NOVEMBER)).to.have.deep.members([undefined, notice('acme'), notice('other')]);
    expect(await toldBy(`${NOVEMBER}&by=resource`)).to.have.deep.members([
      undefined,
      notice('acme'),
      notice('other'),
    ]);
    expect(await toldBy(`${NOVEMBER}&by=kind&resource=c3`)).to.deep.equal([undefined, notice('other')]);
    expect(await toldBy(`${NOVEMBER}&by=kind`)).to.deep.equal([undefined]);
  });

  it('is exact by tenant, project, kind and template, within the period alone', async () => {
    expect(await rows(NOVEMBER)).to.deep.equal([
      {
        ...whole,
        tenant: 'acme',
        project: '',
        ...ofTemplate,
        resource_seconds: 3600,
        node_seconds: 3600,
        ...built,
      },
      {
        ...whole,
        tenant: 'acme',
        project: 'web',
        ...ofTemplate,
        resource_seconds: 64_800.5,
        node_seconds: 5 * 64_800.5,
        ...built,
      },
      {
        ...whole,
        tenant: 'other',
        project: '',
        ...ofTemplate,
        resource_seconds: 1,
        node_seconds: 5,
        ...built,
      },
    ]);
  });

  it('is cut into periods in UTC', async () => {
    expect(await rows(`${NOVEMBER}&tenant=acme&project=web&by=node_set&period=day`)).to.deep.equal(
      [
        ['01', '02', '_control_plane', 43_200, 0],
        ['01', '02', 'gpu', 0, 86_400],
        ['01', '02', 'workers', 0, 129_600],
        ['02', '03', '_control_plane', 21_600.5, 0],
        ['02', '03', 'gpu', 0, 43_201],
        ['02', '03', 'workers', 0, 64_801.5],
      ].map(([from, to, nodeSet, resourceSeconds, nodeSeconds]) => ({
        period_start: `2026-11-${from}T00:00:00.000Z`,
        period_end: `2026-11-${to}T00:00:00.000Z`,
        node_set: nodeSet,
        resource_seconds: resourceSeconds,
        node_seconds: nodeSeconds,
        ...built,
      })),
    );
    const months = await rows(
      'from=2026-09-15T00:00:00Z&to=2026-11-02T00:00:00Z&by=&period=month&resource=c3',
    );
    expect(months).to.deep.equal([
      {
        period_start: '2026-10-01T00:00:00.000Z',
        period_end: '2026-11-01T00:00:00.000Z',
        resource_seconds: 0.001,
        node_seconds: 0.005,
        ...built,
      },
      {
        period_start: '2026-11-01T00:00:00.000Z',
        period_end: '2026-11-02T00:00:00.000Z',
        resource_seconds: 1,
        node_seconds: 5,
        ...built,
      },
    ]);
  });

  it('counts the time before the first READY apart, and bills none of it', async () => {
    const at = (minute: string): string => `2026-08-01T00:${minute}:00.000Z`;
    const never: ClusterEvent[] = [
      {
        type: 'ClusterOrdered',
        data: { ...ordered, id: 'never', at: at('00'), tenant: 'acme', name: 'never' },
      },
      { type: 'ClusterFailed', data: { at: at('30'), reason: 'x', message: 'y', permanent: true } },
    ];
    await tell('never', never);
    await tell('slow', history('slow', { tenant: 'acme', name: 'slow-one' }, at('20'), at('50'), at('00')));
    const august = 'from=2026-08-01T00:00:00Z&to=2026-08-02T00:00:00Z&by=resource';
    const day = { period_start: '2026-08-01T00:00:00.000Z', period_end: '2026-08-02T00:00:00.000Z' };
    expect(await rows(august)).to.deep.equal([
      {
        ...day,
        resource: 'never',
        resource_name: 'never',
        resource_seconds: 0,
        node_seconds: 0,
        provisioning_resource_seconds: 1800,
        provisioning_node_seconds: 5 * 1800,
      },
      {
        ...day,
        resource: 'slow',
        resource_name: 'slow-one',
        resource_seconds: 1800,
        node_seconds: 5 * 1800,
        provisioning_resource_seconds: 1200,
        provisioning_node_seconds: 5 * 1200,
      },
    ]);
  });

  it('comes as CSV and as newline-delimited JSON, by parameter or by Accept', async () => {
    const query = `${USAGE}?${NOVEMBER}&resource=c2&by=resource,node_set,host_type`;
    const csv = await admin('GET', `${query}&format=csv`);
    expect(csv.headers.get('content-type')).to.equal('text/csv; charset=utf-8; header=present');
    expect((csv.headers.get('x-ledger-position') ?? '') >= last).to.equal(true);
    const period = '2026-11-01T00:00:00.000Z,2026-11-03T00:00:00.000Z';
    expect(csv.text.split('\r\n')).to.deep.equal([
      'period_start,period_end,resource,resource_name,node_set,host_type,resource_seconds,node_seconds,provisioning_resource_seconds,provisioning_node_seconds',
      `${period},c2,my-cluster,'=cmd(),"say ""h"", please",0,3600,0,0`,
      `${period},c2,my-cluster,_control_plane,_control_plane,3600,0,0,0`,
      '',
    ]);
    const accepted = await admin('GET', query, undefined, { accept: 'text/csv' });
    expect(accepted.text).to.equal(csv.text);
    const lines = await admin('GET', query, undefined, { accept: 'application/x-ndjson' });
    expect(lines.headers.get('content-type')).to.equal('application/x-ndjson');
    const items = lines.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(items).to.deep.equal(await rows(`${NOVEMBER}&resource=c2&by=resource,node_set,host_type`));
  });

  it('counts what goes on up to now, and says when that was', async () => {
    const before = Date.now();
    const reply = await admin('GET', `${USAGE}?from=2026-11-02T00:00:00Z&resource=c2&by=`);
    const answer = reply.json as unknown as { as_of: string; items: { resource_seconds: number }[] };
    const asOf = Date.parse(answer.as_of);
    expect(asOf).to.be.at.least(before);
    const since = Date.parse('2026-11-02T23:00:00.000Z');
    expect(answer.items[0]?.resource_seconds ?? 0).to.equal(Math.max(0, asOf - since) / 1000);
  });

  it('is nothing where nothing was billed', async () => {
    expect(await rows('from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z')).to.deep.equal([]);
    const csv = await admin(
      'GET',
      `${USAGE}?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&by=&format=csv`,
    );
    expect(csv.text).to.equal(
      'period_start,period_end,resource_seconds,node_seconds,provisioning_resource_seconds,provisioning_node_seconds\r\n',
    );
  });

  it('names the parameter that is wrong', async () => {
    const wrong: readonly [string, string][] = [
      ['from=yesterday', "query parameter 'from' must be a time such as 2026-11-01T00:00:00Z"],
      ['from=2026-13-01T00:00:00Z', "query parameter 'from' must be a time such as 2026-11-01T00:00:00Z"],
      ['from=2026-02-31T00:00:00Z', "query parameter 'from' must be a time such as 2026-11-01T00:00:00Z"],
      [
        'from=2026-11-02T00:00:00Z&to=2026-11-02T00:00:00Z',
        "query parameter 'from' must be a time before 'to', which is 2026-11-02T00:00:00.000Z",
      ],
      ['by=colour', "query parameter 'by' must be a list of different ones of"],
      ['by=tenant,tenant', "query parameter 'by' must be a list of different ones of"],
      ['period=week', "query parameter 'period' must be one of total, hour, day, month"],
      ['format=xml', "query parameter 'format' must be one of json, ndjson, csv"],
      [
        'from=1990-01-01T00:00:00Z&period=hour',
        "query parameter 'period' cuts this time into more than 10000 parts",
      ],
      ['tenant=a&tenant=b', "query parameter 'tenant' may be given once"],
      // Each of these would be a bill of nothing, or of everybody.
      [
        'kind=clusters',
        "query parameter 'kind' must be cluster or computeInstance or bareMetalInstance or externalIp or volume or virtualNetwork or subnet: nothing else is metered",
      ],
      ['kind=', "query parameter 'kind' must not be empty"],
      ['tenant=', "query parameter 'tenant' must not be empty"],
      ['template=', "query parameter 'template' must not be empty"],
      ['resource=', "query parameter 'resource' must not be empty"],
      ['tennant=acme', "unknown query parameter 'tennant'; this route takes from, to, period, by, tenant,"],
      ['limit=10', "unknown query parameter 'limit'"],
    ];
    for (const [query, detail] of wrong) {
      const reply = await admin('GET', `${USAGE}?${query}`);
      expect(reply.status, query).to.equal(400);
      expect((reply.json as { detail?: unknown }).detail, query).to.contain(detail);
    }
  });

  it('is of what was stored when it was asked for, without a word of the caller', async () => {
    for (let n = 0; n < 20; n += 1) {
      const id = `fresh-${n}`;
      const [from, until] = ['2026-11-01T00:00:00.000Z', '2026-11-01T00:00:01.000Z'];
      await tell(id, history(id, { tenant: 'acme' }, from, until));
      const reply = await admin('GET', `${USAGE}?${NOVEMBER}&by=&resource=${id}`);
      expect((reply.json as unknown as { items: unknown[] }).items, id).to.have.length(1);
    }
  });

  it('marks as text what any spreadsheet takes for a formula', async () => {
    for (const [n, [name, shown]] of [
      ['=1', "'=1"],
      ['+1', "'+1"],
      ['-1', "'-1"],
      ['@x', "'@x"],
      ['\uff1d1', "'\uff1d1"],
      ['\n=1', '"\'\n=1"'],
      ['a=1', 'a=1'],
      ['"q", r', '"""q"", r"'],
    ].entries()) {
      const id = `formula-${n}`;
      const nodeSets = { [name as string]: { hostType: { id: 'h', name: 'h' }, size: 1 } };
      const [from, until] = ['2026-11-01T00:00:00.000Z', '2026-11-01T00:00:01.000Z'];
      await tell(id, history(id, { nodeSets }, from, until));
      const csv = await admin('GET', `${USAGE}?${NOVEMBER}&by=node_set&resource=${id}&format=csv`);
      expect(csv.text).to.contain(`,${shown},0,1,0,0\r\n`);
    }
  });

  describe('read by a tenant', () => {
    let alice: Caller;
    const itemsFor = async (caller: Caller, query: string): Promise<readonly Record<string, unknown>[]> => {
      const reply = await caller('GET', `${USAGE}?${query}`);
      expect(reply.status, reply.text).to.equal(200);
      return (reply.json as unknown as { items: Record<string, unknown>[] }).items;
    };

    before(async () => {
      for (const name of ['acme', 'other', 'empty'])
        await admin('POST', `${PRIVATE}/tenants`, { metadata: { name } });
      alice = callerOf(service, await service.token({ user: 'alice', tenants: ['acme'] }));
    });

    it('is of that tenant alone, also as CSV', async () => {
      const shown = await itemsFor(alice, NOVEMBER);
      expect(shown).to.deep.equal(await rows(`${NOVEMBER}&tenant=acme`));
      expect(await itemsFor(alice, `${NOVEMBER}&tenant=acme`)).to.deep.equal(shown);
      expect(await itemsFor(alice, `${NOVEMBER}&by=resource&resource=c3`), 'of another tenant').to.deep.equal(
        [],
      );
      const csv = await alice('GET', `${USAGE}?${NOVEMBER}&by=tenant&format=csv`);
      expect(csv.text).to.contain('acme').and.not.to.contain('other');
      const bob = callerOf(service, await service.token({ user: 'bob', tenants: ['empty'] }));
      expect(await itemsFor(bob, NOVEMBER)).to.deep.equal([]);
    });

    it('tells nothing of a tenant that is not theirs, be it there or not', async () => {
      const [foreign, absent] = await Promise.all(
        ['other', 'nobody'].map((tenant) => alice('GET', `${USAGE}?${NOVEMBER}&tenant=${tenant}`)),
      );
      expect(foreign?.status).to.equal(400);
      const plain = (text: string, tenant: string): string =>
        text.replaceAll(tenant, '-').replace(/"(request_id|instance)":"[^"]*"/g, '');
      expect(plain(foreign?.text ?? '', 'other')).to.equal(plain(absent?.text ?? '', 'nobody'));
    });

    it('of two tenants is of the first, or of the one that is asked for', async () => {
      const both = callerOf(service, await service.token({ user: 'carol', tenants: ['other', 'acme'] }));
      const tenantsOf = async (query: string) =>
        new Set((await itemsFor(both, query)).map((row) => row['tenant']));
      expect([...(await tenantsOf(NOVEMBER))]).to.deep.equal(['other']);
      expect([...(await tenantsOf(`${NOVEMBER}&tenant=acme`))]).to.deep.equal(['acme']);
    });

    it('is a read of what is theirs, and no look at the history', async () => {
      await itemsFor(alice, NOVEMBER);
      const before = (await service.store.lastPosition()) ?? '';
      await itemsFor(alice, NOVEMBER);
      expect(await service.store.lastPosition()).to.equal(before);
    });

    it('needs a token of a tenant; all else of this surface stays with admins', async () => {
      expect((await callerOf(service)('GET', USAGE)).status).to.equal(401);
      const nobody = callerOf(service, await service.token({ user: 'dave' }));
      expect((await nobody('GET', USAGE)).status).to.equal(403);
      const driver = { user: 'csi', tenants: ['acme'], roles: ['osac-csi-driver'] };
      const seesNoTenant = callerOf(service, await service.token(driver));
      expect((await seesNoTenant('GET', USAGE)).status).to.equal(403);
      expect((await alice('GET', '/api/ledger/v1/orders')).status).to.equal(403);
    });
  });
});

describe('usage that cannot be told', () => {
  const answerOf = async (
    usage: object,
    parked: number,
    query = '',
    reached = true,
  ): Promise<readonly [number, unknown]> => {
    const status = { name: 'usage', parkedStreams: Array.from({ length: parked }, () => ({})) };
    const service = await startTestService({
      ledger: {
        readModels: { usage, status: () => [status], waitFor: () => Promise.resolve(reached) } as never,
      },
    });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'acme' } });
      const reply = await admin('GET', `${USAGE}${query}`);
      return [reply.status, reply.json['code']];
    } finally {
      await service.close();
    }
  };
  const refusing = (reason: UsageRefused['reason']) => ({
    sum: () => Promise.reject(new UsageRefused(reason)),
  });

  it('is refused, and not half told', async () => {
    expect(await answerOf(refusing('busy'), 0)).to.deep.equal([503, 'USAGE_BUSY']);
    expect(await answerOf(refusing('too-long'), 0)).to.deep.equal([503, 'USAGE_TOO_LONG']);
    expect((await answerOf(refusing('too-many-rows'), 0))[0]).to.equal(400);
    const empty = { sum: async () => [] };
    expect(await answerOf(empty, 0, '', false)).to.deep.equal([503, 'POSITION_NOT_REACHED']);
    expect(await answerOf(empty, 2)).to.deep.equal([503, 'USAGE_INCOMPLETE']);
    expect((await answerOf(empty, 2, '?incomplete=true'))[0]).to.equal(200);
  });
});
