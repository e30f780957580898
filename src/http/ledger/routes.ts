import type { LookServices } from '../audit-reads.ts';
import { actRecorder, type ActServices } from './acts.ts';
import { auditTreeRoutes, type AuditTreeServices } from './audit-tree.ts';
import { eventRoutes, type EventServices } from './events.ts';
import type { HubServices } from './hub-services.ts';
import { hubRoutes } from './hubs.ts';
import { kafkaRoutes, type KafkaServices } from './kafka.ts';
import { laneRoutes, type LaneServices } from './lanes.ts';
import { orderRoutes, type OrderServices } from './orders.ts';
import { projectionRoutes, type ProjectionServices } from './projections.ts';
import type { LedgerRoute } from './serve.ts';
import { storeRoutes, type StoreServices } from './store.ts';
import { usageRoutes, type UsageServices } from './usage.ts';

export type LedgerServices = Omit<
  AuditTreeServices &
    EventServices &
    HubServices &
    KafkaServices &
    LaneServices &
    OrderServices &
    ProjectionServices &
    StoreServices &
    UsageServices,
  keyof ActServices
> &
  LookServices;

export const ledgerRoutes = (given: LedgerServices): readonly LedgerRoute[] => {
  const services = { ...given, recordAct: actRecorder(given) };
  return [
    ...eventRoutes(services),
    ...orderRoutes(services),
    ...hubRoutes(services),
    ...laneRoutes(services),
    ...kafkaRoutes(services),
    ...projectionRoutes(services),
    ...storeRoutes(services),
    ...usageRoutes(services),
    ...auditTreeRoutes(services),
  ];
};
