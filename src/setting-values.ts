import { resolve } from 'node:path';
import { z } from 'zod';
import { readIssuers } from './domain/tenancy/trusted-issuers.ts';

/** What the text of a setting may be, and what is made of it. */

export type Address = { readonly host: string; readonly port: number };

export const address = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be host:port')
  .transform((text): Address => {
    const at = text.lastIndexOf(':');
    return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) };
  })
  .refine(({ port }) => port <= 65_535, 'the port must be at most 65535');

/** Empty: there is no such listener. */
export const addressOrNone = z
  .string()
  .transform((text) => (text === '' ? undefined : text))
  .pipe(address.optional());

export const commaList = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** A path, made absolute; empty: undefined. */
export const optionalPath = z.string().transform((text) => (text === '' ? undefined : resolve(text)));

export const oneOf = <Word extends string>(what: string, words: readonly Word[]) =>
  z.enum(words, {
    error: ({ input }) => `unknown ${what} ${JSON.stringify(input)}; it can name ${words.join(', ')}`,
  });

export const trustedIssuers = commaList.transform((texts, context) => {
  const read = readIssuers(texts);
  if (typeof read !== 'string') return read;
  context.addIssue({ code: 'custom', message: read });
  return z.NEVER;
});

export const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((count) => count >= least && count <= most, `must be between ${least} and ${most}`);

export const milliseconds = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number of milliseconds')
    .transform(Number)
    .refine((ms) => ms >= least && ms <= most, `must be between ${least} and ${most}`);

/** `*`, or scheme, host and port as a browser sends them: nothing else could ever match. */
export const isOrigin = (text: string): boolean =>
  text === '*' || (URL.canParse(text) && new URL(text).origin === text && text !== 'null');
