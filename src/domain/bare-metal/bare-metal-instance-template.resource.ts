import { nameFromId } from '../catalog/derived-names.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { definedParametersRejection, templateIdFrom, templateIdRejection } from '../catalog/templates.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { imageRejection } from './bare-metal-spec.ts';

/** Id of the host type that its machines are of, or empty. */
export const hostTypeOf = (document: JsonObject): string => stringAt(document, 'host_type');

/** Blueprints of bare-metal instances (OSAC). Tenants read them; the public surface changes none. */
export const bareMetalInstanceTemplate = documentKind({
  kind: 'bareMetalInstanceTemplate',
  collection: 'baremetal_instance_templates',
  context: 'catalog',
  events: {
    created: 'BareMetalInstanceTemplatePublished',
    revised: 'BareMetalInstanceTemplateRevised',
    deletionRequested: 'BareMetalInstanceTemplateRetirementRequested',
    retired: 'BareMetalInstanceTemplateRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  namesById: 'hostType',
  methods: { public: ['List', 'Get'], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  untold: true,
  idFrom: templateIdFrom,
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  alsoPointsAt: (document) => [{ kind: 'hostType', id: hostTypeOf(document) }],
  check: (document, { id, previous }) =>
    (previous === undefined ? templateIdRejection(id) : undefined) ??
    imageRejection(objectAt(document, 'spec_defaults'), 'spec_defaults.image') ??
    definedParametersRejection(document),
});
