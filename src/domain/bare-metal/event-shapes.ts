import { z } from 'zod';
import { USE } from '../exclusive-use.ts';
import { addressAttached, condition, named, ownAddress } from '../machines/shapes.ts';
import { list, listOf, mayBe, text, texts, type EventData, type Shapes } from '../schemas.ts';

/** What is recorded of a bare-metal instance beside what every kind on a hub records. */
export const BARE_METAL_SHAPES = {
  /** With the order: a later change of the catalogue never changes it. */
  BareMetalInstanceResolved: {
    template: z.strictObject(named),
    catalogItem: z.strictObject(named),
    /** Id of the host type of the template. */
    hostType: mayBe,
    /** The bare-metal instance type of that name, and the labels of its hosts. */
    instanceType: z.strictObject({ ...named, selector: texts }).exactOptional(),
    externalIp: ownAddress,
  },
  /** What its hub shows: `at` is when it was powered on or off, as far as the hub says that. */
  BareMetalInstanceObserved: {
    phase: text,
    conditions: listOf(condition),
    /** Hardware addresses. */
    nics: list,
    attachments: listOf(
      z.strictObject({ interface: text, subnet: text, address: text, primary: z.boolean() }),
    ),
    /** The restart that was carried out last. */
    restartTrigger: mayBe,
    message: mayBe,
  },
  /** Somebody changed these fields of its object on the hub: it is sent there again. */
  BareMetalInstanceDriftSeen: { fields: list },
  BareMetalInstanceAddressAttached: addressAttached,
  BareMetalInstanceAddressDetached: USE,
} as const satisfies Shapes;

type Told<Name extends keyof typeof BARE_METAL_SHAPES> = Omit<
  EventData<(typeof BARE_METAL_SHAPES)[Name]>,
  'at'
>;
export type ResolvedBareMetal = Told<'BareMetalInstanceResolved'>;
export type ObservedBareMetal = Told<'BareMetalInstanceObserved'>;
