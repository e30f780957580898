import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

/** What a role's `meta/osac.yaml` says, as far as the publisher sends it on (OSAC's operator). */
type Role = {
  readonly role: string;
  readonly title: string;
  readonly nodes: readonly { readonly resourceClass: string; readonly numberOfNodes: number }[];
  readonly parameters: readonly {
    readonly name: string;
    readonly type: string;
    readonly fallback: unknown;
  }[];
};

const COLLECTION = 'osac.templates';
const TYPES: Readonly<Record<string, string>> = {
  string: 'StringValue',
  boolean: 'BoolValue',
  int: 'Int64Value',
  float: 'DoubleValue',
};

const ROLES: readonly Role[] = [
  {
    role: 'ocp_small',
    title: 'OpenShift, small',
    nodes: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
    parameters: [
      { name: 'flavour', type: 'string', fallback: 'plain' },
      { name: 'replicas', type: 'int', fallback: '3' },
      { name: 'fips', type: 'boolean', fallback: true },
      { name: 'ratio', type: 'float', fallback: 1.5 },
    ],
  },
  {
    role: 'ocp_ci_small',
    title: 'OpenShift, CI',
    nodes: [{ resourceClass: 'ci-worker', numberOfNodes: 1 }],
    parameters: [],
  },
];

const templateOf = ({ role, title, nodes, parameters }: Role): object => ({
  id: `${COLLECTION}.${role}`,
  metadata: { name: role.replaceAll('_', '-') },
  title,
  description: `Role ${role}`,
  parameters: parameters.map(({ name, type, fallback }) => ({
    name,
    title: name,
    type: `type.googleapis.com/google.protobuf.${TYPES[type]}`,
    default: { '@type': `type.googleapis.com/google.protobuf.${TYPES[type]}`, value: fallback },
  })),
  node_sets: Object.fromEntries(
    nodes.map(({ resourceClass, numberOfNodes }) => [
      resourceClass,
      { host_type: { id: resourceClass }, size: numberOfNodes },
    ]),
  ),
  spec_defaults: { ssh_public_key: 'ssh-ed25519 AAAA', pull_secret: '{"auths":{}}' },
});

/** The publisher's sequence of one run: list, then PATCH what is there and POST what is not; nothing is deleted. */
const publish = async (caller: Caller, roles: readonly Role[]): Promise<readonly string[]> => {
  const collection = `${PRIVATE}/cluster_templates`;
  const listed = await caller('GET', collection);
  expect(listed.status, listed.text).to.equal(200);
  const known = new Set(itemsOf(listed).map((item) => textAt(item, 'id')));
  const done: string[] = [];
  for (const role of roles) {
    const template = templateOf(role);
    const id = `${COLLECTION}.${role.role}`;
    const reply: Reply = known.has(id)
      ? await caller('PATCH', `${collection}/${id}`, template)
      : await caller('POST', collection, template);
    expect(reply.status, reply.text).to.equal(200);
    done.push(`${known.has(id) ? 'PATCH' : 'POST'} ${id} ${reply.headers.get('etag')}`);
  }
  return done;
};

/** What is published of the kinds of this service. */
describe('the template publisher', () => {
  let service: TestService;
  let publisher: Caller;

  before(async () => {
    service = await startTestService();
    publisher = callerOf(service, await service.token({ user: 'publisher', admin: true }));
    for (const id of ['fc430', 'ci-worker', 'g5']) {
      const reply = await publisher('POST', `${PRIVATE}/host_types`, { id, title: id });
      expect(reply.status, reply.text).to.equal(200);
    }
    const version = { spec: { version: '4.17.0', image: 'quay.example/r:4.17', is_default: true } };
    expect((await publisher('POST', `${PRIVATE}/cluster_versions`, version)).status).to.equal(200);
    expect((await publisher('POST', `${PRIVATE}/tenants`, { metadata: { name: 't1' } })).status).to.equal(
      200,
    );
  });
  after(() => service.close());

  it('creates what is not there, and its next run half an hour later changes nothing', async () => {
    expect(await publish(publisher, ROLES)).to.deep.equal([
      'POST osac.templates.ocp_small "clusterTemplate-0"',
      'POST osac.templates.ocp_ci_small "clusterTemplate-0"',
    ]);
    const last = await service.store.lastPosition();
    const secrets = service.secrets.values.size;
    expect(await publish(publisher, ROLES)).to.deep.equal([
      'PATCH osac.templates.ocp_small "clusterTemplate-0"',
      'PATCH osac.templates.ocp_ci_small "clusterTemplate-0"',
    ]);
    expect(await service.store.lastPosition()).to.equal(last);
    expect(service.secrets.values.size).to.equal(secrets);
  });

  it('revises what a role says anew, and adds what is new', async () => {
    const [small, ci] = ROLES as readonly [Role, Role];
    const later: readonly Role[] = [
      { ...small, title: 'OpenShift, small (2)', nodes: [{ resourceClass: 'g5', numberOfNodes: 4 }] },
      ci,
      { ...ci, role: 'ocp_4_20_ai_maas', title: 'AI' },
    ];
    expect(await publish(publisher, later)).to.deep.equal([
      'PATCH osac.templates.ocp_small "clusterTemplate-1"',
      'PATCH osac.templates.ocp_ci_small "clusterTemplate-0"',
      'POST osac.templates.ocp_4_20_ai_maas "clusterTemplate-0"',
    ]);
    const read = await publisher('GET', `${PRIVATE}/cluster_templates/osac.templates.ocp_small`);
    expect(read.json['title']).to.equal('OpenShift, small (2)');
    expect(Object.keys(read.json['node_sets'] as Json)).to.deep.equal(['g5']);
    expect(read.json['spec_defaults']?.['pull_secret']).to.equal('***');
  });

  it('what it published can be ordered at once', async () => {
    const alice = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    const reply = await alice('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'from-published' },
      spec: { template: { id: 'osac.templates.ocp_ci_small' } },
    });
    expect(reply.status, reply.text).to.equal(200);
    expect(reply.json['spec']?.['node_sets']?.['ci-worker']?.['size']).to.equal(1);
  });

  it('classes that a template allows hold for its orders and for node sets that are added later', async () => {
    const limited = {
      id: 'osac.templates.limited',
      metadata: { name: 'limited' },
      node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
      allowed_resource_classes: ['fc430', 'g5'],
    };
    const published = await publisher('POST', `${PRIVATE}/cluster_templates`, limited);
    expect(published.json['allowed_resource_classes'], published.text).to.deep.equal(['fc430', 'g5']);
    const alice = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    const shown = await alice('GET', `${PUBLIC}/cluster_templates/osac.templates.limited`);
    expect(shown.json['allowed_resource_classes']).to.deep.equal(['fc430', 'g5']);
    const order = { metadata: { name: 'limited' }, spec: { template: { id: 'osac.templates.limited' } } };
    const ordered = await alice('POST', `${PUBLIC}/clusters`, order);
    expect(ordered.status, ordered.text).to.equal(200);
    const path = `${PUBLIC}/clusters/${textAt(ordered.json, 'id')}`;
    const sets = (hostType: string) => ({
      spec: {
        node_sets: {
          workers: { host_type: { id: 'fc430' }, size: 1 },
          more: { host_type: { id: hostType }, size: 1 },
        },
      },
    });
    const refused = await alice('PATCH', path, sets('ci-worker'));
    expect(refused.status).to.equal(400);
    expect(textAt(refused.json, 'message')).to.match(
      /^host type 'ci-worker' of node set 'more' is not allowed by template 'osac\.templates\.limited'; allowed resource classes are: fc430, g5$/,
    );
    expect((await alice('PATCH', path, sets('g5'))).status).to.equal(200);
    const wrong = { ...limited, id: 'osac.templates.wrong', metadata: { name: 'wrong' } };
    const inconsistent = { ...wrong, allowed_resource_classes: ['g5'] };
    expect((await publisher('POST', `${PRIVATE}/cluster_templates`, inconsistent)).status).to.equal(200);
    const unmet = { metadata: { name: 'unmet' }, spec: { template: { id: 'osac.templates.wrong' } } };
    expect(textAt((await alice('POST', `${PUBLIC}/clusters`, unmet)).json, 'message')).to.contain(
      'not allowed',
    );
  });
});
