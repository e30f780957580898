import type { AnyKind } from '../../domain/kinds.ts';
import type { Method } from '../../domain/resource.ts';

/** What the command line needs to know of a kind. `deriveName` only where objects are read from files. */
export type KindFacts = Pick<
  AnyKind,
  | 'kind'
  | 'collection'
  | 'words'
  | 'message'
  | 'service'
  | 'ids'
  | 'methods'
  | 'wrapsReplies'
  | 'event'
  | 'deriveName'
> & { readonly publicList?: readonly Pick<NonNullable<AnyKind['publicList']>[number], 'when'>[] };

type Exceptions = Partial<
  Pick<KindFacts, 'words' | 'message' | 'service' | 'ids' | 'methods' | 'wrapsReplies' | 'publicList'>
> & {
  /** Tenants are not told of its changes. */
  readonly isUntold?: true;
};

const ALL: readonly Method[] = ['List', 'Get', 'Create', 'Update', 'Delete'];
const unlessMentioned = (...fields: string[]) =>
  fields.map((field) => ({ when: { unlessMentioned: field } }));

/**
 * Every kind, and where it differs from the others. The declarations themselves (`src/domain/kinds.ts`) come with all
 * deciders, which take longer to load than most commands take. A spec compares the two.
 */
const KINDS: { readonly [kind: string]: Exceptions } = {
  cluster: {},
  clusterCatalogItem: { isUntold: true, publicList: [{ when: 'always' }] },
  clusterTemplate: {},
  clusterVersion: { ids: 'generated', publicList: unlessMentioned('spec.state', 'spec.enabled') },
  diskImage: { publicList: unlessMentioned('spec.lifecycle') },
  externalIp: { isUntold: true, words: 'external IP', message: 'ExternalIP', service: 'ExternalIPs' },
  externalIpPool: {
    isUntold: true,
    words: 'external IP pool',
    message: 'ExternalIPPool',
    service: 'ExternalIPPools',
    methods: { public: ['List', 'Get'], private: ALL },
    publicList: [{ when: 'always' }],
  },
  hostType: {},
  hub: { isUntold: true, methods: { public: [], private: ALL } },
  instanceType: { ids: 'equals-name', publicList: unlessMentioned('spec.state') },
  identityProvider: { isUntold: true, wrapsReplies: true },
  project: {},
  projectMembership: { isUntold: true },
  role: {},
  roleBinding: {},
  secret: { ids: 'generated' },
  tenant: { ids: 'equals-name', methods: { public: ['List', 'Get'], private: ALL } },
  user: { isUntold: true, ids: 'generated' },
};

export const kinds: readonly KindFacts[] = Object.entries(KINDS).map(
  ([kind, { isUntold, ...exceptions }]) => {
    const words = kind.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    const field = words.replaceAll(' ', '_');
    const message = `${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;
    return {
      kind,
      words,
      collection: `${field}s`,
      message,
      service: `${message}s`,
      ids: 'client-may-choose',
      methods: { public: ALL, private: ALL },
      event: { field, public: isUntold !== true },
      ...exceptions,
    };
  },
);
