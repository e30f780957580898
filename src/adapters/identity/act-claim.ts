import { z } from 'zod';
import { TokenRejected, type ActingParty } from '../../app/tenancy/identity.ts';

const MAX_TEXT = 255;
/** Actors in one chain. The issuer adds one each time that a token is exchanged. */
const MAX_CHAIN = 5;

const text = z.string().min(1).max(MAX_TEXT);
/** Other claims about the actor (RFC 8693 §4.1 names none that an actor must not have) are passed over. */
const actor = z.looseObject({
  sub: text,
  iss: text.optional(),
  preferred_username: text.optional(),
  username: text.optional(),
  email: text.optional(),
  act: z.unknown().optional(),
});

/**
 * Who acts on behalf of the token's subject, from the claim `act` (RFC 8693 §4.1): the outermost one acts now; those
 * within it acted before, and count for nothing. Undefined: the subject acts itself. Throws TokenRejected for a claim that
 * is malformed: the history would name the wrong one.
 */
export const readAct = (
  claim: unknown,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): ActingParty | undefined => {
  if (claim === undefined) return undefined;
  const current = parsed(claim);
  let inner = current.act;
  for (let depth = 2; inner !== undefined; depth += 1) {
    if (depth > MAX_CHAIN)
      throw new TokenRejected(`claim 'act' names more than ${MAX_CHAIN} actors within one another`);
    inner = parsed(inner).act;
  }
  const { sub, iss = issuer, email } = current;
  if (sub === subject && iss === issuer) return undefined;
  return {
    issuer: iss,
    subject: sub,
    userName: current.preferred_username ?? current.username ?? sub,
    ...(email === undefined ? {} : { email }),
  };
};

const parsed = (claim: unknown): z.infer<typeof actor> => {
  const read = actor.safeParse(claim);
  if (read.success) return read.data;
  const field = ['act', ...(read.error.issues[0]?.path ?? [])].join('.');
  throw new TokenRejected(
    `claim '${field}' is not acceptable: an actor is an object with 'sub', of texts of 1 to ${MAX_TEXT} characters`,
  );
};
