import { errors, jwtVerify, SignJWT, type JWK } from 'jose';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { CONSOLE_TYPES } from '../../domain/consoles.ts';
import type { Actor } from '../log/metadata.ts';
import { ConsoleRefused } from './console-line.ts';

/** A key that signs tickets. `kid`: its name, in the header of each and in the published set. */
export type ConsoleKey = { readonly kid: string; readonly privateKey: KeyObject; readonly publicJwk: JWK };

/** Where the keys are: every instance of a deployment has the same. A key that was replaced stays until its tickets are over. */
export type ConsoleKeys = {
  /** The one that signs. Made when there is none, and when the newest is too old. */
  current(): Promise<ConsoleKey>;
  /** Undefined: there is none of that name. */
  find(kid: string): Promise<ConsoleKey | undefined>;
  /** All that tickets may still be signed by, the newest first. */
  all(): Promise<readonly ConsoleKey[]>;
};

const TICKET = z.strictObject({
  session: z.string(),
  kind: z.string(),
  id: z.string(),
  console: z.enum(CONSOLE_TYPES),
  clientId: z.string(),
  /** Who asked for the ticket. */
  subject: z.string(),
  /** When the token that asked for the ticket is no longer accepted: its rights end there. */
  tokenUntil: z.iso.datetime(),
  /** The call that asked for the ticket. */
  requestId: z.string(),
  actor: z.record(z.string(), z.unknown()),
});

/** What one connection is for, and who asked for it. */
export type Ticket = Omit<z.infer<typeof TICKET>, 'actor'> & { readonly actor: Actor };
export type RedeemedTicket = Ticket & { readonly until: string };

export const TICKET_MS = 30_000;
const ISSUER = 'fulfillment-ledger';
const AUDIENCE = 'console';
/** Longer is no ticket of ours. */
const MAX_TICKET_CHARACTERS = 8_192;
const CLOCK_TOLERANCE_S = 2;

export type Tickets = {
  /** `at`: now, ISO. */
  issue(ticket: Ticket, at: string): Promise<{ readonly ticket: string; readonly expiresAt: string }>;
  /** What it is for, if this service signed it and it is not over. Throws ConsoleRefused `invalid-ticket`. */
  verify(ticket: string, at: string): Promise<RedeemedTicket>;
  /** JSON Web Key Set (RFC 7517) of the public keys. */
  keySet(): Promise<string>;
};

export const createTickets = (keys: ConsoleKeys): Tickets => ({
  issue: async (ticket, at) => {
    const { kid, privateKey } = await keys.current();
    const expires = Math.floor((Date.parse(at) + TICKET_MS) / 1000);
    const { session, subject, ...claims } = ticket;
    const signed = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid, typ: 'console-ticket+jwt' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(subject)
      .setJti(session)
      .setIssuedAt(Math.floor(Date.parse(at) / 1000))
      .setExpirationTime(expires)
      .sign(privateKey);
    return { ticket: signed, expiresAt: new Date(expires * 1000).toISOString() };
  },

  verify: async (ticket, at) => {
    if (ticket.length > MAX_TICKET_CHARACTERS) throw refused('it is too long');
    try {
      const { payload } = await jwtVerify(
        ticket,
        async ({ kid = '' }) => {
          const key = await keys.find(kid);
          if (key === undefined) throw new errors.JWKSNoMatchingKey();
          return key.publicJwk;
        },
        {
          algorithms: ['ES256'],
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: 'console-ticket+jwt',
          requiredClaims: ['exp', 'jti', 'sub'],
          clockTolerance: CLOCK_TOLERANCE_S,
          currentDate: new Date(at),
        },
      );
      const { iss: _iss, aud: _aud, iat: _iat, exp = 0, jti, sub, ...claims } = payload;
      const read = TICKET.parse({ ...claims, session: jti, subject: sub });
      return { ...read, actor: read.actor as unknown as Actor, until: new Date(exp * 1000).toISOString() };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw refused('it has expired', error);
      if (error instanceof errors.JOSEError || error instanceof z.ZodError)
        throw refused('it is none that this service issued', error);
      throw error;
    }
  },

  keySet: async () => JSON.stringify({ keys: (await keys.all()).map(({ publicJwk }) => publicJwk) }),
});

const refused = (why: string, cause?: unknown): ConsoleRefused =>
  new ConsoleRefused('invalid-ticket', `invalid ticket: ${why}`, { cause });
