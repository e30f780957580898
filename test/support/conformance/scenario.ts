import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/**
 * Request and answer pairs of OSAC's surfaces as data (fixtures/osac/*.yaml; the README there explains the form). A
 * scenario is a list of steps on a fresh service, in the order that state needs.
 */
const texts = z.union([z.string(), z.array(z.string())]).transform((one) => [one].flat());

const answer = z.strictObject({
  status: z.int(),
  /** Expected header values; null: the header must be missing. */
  headers: z.record(z.string(), z.union([z.string(), z.null()])).optional(),
  /** JSON with placeholders; absent: not looked at. */
  body: z.unknown().optional(),
  /** The whole body as text, with placeholders. */
  text: z.string().optional(),
});

const step = z
  .strictObject({
    name: z.string(),
    /** Rules of fixtures/osac/rules.yaml that this pair shows. */
    rules: texts.optional(),
    /** Recorded exchanges that this pair repeats. */
    wire: texts.optional(),
    /** Why our answer is not the recorded one. */
    differs: z.string().optional(),
    caller: z.string().default('user'),
    /** The request is sent this often, counted from 1 as `{N}`; every answer is compared. */
    times: z.int().min(1).optional(),
    /** `GET /path`; captured values as `{NAME}`. */
    request: z.string().optional(),
    /** Query parameters, encoded for the URL. */
    query: z.record(z.string(), z.string()).optional(),
    headers: z.record(z.string(), z.string()).optional(),
    body: z.unknown().optional(),
    /** The body as it is sent, where it is not JSON that YAML could say. */
    text: z.string().optional(),
    answer: answer.optional(),
    /** The answer is a stream that stays open under this name; `answer` is its head. */
    opens: z.string().optional(),
    /** The next lines of an open stream, in order. */
    stream: z.string().optional(),
    lines: z.array(z.unknown()).optional(),
  })
  .refine(({ request, stream }) => (request === undefined) !== (stream === undefined), {
    message: 'a step holds a request, or the next lines of a stream',
  });

const scenario = z.strictObject({
  about: z.string(),
  /** Scenarios whose steps come first, by file name. */
  after: texts.optional(),
  steps: z.array(step),
});

export type Step = z.output<typeof step>;
export type Scenario = z.output<typeof scenario> & { readonly file: string };

const ROOT = join(import.meta.dirname, '../../../fixtures/osac');

export const loadScenarios = (): readonly Scenario[] =>
  readdirSync(join(ROOT, 'scenarios'))
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => {
      const content: unknown = parse(readFileSync(join(ROOT, 'scenarios', file), 'utf8'));
      const parsed = scenario.safeParse(content);
      if (!parsed.success) throw new Error(`${file}: ${z.prettifyError(parsed.error)}`);
      return { ...parsed.data, file: file.replace(/\.yaml$/, '') };
    });

/** A rule of the wire protocol, in one sentence of ours. */
export type Rule = { readonly says: string };
export const loadRules = (): ReadonlyMap<string, Rule> =>
  new Map(
    Object.entries((parse(readFileSync(join(ROOT, 'rules.yaml'), 'utf8')) ?? {}) as Record<string, Rule>),
  );

/** Names of the recorded exchanges, and why some have no pair of their own. */
export const loadRecordings = (): ReadonlyMap<string, string | null> =>
  new Map(
    Object.entries(
      parse(readFileSync(join(ROOT, 'recordings.yaml'), 'utf8')) as Record<string, string | null>,
    ),
  );

/** All steps of a scenario, those of the scenarios that it comes after first. */
export const stepsOf = (
  scenario: Scenario,
  all: readonly Scenario[],
): readonly { readonly step: Step; readonly own: boolean }[] => [
  ...(scenario.after ?? []).flatMap((name) => {
    const before = all.find(({ file }) => file === name);
    if (before === undefined) throw new Error(`${scenario.file} comes after ${name}, which does not exist`);
    return stepsOf(before, all).map(({ step }) => ({ step, own: false }));
  }),
  ...scenario.steps.map((step) => ({ step, own: true })),
];
