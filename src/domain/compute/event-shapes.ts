import { z } from 'zod';
import { consoleShapes } from '../consoles.ts';
import { USE } from '../exclusive-use.ts';
import { count, list, listOf, mayBe, text, time, type EventData, type Shapes } from '../schemas.ts';

/** What is recorded of a compute instance beside what every kind on a hub records. */
const named = { id: text, name: text, revision: count };
const condition = z.strictObject({
  type: text,
  status: z.enum(['True', 'False', 'Unknown']),
  reason: mayBe,
  message: mayBe,
  lastTransitionTime: mayBe,
});

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
    /** The external IP that is made for it, and its attachment: their ids, and the pool on the hub of its subnet. */
    externalIp: z
      .strictObject({ pool: z.strictObject({ id: text, name: text }), ip: text, attachment: text })
      .exactOptional(),
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
  /** Told a second time of the same claim, with the address, once that is known. */
  ComputeInstanceAddressAttached: { ...USE, address: mayBe },
  ComputeInstanceAddressDetached: USE,
  ...consoleShapes('ComputeInstance'),
} as const satisfies Shapes;

type Told<Name extends keyof typeof INSTANCE_SHAPES> = Omit<EventData<(typeof INSTANCE_SHAPES)[Name]>, 'at'>;
export type ResolvedInstance = Told<'ComputeInstanceResolved'>;
export type ObservedInstance = Told<'ComputeInstanceObserved'>;
