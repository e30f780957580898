import { stringify } from 'yaml';
import type { KeyPair } from './access/certificates.ts';

export type Credentials = { readonly token: string } | KeyPair;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** A kubeconfig (YAML) with everything in it: no file is referred to. */
export const kubeconfigOf = (parts: {
  readonly url: string;
  readonly ca: string;
  readonly credentials: Credentials;
  readonly namespace?: string;
}): string => {
  const { url, ca, credentials, namespace } = parts;
  const user =
    'token' in credentials
      ? { token: credentials.token }
      : {
          'client-certificate-data': base64(credentials.cert),
          'client-key-data': base64(credentials.key),
        };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'stand-in', cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'client', user }],
    contexts: [
      {
        name: 'stand-in',
        context: { cluster: 'stand-in', user: 'client', ...(namespace === undefined ? {} : { namespace }) },
      },
    ],
    'current-context': 'stand-in',
  });
};
