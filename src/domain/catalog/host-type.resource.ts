import type { JsonObject } from '../json.ts';
import { stringAt } from '../json-tools.ts';
import { nameFromId } from './derived-names.ts';
import { documentKind } from './document-kind.ts';

/** Kinds of hosts that node sets ask for (OSAC). */
export const hostType = documentKind({
  kind: 'hostType',
  context: 'catalog',
  events: {
    created: 'HostTypeDefined',
    revised: 'HostTypeRevised',
    deletionRequested: 'HostTypeRetirementRequested',
    retired: 'HostTypeRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
});

/** Name of the first interface with role `fabric`, if there is one (OSAC). */
export const fabricInterfaceOf = (document: JsonObject): string | undefined => {
  const interfaces = document['interfaces'];
  if (!Array.isArray(interfaces)) return undefined;
  const fabric = interfaces.find((entry) => stringAt(entry, 'role') === 'fabric');
  const name = stringAt(fabric, 'name');
  return name === '' ? undefined : name;
};
