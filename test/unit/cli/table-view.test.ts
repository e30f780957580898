import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { painter } from '../../../src/cli/commands/resource-context.ts';
import { ageOf, cellOf, withoutPrefix } from '../../../src/cli/resources/cells.ts';
import type { Column } from '../../../src/cli/resources/columns.ts';
import { columnsFor, tableView, type TableOptions } from '../../../src/cli/resources/table-view.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { check } from '../../support/property.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const plain: TableOptions = { wide: false, now: NOW, tenants: false, header: true, paint: (state) => state };

const cluster = (name: string, more: object = {}, metadata: object = {}): JsonObject => ({
  id: `id-${name}`,
  metadata: { name, tenant: 'acme', creation_timestamp: '2026-11-21T11:58:00Z', version: 3, ...metadata },
  spec: { template: { id: 't1', name: 'small' }, version: { id: 'v1' }, node_sets: { workers: { size: 3 } } },
  ...more,
});

describe('tables of objects', () => {
  it('show the columns of the kind, and a dash for what is not there', () => {
    const ready = {
      status: { state: 'CLUSTER_STATE_READY', api_url: 'https://a', node_sets: { workers: { size: 2 } } },
    };
    expect(tableView('cluster', [cluster('web', ready), cluster('b')], plain).split('\n')).to.deep.equal([
      'ID      NAME  TEMPLATE  VERSION  STATE  NODES  API URL    AGE',
      'id-web  web   small     v1       READY  2/3    https://a  2m',
      'id-b    b     small     v1       -      3      -          2m',
    ]);
  });

  it('name the tenant when there are several or it was asked for, the project when one is in one', () => {
    const titles = (objects: JsonObject[], tenants = false): string =>
      columnsFor('cluster', objects, { ...plain, tenants })
        .map(({ title }) => title)
        .slice(0, 3)
        .join(' ');
    expect(titles([cluster('a'), cluster('b')])).to.equal('id name template');
    expect(titles([cluster('a'), cluster('b', {}, { tenant: 'other' })])).to.equal('tenant id name');
    expect(titles([cluster('a')], true)).to.equal('tenant id name');
    expect(titles([cluster('a', {}, { project: 'p' })])).to.equal('project id name');
  });

  it('a tenant is not named twice', () => {
    const tenants = ['a', 'b'].map((name) => ({ id: name, metadata: { name, tenant: name } }));
    expect(tableView('tenant', tenants, plain).split('\n')[0]).to.equal('ID  NAME  DOMAINS  AGE');
  });

  it('say that something is being deleted only when something is', () => {
    const going = cluster('a', {}, { deletion_timestamp: '2026-11-21T11:59:30Z' });
    expect(tableView('cluster', [going], plain))
      .to.include('DELETING')
      .and.include('30s');
    expect(tableView('cluster', [cluster('a')], plain)).not.to.include('DELETING');
  });

  it('wide adds columns, without header leaves the first line out', () => {
    const wide = tableView('cluster', [cluster('a', {}, { labels: { env: 'prod', x: '' } })], {
      ...plain,
      wide: true,
    });
    expect(wide).to.include('CONSOLE URL').and.include('env=prod,x=');
    expect(tableView('cluster', [cluster('a')], { ...plain, header: false })).to.match(/^id-a/);
  });

  it('a kind without columns of its own still shows what all have', () => {
    const text = tableView(
      'somethingNew',
      [{ id: '1', metadata: { name: 'n' }, status: { state: 'THING_STATE_READY' } }],
      plain,
    );
    expect(text.split('\n')[0]).to.equal('ID  NAME  STATE  AGE');
  });

  it('what lies in a network says in which; pools say their zone; rules are counted', () => {
    const spec = { virtual_network: { name: 'shop' }, external_ip: { name: 'out' }, ingress: [{}, {}] };
    const object = { id: '1', metadata: { name: 'n' }, spec, status: { state: 'X_STATE_READY' } };
    expect(tableView('natGateway', [object], plain)).to.match(
      /VIRTUAL NETWORK +EXTERNAL IP +STATE.*\n.*shop +out +READY/,
    );
    expect(tableView('securityGroup', [object], plain)).to.match(/IN +OUT +STATE.*\n.*shop +2 +0 +READY/);
    const annotations = { 'fulfillment-ledger/zone': 'west' };
    const pool = { id: 'p', metadata: { name: 'p', annotations }, status: { available: '3' } };
    expect(tableView('externalIpPool', [pool], plain)).to.match(/ZONE +AVAILABLE.*\n.*west +3/);
  });

  it('a watch that begins with nothing has the columns of the kind', () => {
    const titles = (kind: string): readonly string[] =>
      columnsFor(kind, [], { ...plain, live: true }).map(({ title }) => title);
    expect(titles('somethingNew')).to.deep.equal(['id', 'name', 'state', 'age']);
    expect(titles('externalIpPool')).to.include.members(['zone', 'cidrs', 'state', 'total']);
    expect(titles('computeInstance')).to.include('state');
  });

  it('machines show the addresses that their documents tell', () => {
    const vm = {
      state: 'COMPUTE_INSTANCE_STATE_RUNNING',
      internal_ip_address: '10.0.0.4',
      external_ip_address: '192.0.2.7',
    };
    const shown = (kind: string, status: JsonObject): string =>
      tableView(kind, [{ id: '1', metadata: { name: 'n' }, status }], plain);
    expect(shown('computeInstance', vm)).to.match(
      /STATE +INTERNAL ADDRESS +EXTERNAL IP +AGE\n.*RUNNING +10\.0\.0\.4 +192\.0\.2\.7/,
    );
    const network_attachment_statuses = ['10.0.0.4', '10.1.0.4'].map((ip_address) => ({ ip_address }));
    expect(
      shown('bareMetalInstance', { state: 'BARE_METAL_INSTANCE_STATE_RUNNING', network_attachment_statuses }),
    ).to.match(/STATE +INTERNAL ADDRESS +AGE\n.*RUNNING +10\.0\.0\.4, 10\.1\.0\.4 /);
  });

  it('a title cannot steer the terminal or break its row', () => {
    const shown = tableView('hostType', [{ id: 'h', title: 'a\u001B[2Jb\nc\u0007' }], plain);
    expect(shown.split('\n')).to.have.length(2);
    expect(shown).to.match(/^[\P{Cc}\n]*$/u);
  });

  it('widths are those of the content, colours do not count', () => {
    const red = { ...plain, paint: (state: string) => `\u001B[31m${state}\u001B[39m` };
    const objects = [cluster('a', { status: { state: 'CLUSTER_STATE_FAILED' } }), cluster('b')];
    expect(stripVTControlCharacters(tableView('cluster', objects, red))).to.equal(
      tableView('cluster', objects, plain),
    );
  });
});

describe('colours of states', () => {
  const silent = { out: () => undefined, err: () => undefined };

  it('are there on a terminal only, and change no letter', () => {
    expect(painter(silent)('READY')).to.equal('READY');
    const painted = ['READY', 'FAILED', 'PROGRESSING'].map(painter({ ...silent, colour: true }));
    expect(painted.map((text) => stripVTControlCharacters(text))).to.deep.equal([
      'READY',
      'FAILED',
      'PROGRESSING',
    ]);
    expect(new Set(painted.map((text) => text.slice(0, 5))).size, 'each kind of state has its own').to.equal(
      3,
    );
  });
});

describe('cells', () => {
  const cell = (document: JsonObject, column: Omit<Column, 'title'>): string =>
    cellOf(document, { title: 'x', ...column }, NOW);

  it('paths go into lists and maps, and only into what the document itself has', () => {
    expect(cell({ a: [{ b: 1 }, { b: 2 }] }, { path: 'a.*.b' })).to.equal('1, 2');
    expect(cell({ a: { x: { size: 2 }, y: {} } }, { path: 'a', as: 'sizes' })).to.equal('x=2,y=0');
    expect(
      cell({ users: [{ id: '1', name: 'eve' }, { id: '2' }] }, { path: 'users.*', as: 'reference' }),
    ).to.equal('eve, 2');
    for (const path of ['constructor', '__proto__', 'a.constructor.name'])
      expect(cell({ a: {} }, { path })).to.equal('');
    expect(cell({ on: true }, { path: 'on', as: 'yes-no' })).to.equal('yes');
    expect(cell({ data: { key: 'c2VjcmV0' } }, { path: 'data', as: 'keys' }), 'never the value').to.equal(
      'key',
    );
  });

  it('enum values lose their prefix', () => {
    for (const [name, short] of [
      ['CLUSTER_STATE_READY', 'READY'],
      ['ROLE_STATE_READY', 'READY'],
      ['ROLE_BINDING_STATE_PENDING', 'PENDING'],
      ['CLUSTER_CONDITION_TYPE_PROGRESSING', 'PROGRESSING'],
      ['GUEST_OS_FAMILY_LINUX', 'LINUX'],
      ['ARCHITECTURE_X86_64', 'X86_64'],
      ['SOMETHING', 'SOMETHING'],
    ] as const)
      expect(withoutPrefix(name)).to.equal(short);
  });

  it('ages are short, and of the right order', () => {
    const ago = (seconds: number): string => ageOf(new Date(NOW - seconds * 1000).toISOString(), NOW);
    expect([0, 119, 120, 7199, 7200, 172_799, 172_800].map(ago)).to.deep.equal([
      '0s',
      '119s',
      '2m',
      '119m',
      '2h',
      '47h',
      '2d',
    ]);
    expect(ago(-3), 'a clock that is a little ahead').to.equal('0s');
    expect(ago(-60)).to.equal('-60s');
    expect(ageOf('never', NOW)).to.equal('never');
  });

  it('ages never grow shorter with time', () => {
    const seconds = (age: string): number =>
      Number.parseInt(age, 10) * { s: 1, m: 60, h: 3600, d: 86_400 }[age.at(-1) as 's'];
    const at = (age: number): number => seconds(ageOf(new Date(NOW - age * 1000).toISOString(), NOW));
    check(
      fc.property(fc.nat(10_000_000), fc.nat(10_000), (base, more) => {
        expect(at(base + more)).to.be.at.least(at(base));
      }),
    );
  });
});
