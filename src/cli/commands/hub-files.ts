import type { CliIo } from '../connection.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { readSource } from '../resources/documents.ts';

export const readStdin = (io: CliIo) => async (): Promise<string> => (await io.stdin?.()) ?? '';

/** The content of a file that must have one, in clear. Throws CliFailure. */
export const textIn = async (file: string, stdin: () => Promise<string>): Promise<string> => {
  const { text } = await readSource(file, stdin);
  if (text.trim() === '') throw new CliFailure(EXIT.usage, `${file === '-' ? 'stdin' : file} is empty`);
  return text;
};

/** A kubeconfig as the service takes it: base64 of the file as it is. Throws CliFailure. */
export const kubeconfigIn = async (file: string, stdin: () => Promise<string>): Promise<string> =>
  Buffer.from(await textIn(file, stdin), 'utf8').toString('base64');
