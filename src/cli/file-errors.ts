import { CliFailure, EXIT } from './exit.ts';

/** What the operating system says of files, in words, and what to do about it. */
const WORDS: { readonly [code: string]: string } = {
  ENOENT: 'no such file or directory',
  ENOTDIR: 'a part of the path is not a directory',
  EISDIR: 'it is a directory: name a file in it',
  EACCES: 'you may not: look at its permissions, and at those of the directories above it',
  EPERM: 'you may not: look at its permissions, and at those of the directories above it',
  EROFS: 'it lies on a file system that is read-only: choose another place',
  ENOSPC: 'no space left: make room, or choose another place',
  EDQUOT: 'your quota of space there is used up: make room, or choose another place',
  EFBIG: 'the file may not become so large there: raise the limit, or choose another place',
  EEXIST: 'it is there already',
  ENOTEMPTY: 'a directory of this name is there already',
  ELOOP: 'its symbolic links lead in a circle',
  ENAMETOOLONG: 'the name is too long',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open on this machine',
  EBUSY: 'something else uses it',
  ETXTBSY: 'something else uses it',
  EIO: 'the disk failed: look at the log of the machine',
};

/** An error of a file operation as Node throws it. */
export const isFileError = (error: unknown): error is NodeJS.ErrnoException & { code: string } =>
  error instanceof Error &&
  'syscall' in error &&
  'code' in error &&
  typeof error.code === 'string' &&
  Object.hasOwn(WORDS, error.code);

/** `cannot write acme.tar: there is no space left there: …`; an error of another sort says it in its own words. */
export const fileErrorText = (error: unknown, what: string): string =>
  `${what}: ${isFileError(error) ? WORDS[error.code] : error instanceof Error ? error.message : String(error)}`;

/** The same as the end of a command. `what`: for example `cannot read trust.json`. */
export const fileFailure = (error: unknown, what: string, status: number = EXIT.usage): CliFailure =>
  new CliFailure(status, fileErrorText(error, what), { cause: error });

/** What an error that no command has put into words says: no errno text, but the path and what to do. */
export const messageFor = (error: unknown): string => {
  if (!isFileError(error)) return error instanceof Error ? error.message : String(error);
  const { path, syscall = 'use' } = error;
  return fileErrorText(error, `cannot ${VERBS[syscall] ?? 'use'} ${path ?? 'a file'}`);
};

const VERBS: { readonly [syscall: string]: string } = {
  open: 'open',
  read: 'read',
  write: 'write',
  stat: 'find',
  lstat: 'find',
  access: 'use',
  scandir: 'read',
  mkdir: 'make',
  rename: 'write',
  unlink: 'remove',
};
