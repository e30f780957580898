import { objectAt, stringAt, withoutEmpty } from '../json-tools.ts';
import { meterOf } from '../metering/meter.ts';
import {
  bareMetalDecider,
  bareMetalInstance,
  bareMetalStateOf,
  isPoweredOn,
  type BareMetalState,
} from './bare-metal-instance.resource.ts';

/** OSAC meters no bare metal. Two lengths of time are: while a host is reserved, and while it is powered on. */
const TYPE = 'bare_metal_instance';
const isReserved = (state: BareMetalState): boolean => state.reserved === true && state.status === 'present';

const dimensionsOf = ({ resolved }: BareMetalState) =>
  withoutEmpty({
    host_type: resolved?.hostType ?? '',
    bare_metal_instance_type: resolved?.instanceType?.name ?? '',
  });

export const bareMetalMeter = meterOf<BareMetalState, Parameters<typeof bareMetalDecider.evolve>[1]>(
  {
    version: 2,
    resourceType: TYPE,
    isOurs: true,
    timesAreTold: true,
    templateKind: 'bareMetalInstanceTemplate',
    facts: (state) => {
      const view = bareMetalInstance.view(state);
      if (!view.exists) return undefined;
      const { id, tenant, project, name, archived: isGone, document } = view;
      const isBillable = isReserved(state);
      const template = state.resolved?.template;
      return {
        id,
        tenant,
        project,
        name,
        template: { id: template?.id ?? '', name: template?.name ?? '' },
        catalogItem: stringAt(objectAt(objectAt(document, 'spec'), 'catalog_item'), 'name'),
        state: bareMetalStateOf(state),
        isBillable,
        isDelivered: isBillable,
        isGone,
        dimensions: dimensionsOf(state),
      };
    },
    components: (state) =>
      ['reserved', ...(isPoweredOn(state) ? ['powered'] : [])].map((nodeSet) => ({
        component: TYPE,
        nodeSet,
        hostType: '',
        nodeCount: 1,
        dimensions: { ...dimensionsOf(state), measure: nodeSet },
      })),
    sameComponents: (before, after) => isPoweredOn(before) === isPoweredOn(after),
  },
  bareMetalDecider,
);
