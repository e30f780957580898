import { isRefused, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, objectAt, stringAt } from '../json-tools.ts';
import { withValueAtPlace } from '../document-places.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import type { NodeSet } from './state.ts';
import { CLUSTER_SPEC } from './spec-paths.ts';
import { itemGovernance } from '../catalog/item-governance.ts';
import { parametersOf } from '../catalog/templates.ts';
import { canonicalNetwork, orderedNodeSets } from './resolve.ts';
import { sshKeyRejection } from './revise.ts';

type Template = Pick<CatalogueObject, 'id' | 'document'>;

/**
 * What an order would say to the defaults of an item, as far as it does not depend on the customer: an item that nobody
 * could order is refused when it is written. Undefined: all is well.
 */
export const trialRejection = (
  item: JsonObject,
  template: Template,
  catalogue: Pick<Catalogue, 'hostType'>,
  neverServed: (nodeSets: { readonly [name: string]: NodeSet }) => Rejection | undefined,
): Rejection | undefined => {
  const governance = itemGovernance(CLUSTER_SPEC, { name: '', document: item }, template, () => undefined);
  const spec = governance.item.definitions.reduce<JsonObject>(
    (filled, { segments, fallback = givenLater(segments) }) =>
      fallback === undefined
        ? filled
        : (withValueAtPlace(filled, segments, governance.asStored(segments, fallback)) as JsonObject),
    {},
  );
  const nodeSets = orderedNodeSets(spec, template, catalogue);
  const found = [
    nodeSets,
    isRefused(nodeSets) ? {} : (neverServed(nodeSets) ?? {}),
    parametersOf(withoutRequired(template), objectAt(spec, 'template_parameters')),
    canonicalNetwork(objectAt(spec, 'network')),
    sshKeyRejection({ sshPublicKey: stringAt(spec, 'ssh_public_key') }) ?? {},
  ].find(isRefused);
  return found === undefined
    ? undefined
    : {
        ...found,
        message: `the defaults of this item cannot be ordered: ${found.message}`,
        field: 'field_definitions',
      };
};

/** A size that customers will give: without one the other fields of a set could not be tried. */
const givenLater = ([head, , field]: readonly string[]): JsonValue | undefined =>
  head === 'node_sets' && field === 'size' ? 1 : undefined;

/** What is missing is what customers will give. */
const withoutRequired = ({ id, document }: Template): Template => ({
  id,
  document: {
    ...document,
    parameters: listAt(document, 'parameters').map((parameter) =>
      isObject(parameter) ? { ...parameter, required: false } : parameter,
    ),
  },
});
