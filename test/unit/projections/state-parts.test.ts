import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { ADDRESS_EVENTS } from '../../../src/domain/networks/address-book.ts';
import { actingExternalIpPool } from '../../../src/domain/networks/external-ip-pool.workflow.ts';
import { PLAN_EVENTS } from '../../../src/domain/networks/subnet-plan.ts';
import { actingVirtualNetwork } from '../../../src/domain/networks/virtual-network.workflow.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { digestOf } from '../../../src/projections/runner/digest.ts';
import { openViewFile } from '../../../src/projections/runner/view-file.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { usageView } from '../../../src/projections/usage/usage-view.ts';
import type { View } from '../../../src/projections/view.ts';
import { createTestLog, type TestLog } from '../../support/projections/log.ts';

/** More than buckets: most of them have several entries. */
const CHILDREN = 1_000;
const at = '2026-01-01T00:00:00Z';
const codec = createEventCodec(eventTypes);
const metadata = { name: 'n', tenant: 't1', project: '', creation_timestamp: at };

const LENDERS = [
  {
    acting: actingVirtualNetwork,
    events: Object.keys(PLAN_EVENTS),
    stream: 'virtualNetwork-n',
    ordered: { type: 'VirtualNetworkOrdered', spec: { ipv4_cidr: '10.0.0.0/8' } },
    lent: (n: number) => ({
      type: 'SubnetRangesClaimed',
      data: { at, ...held('subnet', n), ranges: [`10.${(n * 7) % 256}.${n >> 8}.0/24`] },
    }),
    released: (n: number) => ({ type: 'SubnetRangesReleased', data: { at, ...held('subnet', n) } }),
  },
  {
    acting: actingExternalIpPool,
    events: Object.keys(ADDRESS_EVENTS),
    stream: 'externalIpPool-n',
    ordered: { type: 'ExternalIPPoolOrdered', spec: { cidrs: ['10.0.0.0/8'], ip_family: 'IP_FAMILY_IPV4' } },
    lent: (n: number) => ({
      type: 'AddressAssigned',
      data: { at, ...held('externalIp', n), address: `10.0.${n >> 8}.${n & 255}` },
    }),
    released: (n: number) => ({
      type: 'AddressReleased',
      data: { at, ...held('externalIp', n), address: `10.0.${n >> 8}.${n & 255}` },
    }),
  },
] as const;
const held = (kind: string, n: number) => ({ holder: { kind, id: `${kind}-${n}` }, generation: n });

/** What is stored of an object that lends parts of itself to thousands of others. */
describe('the state of what lends', () => {
  for (const { acting, events, stream, ordered, lent, released } of LENDERS) {
    describe(acting.words, () => {
      let log: TestLog;
      const resources = resourcesView({ kinds: [acting], codec });
      const opened = (db: DatabaseSync, view: View) => {
        const apply = view.open(db);
        return (recorded: readonly RecordedEvent[]): void => {
          for (const event of recorded) apply(event);
          apply.flush?.();
        };
      };
      beforeEach(async () => {
        log = createTestLog();
        const { type, spec } = ordered;
        const document = { id: 'n', metadata, spec };
        await log.append(stream, { type, data: { at, tenant: 't1', project: '', name: 'n', document } });
        for (let n = 1; n <= CHILDREN; n += 1) await log.append(stream, lent(n));
      });

      it('one more child rewrites what belongs to it, and not what the others hold', async () => {
        const db = openViewFile(':memory:', resources, 'store');
        const take = opened(db, resources);
        take(await log.all());
        const bytes = (): Map<string, string> =>
          new Map(
            db
              .prepare(
                'SELECT stream AS part, state AS text FROM states UNION SELECT part, entries FROM state_parts',
              )
              .all()
              .map((row) => [String(row['part']), String(row['text'])]),
          );
        const before = bytes();
        await log.append(stream, lent(CHILDREN + 1));
        take((await log.all()).slice(-1));
        const written = [...bytes()].filter(([part, text]) => before.get(part) !== text);
        const size = written.reduce((sum, [, text]) => sum + text.length, 0);
        const whole = [...before.values()].reduce((sum, text) => sum + text.length, 0);
        expect(size).to.be.lessThan(whole / 20);
        db.close();
      });

      it('is the same after a restart as without one', async () => {
        const [db, other] = [1, 2].map(() => openViewFile(':memory:', resources, 'store'));
        if (db === undefined || other === undefined) throw new Error('two files');
        opened(db, resources)(await log.all());
        for (const n of [1, 500, CHILDREN]) await log.append(stream, released(n));
        await log.append(stream, lent(CHILDREN + 1));
        const all = await log.all();
        opened(db, resources)(all.slice(-4));
        opened(other, resources)(all);
        expect(digestOf(db, resources)).to.deep.equal(digestOf(other, resources));
        for (const each of [db, other]) each.close();
      });

      it('its workflow has no part in what it lends', () => {
        for (const type of events) expect(acting.workflow.subjectTypes).to.not.include(type);
      });
    });
  }

  it('a network is neither another one nor billed otherwise for what lies in it', async () => {
    const log = createTestLog();
    const [{ stream, ordered, lent }] = LENDERS;
    const document = { id: 'n', metadata, spec: ordered.spec };
    await log.append(stream, {
      type: ordered.type,
      data: { at, tenant: 't1', project: '', name: 'n', document },
    });
    const ports = { kinds: [actingVirtualNetwork], codec };
    const [resources, usage] = [
      resourcesView(ports),
      usageView(ports as unknown as Parameters<typeof usageView>[0]),
    ];
    const files = [resources, usage].map((view) => {
      const db = openViewFile(':memory:', view, 'store');
      return { db, apply: view.open(db) };
    });
    const takeAll = async () => {
      const all = await log.all();
      for (const { apply } of files) {
        for (const event of all) apply(event);
        apply.flush?.();
      }
      const [documents, meters] = files.map(({ db }) => db);
      return {
        changes: documents?.prepare('SELECT count(*) AS n FROM changes').get()?.['n'],
        version: documents?.prepare('SELECT version FROM resources').get()?.['version'],
        meter: meters?.prepare('SELECT length(meter) AS n FROM meters').get()?.['n'],
      };
    };
    const before = await takeAll();
    for (let n = 1; n <= 10; n += 1) await log.append(stream, lent(n));
    expect(await takeAll()).to.deep.equal(before);
    for (const { db } of files) db.close();
  });
});
