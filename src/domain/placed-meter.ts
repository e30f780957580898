import type { DomainEvent } from './decider.ts';
import type { JsonObject } from './json.ts';
import { meterOf, type Meter, type MeteredFacts } from './metering/meter.ts';
import type { PlacedState } from './placed-document.ts';
import type { ResourceKind } from './resource.ts';

/** What bills say of an object beside its state. */
export type Billed = Pick<MeteredFacts, 'template' | 'templateRecord' | 'catalogItem' | 'dimensions'>;

/** Of a kind that is placed on a hub and billed while it is in one state. */
export const placedMeter = <
  State extends PlacedState,
  Command extends { readonly type: string },
  Event extends DomainEvent,
>(
  resource: ResourceKind<State, Command, Event>,
  declared: {
    readonly version: number;
    readonly resourceType: string;
    /** OSAC meters it itself. Default: an addition to its metering. */
    readonly isOsacs?: true;
    readonly timesAreTold?: true;
    /** Kind of what `template` names. */
    readonly templateKind: string;
    /** Name of its only component. */
    readonly part: string;
    /** State in which it is billed, as its document shows it. */
    readonly billedState: string;
    readonly billed: (document: JsonObject) => Billed;
  },
): Meter<State> => {
  const { version, resourceType, isOsacs, timesAreTold, templateKind, part, billedState, billed } = declared;
  const prefix = `${(resource.event?.field ?? '').toUpperCase()}_STATE_`;
  return meterOf<State, Event>(
    {
      version,
      resourceType,
      ...(isOsacs === true ? {} : { isOurs: true as const }),
      ...(timesAreTold === true ? { timesAreTold } : {}),
      templateKind,
      facts: (state) => {
        const view = resource.view(state);
        if (!view.exists) return undefined;
        const { id, tenant, project, name, archived: isGone } = view;
        const isBillable = view.state === billedState;
        const shown = (view.state ?? '').replace(prefix, '');
        const times = { state: shown, isBillable, isDelivered: isBillable, isGone };
        return { id, tenant, project, name, ...times, ...billed(view.document) };
      },
      components: (state) => {
        const view = resource.view(state);
        const { dimensions } = billed(view.exists ? view.document : {});
        return [{ component: resourceType, nodeSet: part, hostType: '', nodeCount: 1, dimensions }];
      },
      sameComponents: () => true,
    },
    {
      ...resource.decider,
      evolve: (state, event) =>
        resource.apart?.events.includes(event.type) === true ? state : resource.decider.evolve(state, event),
    },
  );
};
