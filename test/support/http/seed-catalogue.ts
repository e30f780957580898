import { PRIVATE, type Caller } from './caller.ts';

/** Two tenants and what a cluster order needs. */
export const seedCatalogue = async (admin: Caller): Promise<void> => {
  const post = async (path: string, body: object): Promise<void> => {
    const reply = await admin('POST', `${PRIVATE}/${path}`, body);
    if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`);
  };
  await post('tenants', { metadata: { name: 't1' }, spec: { domains: ['t1.example'] } });
  await post('tenants', { metadata: { name: 't2' } });
  await post('host_types', {
    id: 'fc430',
    title: 'FC430',
    interfaces: [
      { name: 'nic1', role: 'fabric' },
      { name: 'bmc', role: 'management' },
    ],
  });
  await post('host_types', { id: 'gpu', title: 'GPU' });
  await post('cluster_versions', {
    spec: { version: '4.17.0', image: 'quay.example/r:4.17', is_default: true },
  });
  await post('cluster_versions', { spec: { version: '4.18.1', image: 'quay.example/r:4.18' } });
  await post('cluster_templates', {
    id: 'osac.templates.small',
    title: 'Small',
    node_sets: { workers: { host_type: { id: 'fc430' }, size: 3 } },
    parameters: [
      {
        name: 'flavour',
        type: 'type.googleapis.com/google.protobuf.StringValue',
        default: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'plain' },
      },
    ],
  });
  await post('cluster_templates', {
    id: 'osac.templates.big',
    title: 'Big',
    node_sets: {
      control: { host_type: { id: 'fc430' }, size: 1 },
      gpu: { host_type: { id: 'gpu' }, size: 2 },
    },
  });
  await post('hubs', { id: 'sim-1', spec: { namespace: 'osac', kubeconfig: 'S1VCRUNPTkZJRw==' } });
};
