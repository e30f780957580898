import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey, type JWK } from 'jose';
import { generate } from 'selfsigned';

/** A certificate for 127.0.0.1 that is its own authority, made anew in every run: no key lies in the repository. */
const { cert, private: key } = await generate([{ name: 'commonName', value: '127.0.0.1' }], {
  algorithm: 'sha256',
  keyType: 'ec',
  curve: 'P-256',
  extensions: [
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
  ],
});

/** What a client has to trust to reach the issuers of this file. */
export const TEST_CA = cert;

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export type TestIssuer = {
  /** `https://127.0.0.1:<port>/realms/osac`. */
  readonly issuer: string;
  /** `https://127.0.0.1:<port>`. */
  readonly origin: string;
  /** What is served; specs change it. Undefined: as a good issuer does. */
  discovery: Answer | undefined;
  jwks: Answer | undefined;
  /** Public keys that a good answer lists. */
  keys: JWK[];
  /** Paths asked for, in order, with the authorization that was sent. */
  readonly asked: { path: string; authorization: string | undefined }[];
  /** A token that names this key, signed with it or with another; keys are made when they are first asked for. */
  mint(claims: object, options?: { readonly kid?: string; readonly signer?: string }): Promise<string>;
  /** Makes a key and lists it. */
  rotate(kid: string): Promise<void>;
  close(): Promise<void>;
};

/** An OpenID issuer over https on loopback: discovery, keys, tokens, and whatever lies a spec has it tell. */
export const startIssuer = async (): Promise<TestIssuer> => {
  const signers = new Map<string, CryptoKey>();
  const asked: TestIssuer['asked'] = [];
  const server: Server = createServer({ cert, key }, (request, response) => {
    const path = request.url ?? '';
    asked.push({ path, authorization: request.headers.authorization });
    if (path === '/realms/osac/.well-known/openid-configuration')
      return (self.discovery ?? json({ issuer: self.issuer, jwks_uri: `${self.origin}/keys` }))(
        request,
        response,
      );
    if (path === '/keys') return (self.jwks ?? json({ keys: self.keys }))(request, response);
    response.writeHead(404).end();
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const self: TestIssuer = {
    issuer: `${origin}/realms/osac`,
    origin,
    discovery: undefined,
    jwks: undefined,
    keys: [],
    asked,
    rotate: async (kid) => {
      const { privateKey, publicKey } = await generateKeyPair('RS256');
      signers.set(kid, privateKey);
      self.keys.push({ ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'RS256' });
    },
    mint: async (claims, { kid = 'k1', signer = kid } = {}) => {
      if (!signers.has(signer)) await self.rotate(signer);
      const key = signers.get(signer);
      if (key === undefined) throw new Error(`no key ${signer}`);
      return new SignJWT({ typ: 'Bearer', sub: 'someone', ...claims })
        .setProtectedHeader({ alg: 'RS256', kid })
        .setIssuer(self.issuer)
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(key);
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      // Also those that are still shaking hands.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return self;
};

export const json =
  (
    body: unknown,
    headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
  ): Answer =>
  (_request, response) => {
    response.writeHead(200, headers).end(JSON.stringify(body));
  };
