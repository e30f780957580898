import { z } from 'zod';
import { consoleShapes } from '../consoles.ts';
import { USE } from '../exclusive-use.ts';
import { addressAttached, condition, named, ownAddress } from '../machines/shapes.ts';
import { count, list, listOf, mayBe, text, time, type EventData, type Shapes } from '../schemas.ts';

/** What is recorded of a compute instance beside what every kind on a hub records. */
export const INSTANCE_SHAPES = {
  /** With the order: a later change of the catalogue never changes it. */
  ComputeInstanceResolved: {
    template: z.strictObject(named),
    catalogItem: z.strictObject(named).exactOptional(),
    instanceType: z.strictObject({
      ...named,
      cores: count,
      memoryGib: count,
      gpu: z.strictObject({ pciDeviceSelector: text, resourceName: text, count }).exactOptional(),
    }),
    diskImage: z.strictObject({ ...named, sourceRef: text, guestOs: text }),
    externalIp: ownAddress,
  },
  /** What its hub shows: `at` is when it began to run or ceased to, as far as the hub says that. */
  ComputeInstanceObserved: {
    phase: text,
    internalIp: mayBe,
    externalIp: mayBe,
    lastRestartedAt: mayBe,
    conditions: listOf(condition),
    message: mayBe,
  },
  /** The time of a wanted restart has come. */
  ComputeInstanceRestartDue: { requestedAt: time },
  /** Somebody changed these fields of its object on the hub: it is sent there again. */
  ComputeInstanceDriftSeen: { fields: list },
  ComputeInstanceAddressAttached: addressAttached,
  ComputeInstanceAddressDetached: USE,
  ...consoleShapes('ComputeInstance'),
} as const satisfies Shapes;

type Told<Name extends keyof typeof INSTANCE_SHAPES> = Omit<EventData<(typeof INSTANCE_SHAPES)[Name]>, 'at'>;
export type ResolvedInstance = Told<'ComputeInstanceResolved'>;
export type ObservedInstance = Told<'ComputeInstanceObserved'>;
