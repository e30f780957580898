import { z } from 'zod';
import { redacted } from '../redact.ts';
import type { ObjectMeta } from './hub-object.ts';

/**
 * Codecs of what a hub shows. A hub is a system of its own: a field may be missing, of another type, or far too long, and
 * nothing here throws. What cannot be used is left out, and texts are cut before they reach events.
 */
const MAX_TEXT = 2_000;
const MAX_ENTRIES = 100;
/** Beyond this no message is looked at. */
const MAX_EXPLANATION = 65_536;

const cut = (value: string): string =>
  value.length <= MAX_TEXT ? value : `${value.slice(0, MAX_TEXT - 1).toWellFormed()}…`;

/** As it is: what is compared or hashed as a whole, and never recorded. */
export const wholeText = z.string().catch('');
export const shownText = wholeText.transform(cut);
/** Whole numbers only. The sum has no sign where there is nothing: -0 is not what JSON says of it. */
export const wholeNumber = z
  .int()
  .transform((value): number | undefined => value + 0)
  .optional()
  .catch(undefined);
export const shownCount = wholeNumber.transform((value) => Math.max(0, value ?? 0));

/** Of a list that is too long the newest entries count: they are appended at its end. Unusable entries are left out. */
export const shownList = <T>(entry: z.ZodType<T>, most = MAX_ENTRIES) =>
  z
    .array(z.unknown())
    .catch([])
    .transform((list): readonly T[] =>
      list.slice(-most).flatMap((one) => {
        const read = entry.safeParse(one);
        return read.success ? [read.data] : [];
      }),
    );

/** A part of an object; one that is missing counts as empty. */
export const shownPart = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess(
    (value) => (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}),
    z.object(shape),
  );

/** Without empty texts: absent and empty mean the same to an operator. */
export const filled = <Key extends string>(
  values: { readonly [K in Key]: string },
): { [K in Key]?: string } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')) as { [K in Key]?: string };

const SECRET_FIELD_NAMES = 'pullSecret|templateParameters|sshPublicKey';
/** Fields whose values an API server repeats in its refusals and nobody else may read. */
const SECRET_VALUES = new RegExp(
  `(${SECRET_FIELD_NAMES})(: [A-Z][\\w ]*: )("(?:[^"\\\\]|\\\\.)*(?:"|$)|\\S+)`,
  'g',
);
export const SECRET_FIELD = new RegExp(SECRET_FIELD_NAMES);

/** A text without what an API server repeated of such a field, in its own refusal or in one that somebody else passes on. */
export const withoutSecretFields = (text: string): string =>
  text.replaceAll(SECRET_VALUES, (_, field: string, word: string) => `${field}${word}***`);

const message = wholeText.transform((text) => withoutSecretFields(text.slice(0, MAX_EXPLANATION)));
/** Why something is as it is. Operators pass on what API servers say, and these repeat the value that they refuse. */
export const shownExplanation = message.transform(cut);
/** The same of a job, whose last words may hold what it printed. */
export const shownLastWords = message.transform((text) => cut(redacted(text)));

export type Condition = {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
};

const condition = z
  .object({
    type: z.string().min(1).transform(cut),
    status: z.enum(['True', 'False', 'Unknown']).catch('Unknown'),
    reason: shownText,
    message: shownExplanation,
    lastTransitionTime: shownText,
  })
  .transform(({ type, status, ...texts }): Condition => ({ type, status, ...filled(texts) }));
export const shownConditions = shownList<Condition>(condition);

const shownTexts = z
  .record(z.string(), z.unknown())
  .catch({})
  .transform((values): { readonly [key: string]: string } =>
    Object.fromEntries(
      Object.entries(values)
        .slice(0, MAX_ENTRIES)
        .flatMap(([key, value]) => (typeof value === 'string' ? [[cut(key), cut(value)]] : [])),
    ),
  );

const metadata = shownPart({
  metadata: shownPart({
    name: shownText,
    namespace: shownText,
    uid: shownText,
    resourceVersion: shownText,
    generation: wholeNumber,
    creationTimestamp: shownText,
    deletionTimestamp: shownText,
    finalizers: shownList(z.string().transform(cut)),
    annotations: shownTexts,
    labels: z.record(z.string(), z.unknown()).catch({}),
  }),
});

/** What every object says of itself. `idLabel`: the label with our id. */
export const shownMeta = (object: unknown, idLabel: string): ObjectMeta => {
  const { labels, deletionTimestamp, generation, ...meta } = metadata.parse(object).metadata;
  return {
    ...meta,
    generation: generation ?? 0,
    ...filled({ id: shownText.parse(labels[idLabel]), deletionTimestamp }),
  };
};
