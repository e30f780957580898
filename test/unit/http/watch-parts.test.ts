import { expect } from 'chai';
import fc from 'fast-check';
import { kinds } from '../../../src/domain/kinds.ts';
import { RIGHTS, type Role } from '../../../src/domain/tenancy/rights.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { audienceOf } from '../../../src/http/osac/watch/audience.ts';
import { createRenderer } from '../../../src/http/osac/watch/rendered-change.ts';
import type { ChangeType } from '../../../src/projections/resources/changes.ts';
import { createWatchIds } from '../../../src/http/osac/watch/watch-id.ts';
import { createPositions } from '../../../src/http/positions.ts';
import { check } from '../../support/property.ts';

const STORE = '01a1fdc2-451a-7c65-b5a4-0b389e5d8c56';

describe('watch ids', () => {
  const idsOf = (digits: number) =>
    createWatchIds(createPositions({ storeId: STORE, waitFor: async () => true, digits }));

  it('property: what was written is read again, in stores of either width', () => {
    for (const digits of [16, 40]) {
      const ids = idsOf(digits);
      check(
        fc.property(
          fc.bigInt({ min: 0n, max: 10n ** BigInt(digits) - 1n }),
          fc.nat({ max: 999_999_999 }),
          (position, n) => {
            const key = { position: String(position).padStart(digits, '0'), n };
            expect(ids.parse(ids.format(key), 'from')).to.deep.equal(key);
          },
        ),
      );
    }
  });

  it('has one spelling', () => {
    const ids = idsOf(16);
    for (const n of ['00', '09', '01', '+1', '1000000000'])
      expect(() => ids.parse(`${STORE}.0000000000000007.${n}`, 'from'), n).to.throw(ApiError, "'from'");
    expect(ids.parse(`${STORE}.0000000000000007.0`, 'from').n).to.equal(0);
  });

  it('a position alone stands behind its changes, and can be written as an id again', () => {
    const ids = idsOf(16);
    const key = ids.parse(`${STORE}.0000000000000007`, 'from');
    expect(key.position).to.equal('0000000000000007');
    expect(key.n).to.be.greaterThan(1000);
    expect(ids.parse(ids.format(key), 'from')).to.deep.equal(key);
  });

  it('property: anything else is refused with the name of the parameter', () => {
    const ids = idsOf(16);
    check(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `${STORE}.${text}`),
        ),
        (text) => {
          fc.pre(!/\.\d{16}(\.\d{1,9})?$/.test(text));
          expect(() => ids.parse(text, 'Last-Event-ID')).to.throw("'Last-Event-ID'");
        },
      ),
    );
  });
});

describe('a change', () => {
  const audience = (surface: 'public' | 'private') => ({
    key: surface,
    surface,
    tenants: undefined,
    kinds: new Set(['cluster']),
  });
  const document = (metadata: object, status: object, spec: object = { size: 1 }): string =>
    JSON.stringify({ id: 'c1', metadata, spec, status });
  /** Whom the change from one document to the other is told. */
  const toldTo = (before: string | undefined, after: string, type: ChangeType = 'updated') => {
    const render = createRenderer({
      kinds: kinds.filter(({ kind }) => kind === 'cluster'),
      formatId: ({ position }) => position,
      documentBefore: () => before,
      nowMs: () => 0,
    });
    const change = { position: '7', n: 0, kind: 'cluster', id: 'c1', tenant: 't1', type, document: after };
    const { concerns } = render(change);
    return (['public', 'private'] as const).filter((surface) => concerns(audience(surface), undefined));
  };
  const first = document({ version: 1 }, { state: 'CLUSTER_STATE_PROGRESSING' });

  it('of what tenants see is told on both surfaces', () =>
    expect(toldTo(first, document({ version: 2 }, { state: 'CLUSTER_STATE_READY' }))).to.deep.equal([
      'public',
      'private',
    ]));

  it('of what only the provider sees is told on the private one', () => {
    const placed = document({ version: 2 }, { state: 'CLUSTER_STATE_PROGRESSING', hub: 'h1' });
    expect(toldTo(first, placed)).to.deep.equal(['private']);
    const held = document({ version: 2, finalizers: ['x'] }, { state: 'CLUSTER_STATE_PROGRESSING' });
    expect(toldTo(first, held)).to.deep.equal(['private']);
  });

  it('that only counts on is told to nobody', () =>
    expect(toldTo(first, first.replace('"version":1', '"version":2'))).to.deep.equal([]));

  it('that creates, deletes, or follows what is no longer kept is told to all', () => {
    expect(toldTo(undefined, first, 'created')).to.deep.equal(['public', 'private']);
    expect(toldTo(first, first, 'created')).to.deep.equal(['public', 'private']);
    expect(toldTo(first, first, 'deleted')).to.deep.equal(['public', 'private']);
    expect(toldTo(undefined, first)).to.deep.equal(['public', 'private']);
  });
});

describe('audience of a watch', () => {
  const readable = (role: Exclude<Role, 'admin'>, service: string): boolean =>
    (RIGHTS[role][service] ?? []).some((method) => method === 'List' || method === 'Get');

  it('property: a public watcher sees a kind exactly when its roles may read it and its events are public', () => {
    const roles = Object.keys(RIGHTS) as Exclude<Role, 'admin'>[];
    check(
      fc.property(
        fc.subarray(roles),
        fc.uniqueArray(fc.constantFrom('t1', 't2', 'shared')),
        (some, tenants) => {
          const audience = audienceOf(
            { admin: false, roles: some, visibility: { tenants } },
            'public',
            kinds,
          );
          expect([...(audience.tenants ?? [])].toSorted()).to.deep.equal([...tenants].toSorted());
          for (const { kind, service, event } of kinds)
            expect(audience.kinds.has(kind), kind).to.equal(
              event?.public === true && some.some((role) => readable(role, service)),
            );
          expect(
            audienceOf({ admin: false, roles: some, visibility: { tenants } }, 'private', kinds).kinds.size,
          ).to.equal(0);
        },
      ),
    );
  });

  it('a plain caller sees clusters and the catalogue, neither hubs nor tenants; admins see what has events', () => {
    const client = audienceOf(
      { admin: false, roles: ['client'], visibility: { tenants: ['t1'] } },
      'public',
      kinds,
    );
    expect([...client.kinds]).to.include.members([
      'cluster',
      'clusterTemplate',
      'clusterVersion',
      'hostType',
    ]);
    for (const hidden of ['hub', 'tenant', 'user', 'identityProvider'])
      expect(client.kinds.has(hidden), hidden).to.equal(false);
    const admin = { admin: true, roles: ['admin'], visibility: { all: true } } as const;
    const withEvents = kinds.filter(({ event }) => event !== undefined).map(({ kind }) => kind);
    expect([...audienceOf(admin, 'private', kinds).kinds]).to.have.members(withEvents);
    expect(audienceOf(admin, 'public', kinds).kinds.has('hub')).to.equal(false);
  });

  it('has the same key for the same callers only', () => {
    const key = (tenants: string[], roles: Role[]): string =>
      audienceOf({ admin: false, roles, visibility: { tenants } }, 'public', kinds).key;
    expect(key(['a', 'b'], ['client'])).to.equal(key(['b', 'a', 'a'], ['client']));
    expect(key(['a'], ['client'])).not.to.equal(key(['a', 'b'], ['client']));
    expect(key(['a,b'], ['client'])).not.to.equal(key(['a', 'b'], ['client']));
    expect(key(['a'], ['client'])).not.to.equal(key(['a'], ['project-viewer']));
  });
});
