import { generate } from 'selfsigned';

export type KeyPair = { readonly cert: string; readonly key: string };

/** A throw-away authority: its certificate, the server's, and as many client certificates as wanted. */
export type Authority = {
  /** PEM of the authority: what a client has to trust. */
  readonly ca: string;
  readonly server: KeyPair;
  /** A client certificate as the API server reads it: CN is the user, each O a group. */
  issue(user: string, groups: readonly string[], validMs?: number): Promise<KeyPair>;
};

const KEYS = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;

export const createAuthority = async (host: string): Promise<Authority> => {
  const root = await generate([{ name: 'commonName', value: 'kube-apiserver stand-in' }], {
    ...KEYS,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
    ],
  });
  const ca = { key: root.private, cert: root.cert };
  const server = await generate([{ name: 'commonName', value: 'kube-apiserver' }], {
    ...KEYS,
    ca,
    extensions: [
      { name: 'basicConstraints', cA: false },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 7, ip: host },
          { type: 2, value: 'localhost' },
          { type: 2, value: 'kubernetes.default.svc' },
        ],
      },
    ],
  });
  return {
    ca: root.cert,
    server: { cert: server.cert, key: server.private },
    issue: async (user, groups, validMs = 86_400_000) => {
      const names = [
        { name: 'commonName', value: user },
        ...groups.map((value) => ({ name: 'organizationName', value })),
      ];
      const client = await generate(names, {
        ...KEYS,
        ca,
        notBeforeDate: new Date(Date.now() + Math.min(0, validMs) - 60_000),
        notAfterDate: new Date(Date.now() + validMs),
        extensions: [
          { name: 'basicConstraints', cA: false },
          { name: 'keyUsage', digitalSignature: true },
          { name: 'extKeyUsage', clientAuth: true },
        ],
      });
      return { cert: client.cert, key: client.private };
    },
  };
};
