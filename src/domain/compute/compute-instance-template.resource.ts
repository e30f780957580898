import { nameFromId } from '../catalog/derived-names.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { definedParametersRejection, templateIdFrom, templateIdRejection } from '../catalog/templates.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { runStrategyRejection } from './instance-spec.ts';

/** Blueprints of compute instances (OSAC). */
export const computeInstanceTemplate = documentKind({
  kind: 'computeInstanceTemplate',
  context: 'catalog',
  events: {
    created: 'ComputeInstanceTemplatePublished',
    revised: 'ComputeInstanceTemplateRevised',
    deletionRequested: 'ComputeInstanceTemplateRetirementRequested',
    retired: 'ComputeInstanceTemplateRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  idFrom: templateIdFrom,
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  references: [
    { path: 'spec_defaults.instance_type', kind: 'instanceType', scope: 'full' },
    { path: 'spec_defaults.disk_image', kind: 'diskImage', scope: 'full' },
  ],
  check: (document, { id, previous }) =>
    (previous === undefined ? templateIdRejection(id) : undefined) ??
    runStrategyRejection(objectAt(document, 'spec_defaults'), 'spec_defaults.run_strategy') ??
    definedParametersRejection(document),
});
