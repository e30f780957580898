import { randomBytes } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { User } from '../types.ts';

type Token = { readonly user: User; readonly expiresAt?: number };

/** Who is behind a request: bearer tokens and client certificates of the server's own authority. */
export const createIdentities = (now: () => Date) => {
  const tokens = new Map<string, Token>();
  return {
    /** A new token; `ttlMs` from now, for ever without it. */
    token: (user: User, ttlMs?: number): string => {
      const token = randomBytes(24).toString('base64url');
      const expiry = ttlMs === undefined ? {} : { expiresAt: now().getTime() + ttlMs };
      tokens.set(token, { user, ...expiry });
      return token;
    },
    /** A token that was agreed on before, as those of a real server's token file are. */
    agreed: (token: string, user: User): void => void tokens.set(token, { user }),
    revoke: (token: string): void => void tokens.delete(token),
    /** Ends every token of a user, as the deletion of his service account does. */
    revokeUser: (name: string): void => {
      for (const [token, { user }] of tokens) if (user.name === name) tokens.delete(token);
    },
    /** Undefined: 401. */
    identify: (authorization: string | undefined, socket: TLSSocket): User | undefined => {
      if (authorization !== undefined) {
        const token = tokens.get(/^Bearer (\S+)$/.exec(authorization)?.[1] ?? '');
        if (token === undefined) return undefined;
        const ended = token.expiresAt !== undefined && token.expiresAt <= now().getTime();
        return ended ? undefined : withGroup(token.user);
      }
      if (socket.authorized) return ofCertificate(socket);
      return hasCertificate(socket) ? undefined : ANONYMOUS;
    },
  };
};

export type Identities = ReturnType<typeof createIdentities>;

/** Who brings nothing at all is somebody, too: he meets 403, not 401. */
export const ANONYMOUS: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const hasCertificate = (socket: TLSSocket): boolean => Object.keys(socket.getPeerCertificate()).length > 0;

const ofCertificate = (socket: TLSSocket): User | undefined => {
  const { subject } = socket.getPeerCertificate();
  const { CN, O } = (subject ?? {}) as { CN?: string | string[]; O?: string | string[] };
  const name = Array.isArray(CN) ? CN[0] : CN;
  if (name === undefined) return undefined;
  return withGroup({ name, groups: O === undefined ? [] : Array.isArray(O) ? O : [O] });
};

const withGroup = (user: User): User => ({ ...user, groups: [...user.groups, 'system:authenticated'] });

/** The user that a service account is. */
export const serviceAccountUser = (namespace: string, name: string): User => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
});
