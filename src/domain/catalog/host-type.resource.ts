import type { JsonObject } from '../json.ts';
import { stringAt } from '../json-tools.ts';
import type { ResourceKind } from '../resource.ts';
import { nameFromId } from './derived-names.ts';
import { documentDecider, documentView, type DocumentCommand, type DocumentState } from './document.ts';
import type { HostTypeEvent } from './events.ts';

/** Kinds of hosts that node sets ask for (osac-api.md §11 Host types). */
export const hostTypeDecider = documentDecider({
  words: 'host type',
  events: {
    created: 'HostTypeDefined',
    revised: 'HostTypeRevised',
    deletionRequested: 'HostTypeRetirementRequested',
    retired: 'HostTypeRetired',
  },
  immutable: [],
});

export const hostType: ResourceKind<DocumentState, DocumentCommand, HostTypeEvent> = {
  kind: 'hostType',
  collection: 'host_types',
  words: 'host type',
  message: 'HostType',
  service: 'HostTypes',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  ids: 'client-may-choose',
  nameScope: 'project',
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  event: { field: 'host_type', public: true },
  outsideProjectsForAll: true,
  defaultTenant: 'shared',
  privateOnly: ['metadata.finalizers'],
  secrets: [],
  immutable: [],
  references: [],
  pointsAt: () => [],
  protectedWhileReferenced: true,
  decider: hostTypeDecider,
  stateVersion: 1,
  view: (state) => documentView(state),
};

/** Name of the first interface with role `fabric`, if there is one (osac-api.md §11 ClusterNodeSet). */
export const fabricInterfaceOf = (document: JsonObject): string | undefined => {
  const interfaces = document['interfaces'];
  if (!Array.isArray(interfaces)) return undefined;
  const fabric = interfaces.find((entry) => stringAt(entry, 'role') === 'fabric');
  const name = stringAt(fabric, 'name');
  return name === '' ? undefined : name;
};
