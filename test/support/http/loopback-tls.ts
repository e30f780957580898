import { generate } from 'selfsigned';

export type LoopbackTls = { readonly cert: string; readonly key: string };

/** A certificate for 127.0.0.1 that is its own authority, made anew at each call: no key lies in the repository. */
export const loopbackTls = async (): Promise<LoopbackTls> => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: '127.0.0.1' }], {
    algorithm: 'sha256',
    keyType: 'ec',
    curve: 'P-256',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
    ],
  });
  return { cert, key };
};
