import { generateKeyPairSync } from 'node:crypto';
import { createConsoles, type ConsoleServices } from '../../../src/app/consoles/consoles.ts';
import { createTickets, type ConsoleKey } from '../../../src/app/consoles/tickets.ts';
import type { ConsoleAccess } from '../../../src/http/osac/console-sessions.ts';

/** Consoles of a service in memory, whose key is gone with it. */
export const consolesOf = (
  ports: Omit<ConsoleServices, 'tickets' | 'settings' | 'ending' | 'instance'>,
): ConsoleAccess => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key: ConsoleKey = { kid: 'test', privateKey, publicJwk: publicKey.export({ format: 'jwk' }) };
  const tickets = createTickets({
    current: async () => key,
    find: async (kid) => (kid === key.kid ? key : undefined),
    all: async () => [key],
  });
  const settings = { limitMs: 60_000, total: 100, perTenant: 100 };
  const ending = new AbortController().signal;
  return { tickets, consoles: createConsoles({ ...ports, tickets, settings, ending, instance: 'test' }) };
};
