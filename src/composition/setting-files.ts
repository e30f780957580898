import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { BadSetting } from '../config.ts';

/** A setting that names a file, with a value that would be accepted. */
export type FileSetting = { readonly variable: string; readonly example: string };

/** The text of the file that a setting names. Throws BadSetting when it cannot be read. */
export const settingFile = async (setting: FileSetting, path: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw badFile(setting, `${path} cannot be read (${why})`, error);
  }
};

/**
 * The certificate of a PEM file, the first of several. Asked of the certificate itself: a TLS context takes a key or a
 * broken one for an authority, too, and trusts nobody then. Throws BadSetting.
 */
export const certificateOf = (setting: FileSetting, path: string, text: string): X509Certificate => {
  try {
    if (text.includes('-----BEGIN')) return new X509Certificate(text);
  } catch {
    // Said below.
  }
  throw badFile(setting, `${path} holds no certificate (PEM)`);
};

export const badFile = ({ variable, example }: FileSetting, what: string, cause?: unknown): BadSetting =>
  new BadSetting(`${variable}: ${what}. Example: ${variable}=${example}`, { cause });
