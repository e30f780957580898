import type { Command } from 'commander';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import { createCli } from '../../../src/cli/ledgerctl.ts';

/** Checks that what operators are told to look at and to type exists. */

/** Names that a scrape of the service has, with the suffixes of histograms; `up` is Prometheus' own. */
export const knownMetrics = async (): Promise<Set<string>> => {
  const metrics = createMetrics();
  metrics.close();
  const names = new Set(['up']);
  for (const metric of await metrics.registry.getMetricsAsJSON()) {
    names.add(metric.name);
    if (String(metric.type) === 'histogram') {
      for (const suffix of ['bucket', 'sum', 'count']) names.add(`${metric.name}_${suffix}`);
    }
  }
  return names;
};

/** Words of a PromQL expression that are neither functions, keywords, labels nor texts. */
export const metricsIn = (expression: string): string[] => {
  const bare = expression
    .replace(/"(\\.|[^"\\])*"/g, '""')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\b(by|on|without|ignoring)\s*\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]/g, '');
  return [...bare.matchAll(/[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\()\b/g)]
    .map(([word]) => word)
    .filter(
      (word) =>
        !['and', 'or', 'unless', 'e9'].includes(word) &&
        !/^(sum|rate|increase|abs|histogram_quantile)$/.test(word),
    );
};

export const isBalanced = (expression: string): boolean => {
  const closing: { readonly [bracket: string]: string } = { ')': '(', ']': '[', '}': '{' };
  const open: string[] = [];
  for (const character of expression.replace(/"(\\.|[^"\\])*"/g, '')) {
    if ('([{'.includes(character)) open.push(character);
    else if (closing[character] !== undefined && open.pop() !== closing[character]) return false;
  }
  return open.length === 0;
};

const program = await createCli(
  {
    serve: () => Promise.reject(new Error('not in a test')),
    demo: () => Promise.reject(new Error('not in a test')),
    mintToken: () => Promise.reject(new Error('not in a test')),
    checkStore: () => Promise.reject(new Error('not in a test')),
    verifyStore: () => Promise.reject(new Error('not in a test')),
    showEvent: () => Promise.reject(new Error('not in a test')),
    restoreStore: () => Promise.reject(new Error('not in a test')),
    defaultDataDir: 'data',
    eventStore: 'sqlite',
    version: '0.0.0',
  },
  { out: () => undefined, err: () => undefined },
);

/** The command line as it is, without running anything. */
export const ledgerctl = (): Command => program;

/** Every `ledgerctl …` in a text, up to the end of its line, code span or substitution. */
export const commandLinesIn = (text: string): string[] =>
  [...text.matchAll(/ledgerctl ([^`\n)|;]+)/g)].map(([, words]) => (words ?? '').trim());

/** What is wrong with a command line; undefined: nothing. */
export const problemWith = (line: string): string | undefined => {
  let command = ledgerctl();
  const words = line.split(/\s+/);
  while (command.commands.length > 0) {
    const word = words.shift() ?? '';
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) return `there is no "${word}" in ${command.name()}`;
    command = next;
  }
  let operands = 0;
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (!/^-./.test(word)) {
      operands += 1;
      continue;
    }
    const option = command.options.find((one) => one.long === word || one.short === word);
    if (option === undefined) return `${command.name()} has no ${word}`;
    if (!option.isBoolean() && words.shift() === undefined) return `${word} needs a value`;
  }
  const taken = command.registeredArguments;
  const wanted = taken.length;
  // The last of them may be many, or none.
  const open = taken.at(-1)?.variadic === true;
  const needed = taken.filter(({ required }) => required).length;
  const fits = operands >= needed && (open || operands <= wanted);
  return fits ? undefined : `${command.name()} takes ${wanted} words, not ${operands}`;
};
