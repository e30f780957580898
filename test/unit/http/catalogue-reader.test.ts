import { expect } from 'chai';
import type { CommandRunner } from '../../../src/app/commands/command.ts';
import { lastPart } from '../../../src/domain/networks/default-networking.ts';
import { createCatalogueReader } from '../../../src/http/osac/catalogue.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../../../src/projections/read-models.ts';

const row = (id: string, revision: number): ResourceRow => ({
  kind: 'hostType',
  id,
  tenant: 'shared',
  project: '',
  name: `name of ${id}`,
  revision,
  version: revision,
  position: '0000000000000001',
  deleting: false,
  publicJson: '{}',
  privateJson: JSON.stringify({ id, revision }),
});

describe('catalogue reader', () => {
  const everyone: Visibility = { all: true };
  const rows = new Map<string, ResourceRow>();
  let generation = 0;
  let asked = 0;
  // Only what a look by id needs.
  const resources = {
    generation: () => generation,
    get: (_kind: string, id: string, visibility: Visibility) => {
      asked += 1;
      return 'all' in visibility ? rows.get(id) : undefined;
    },
    findByName: () => [],
  } as unknown as ResourceReader;
  const catalogue = createCatalogueReader(resources, {} as CommandRunner, () => () => undefined);
  const revisionOf = (id: string, visibility: Visibility = everyone): unknown =>
    catalogue.of('acme', visibility).hostType({ id })?.document['revision'];

  beforeEach(() => {
    rows.clear();
    asked = 0;
    generation += 1;
  });

  it('asks the read model again only after objects of the kind may have changed', () => {
    rows.set('small', row('small', 0));
    expect([revisionOf('small'), revisionOf('small')]).to.deep.equal([0, 0]);
    expect(asked).to.equal(1);
    rows.set('small', row('small', 1));
    generation += 1;
    expect([revisionOf('small'), asked]).to.deep.equal([1, 2]);
    rows.delete('small');
    generation += 1;
    expect(revisionOf('small')).to.equal(undefined);
  });

  it('does not remember what is not there', () => {
    expect(revisionOf('large')).to.equal(undefined);
    rows.set('large', row('large', 0));
    expect(revisionOf('large')).to.equal(0);
  });

  it('never answers one caller with what another may see', () => {
    rows.set('small', row('small', 0));
    expect(revisionOf('small')).to.equal(0);
    expect(revisionOf('small', { tenants: ['acme'] })).to.equal(undefined);
  });

  it("offers pools of the order's tenant and shared ones, the one with most free addresses first", () => {
    const pool = (id: string, tenant: string, available: string, project = ''): ResourceRow => ({
      ...row(id, 0),
      kind: 'externalIpPool',
      tenant,
      project,
      privateJson: JSON.stringify({
        status: { state: 'EXTERNAL_IP_POOL_STATE_READY', hub: 'h', available },
      }),
    });
    const pools = [
      pool('foreign', 'other', '9'),
      pool('shared', 'shared', '4'),
      pool('own', 'acme', '6'),
      pool('apart', 'acme', '8', 'p2'),
    ];
    const reader = { ...resources, pages: () => [pools] };
    const offered = createCatalogueReader(reader, {} as CommandRunner, () => () => undefined);
    const offeredTo = (visibility: Visibility): readonly string[] =>
      offered
        .of('acme', visibility)
        .addressPools()
        .map(({ pool: { id } }) => id);
    expect(offeredTo(everyone)).to.deep.equal(['apart', 'own', 'shared']);
    const limited = { tenants: ['acme', 'shared'], within: { acme: ['', 'p1'] } };
    expect(offeredTo(limited)).to.deep.equal(['own', 'shared']);
  });

  it('takes for default networking only what the service made with the tenant, whatever others are called', () => {
    const createdAt = '2026-11-21T12:00:00.000Z';
    const made = lastPart('acme', createdAt).id.replace('securityGroup', '');
    const former = lastPart('acme', '2025-01-01T00:00:00.000Z').id.replace('securityGroup', '');
    const privateJson = JSON.stringify({
      metadata: { creation_timestamp: createdAt, labels: { 'osac.openshift.io/default': 'true' } },
    });
    const named: { [name: string]: readonly ResourceRow[] } = {
      'subnet default-ipv4': [],
      'securityGroup default': [],
    };
    const of = (kind: string, name: string, ...ids: readonly string[]): void => {
      named[`${kind} ${name}`] = ids.map((id) => ({ ...row(id, 0), kind, tenant: 'acme', privateJson }));
    };
    const reader = {
      ...resources,
      get: (kind: string, id: string) =>
        kind === 'tenant' && id === 'acme' ? { ...row(id, 0), privateJson } : undefined,
      findByName: (kind: string, name: string) => named[`${kind} ${name}`] ?? [],
    };
    const catalogue = createCatalogueReader(reader, {} as CommandRunner, () => () => undefined);
    const found = () => {
      const { subnet, securityGroup } = catalogue.of('acme', everyone).defaultNetwork() ?? {};
      return [subnet?.id, securityGroup?.id];
    };
    of('subnet', 'default-ipv4', 'default-evil', `${former}subnet-ipv4`);
    of('securityGroup', 'default', 'default-evil');
    expect(found()).to.deep.equal([undefined, undefined]);
    of('subnet', 'default-ipv6', 'default-evil', `${made}subnet-ipv6`);
    of('securityGroup', 'default', 'default-evil', `${made}securityGroup`);
    expect(found()).to.deep.equal([`${made}subnet-ipv6`, `${made}securityGroup`]);
  });
});
