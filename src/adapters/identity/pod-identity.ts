import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { createHttpsFetch, type JsonFetch } from './https-fetch.ts';

/** Where Kubernetes mounts a pod's own service account. */
export const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/** What a pod knows of its cluster: the issuer of service account tokens is trusted too (OSAC). */
export type PodIdentity = {
  readonly namespace: string;
  readonly issuer: string;
  /** Asks the cluster's API server, with its certificates and this pod's token. */
  readonly fetch: JsonFetch;
};

/** Undefined outside of a pod, and where the mounted token names no https issuer. */
export const readPodIdentity = async (
  directory: string = SERVICE_ACCOUNT_DIRECTORY,
): Promise<PodIdentity | undefined> => {
  const [namespace, ca, token] = await Promise.all(
    ['namespace', 'ca.crt', 'token'].map((file) => readIfThere(join(directory, file))),
  );
  if (namespace === undefined || ca === undefined || token === undefined) return undefined;
  const issuer = issuerOf(token);
  if (issuer === undefined) return undefined;
  // The kubelet renews the file long before the token in it expires.
  const headers = async () => ({
    authorization: `Bearer ${(await readFile(join(directory, 'token'), 'utf8')).trim()}`,
  });
  return { namespace: namespace.trim(), issuer, fetch: createHttpsFetch({ ca, headers }) };
};

const issuerOf = (token: string): string | undefined => {
  try {
    const { iss } = decodeJwt(token.trim());
    return iss?.startsWith('https://') === true ? iss : undefined;
  } catch {
    return undefined;
  }
};

const readIfThere = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined;
    throw error;
  }
};
