import { takingOrders, type StandingHub, type StandingHubs } from '../clusters/servable.ts';
import { reject, type Rejection } from '../decider.ts';
import { nodeLimit } from '../hubs/capacity.ts';
import { RESOURCE_CLASS_LABEL } from '../hubs/hub-objects.ts';
import { own } from '../json-tools.ts';

export type WantedHost = {
  /** Absent: any zone. */
  readonly zone?: string;
  /** Of its template; empty: any. */
  readonly hostType: string;
  /** Labels that its host must have. */
  readonly labels: { readonly [label: string]: string };
};

/**
 * Of the labels of hosts a hub shows the resource class alone. Where it shows no hosts, its declared capacity says of which
 * types it has any. Everything else may be there.
 */
const mayHave = ({ health, limits }: StandingHub, { hostType, labels }: WantedHost): boolean => {
  const isShown = Object.keys(health?.hosts?.counts ?? {}).length > 0;
  const wanted = own(labels, RESOURCE_CLASS_LABEL) ?? (isShown ? '' : hostType);
  return wanted === '' || nodeLimit(limits, wanted) !== 0;
};

/** A host that no hub has or ever could have. Undefined: one may have it; what only lacks a free host waits. */
export const neverHosted = (wanted: WantedHost, standing: StandingHubs): Rejection | undefined => {
  const { zone, hostType } = wanted;
  const hubs = takingOrders(standing).filter(({ hub }) => zone === undefined || hub.zone === zone);
  if (hubs.length === 0 || hubs.some((hub) => mayHave(hub, wanted))) return undefined;
  const where = zone === undefined ? '' : ` in zone '${zone}'`;
  return reject(
    'failed-precondition',
    'CAPACITY_IMPOSSIBLE',
    `field 'spec.catalog_item': no host of type '${hostType}' can be had${where}: choose another item, or ask your provider`,
    { field: 'spec.catalog_item', facts: { host_type: hostType } },
  );
};
