export type Listed = {
  /** Arguments, as commander writes them. */
  readonly takes?: string;
  readonly hasOptions?: true;
  readonly about: string;
};

/**
 * The line of each command, so that help, version, completion and an unknown command load none of them. A spec compares it
 * with the commands themselves.
 */
export const COMMAND_LIST: { readonly [name: string]: Listed } = {
  demo: {
    hasOptions: true,
    about:
      'order, scale, crash, recover and delete clusters on a service of its own, and check what it claims',
  },
  get: {
    takes: '<kind> [name...]',
    hasOptions: true,
    about: 'list objects of a kind, or show those with these ids or names',
  },
  describe: {
    takes: '<kind> [name]',
    hasOptions: true,
    about: 'show one object: creator and time, spec, status, conditions, and the last events of an order',
  },
  create: {
    hasOptions: true,
    about: 'create the objects of a file; one that exists already is an error',
  },
  apply: {
    hasOptions: true,
    about: 'make the objects of a file be as the file says: create those that are absent, change the others',
  },
  label: {
    takes: '<kind> <arguments...>',
    hasOptions: true,
    about: 'set and remove labels: key=value sets, key- removes',
  },
  annotate: {
    takes: '<kind> <arguments...>',
    hasOptions: true,
    about: 'set and remove annotations: key=value sets, key- removes',
  },
  scale: {
    takes: '<kind> <arguments...>',
    hasOptions: true,
    about: 'set how many nodes a node set of a cluster has',
  },
  attach: {
    takes: '<ip> <target>',
    hasOptions: true,
    about: 'attach an external IP to a cluster, a compute instance or a bare-metal instance',
  },
  detach: {
    takes: '<ip>',
    hasOptions: true,
    about: 'detach an external IP from what it is attached to; the external IP stays',
  },
  start: { takes: '<machine>', hasOptions: true, about: 'start a compute instance or a bare-metal instance' },
  stop: {
    takes: '<machine>',
    hasOptions: true,
    about: 'stop a compute instance or a bare-metal instance; disks and addresses stay',
  },
  restart: {
    takes: '<machine>',
    hasOptions: true,
    about: 'restart a machine that runs; a compute instance now or at a time',
  },
  console: { about: 'the serial console or the screen of a compute instance that runs' },
  delete: { takes: '<kind> [name...]', hasOptions: true, about: 'delete objects by id or name' },
  kubeconfig: { takes: '<cluster>', hasOptions: true, about: 'print the kubeconfig of a cluster' },
  password: {
    takes: '<cluster>',
    hasOptions: true,
    about: 'print the administrator password of a cluster',
  },
  kinds: { about: 'kinds of objects, with the short forms that commands take' },
  events: {
    hasOptions: true,
    about: 'list events of the log, oldest first; secrets and personal data stay hidden',
  },
  orders: { about: 'orders of all kinds and tenants' },
  hubs: { about: 'management clusters: register, check, close, drain, remove' },
  kafka: { about: 'the Kafka publisher: topics, progress, replays' },
  pools: { about: 'agents, VLANs, prefixes and addresses that orders take' },
  lanes: { about: 'queues of effects: per hub, per automation of a hub, and of the scheduler' },
  projections: { about: 'read models of the instance that answers' },
  store: { about: 'the embedded event store' },
  audit: { about: 'the history: every act with its actor, and proofs of it' },
  usage: {
    hasOptions: true,
    about: 'billed and provisioning time by tenant, project, kind and template',
  },
  'dev-cert': {
    hasOptions: true,
    about: 'write a certificate for loopback, and the authority that clients have to trust for it',
  },
  completion: {
    takes: '<shell>',
    about: 'print a script that completes commands, options, kinds and names of objects',
  },
};
