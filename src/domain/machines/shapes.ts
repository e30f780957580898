import { z } from 'zod';
import { USE } from '../exclusive-use.ts';
import { count, mayBe, text } from '../schemas.ts';

/** What events of machines, virtual and bare metal, have in common. */
export const named = { id: text, name: text, revision: count };

/** As its hub shows it. */
export const condition = z.strictObject({
  type: text,
  status: z.enum(['True', 'False', 'Unknown']),
  reason: mayBe,
  message: mayBe,
  lastTransitionTime: mayBe,
});

/** The external IP that is made for it, and its attachment: their ids, and the pool on the hub of its subnet. */
export const ownAddress = z
  .strictObject({ pool: z.strictObject({ id: text, name: text }), ip: text, attachment: text })
  .exactOptional();
export type OwnAddress = NonNullable<z.infer<typeof ownAddress>>;

/** Told a second time of the same claim, with the address, once that is known. */
export const addressAttached = { ...USE, address: mayBe };
