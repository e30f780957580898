import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { CliFailure, EXIT } from './exit.ts';
import { fileFailure } from './file-errors.ts';

/** Trusts the authorities of a PEM file from now on, beside those that Node trusts. */
export const trust = async (file: string): Promise<void> => {
  const pem = await readFile(file, 'utf8').catch((error: unknown) => {
    throw fileFailure(error, `cannot read ${file}`);
  });
  try {
    // Node takes a file without one for no authority at all.
    new X509Certificate(pem);
    setDefaultCACertificates([...getCACertificates('default'), pem]);
  } catch (error) {
    throw new CliFailure(EXIT.usage, `${file} holds no certificate (PEM)`, { cause: error });
  }
};
