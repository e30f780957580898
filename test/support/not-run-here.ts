import type { Context } from 'mocha';

/** What a suite may need that a machine may lack, by the names that `LEDGER_TEST_MUST_RUN` takes. */
export const SKIPPABLE = [
  'browser',
  'eventstoredb',
  'eventstoredb-controls',
  'grpc-go',
  'grpcio',
  'kafka',
  'kafka-brokers',
  'kafka-passwords',
  'kube-apiserver',
  'rulebook',
  'schemathesis',
] as const;
export type Skippable = (typeof SKIPPABLE)[number];

/**
 * Suites of `LEDGER_TEST_MUST_RUN`, a comma list.
 *
 * @throws Error for a name that no suite has: it would guard nothing.
 */
export const mustRun = (setting = process.env['LEDGER_TEST_MUST_RUN'] ?? ''): ReadonlySet<string> => {
  const names = setting
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const unknown = names.find((name) => !SKIPPABLE.some((known) => known === name));
  if (unknown === undefined) return new Set(names);
  throw new Error(`LEDGER_TEST_MUST_RUN: no suite '${unknown}'; use some of ${SKIPPABLE.join(', ')}`);
};

/**
 * Skips the suite or test of a hook's or test's context and says why in the one form that `.ci/run` collects.
 *
 * @throws Error instead where `LEDGER_TEST_MUST_RUN` names the suite.
 */
export const notRunHere = (
  context: Pick<Context, 'skip'>,
  suite: Skippable,
  reason: string,
  required = mustRun(),
): never => {
  if (required.has(suite))
    throw new Error(`suite '${suite}' must run (LEDGER_TEST_MUST_RUN) and cannot: ${reason}`);
  console.log(`      not run here: ${suite}: ${reason}`);
  return context.skip();
};

/** What `obtain` finds or installs on this machine; where it throws, the suite is not run here. */
export const obtained = <Value>(
  context: Pick<Context, 'skip'>,
  suite: Skippable,
  obtain: (say: (line: string) => void) => Value,
): Value => {
  let value: Value;
  try {
    value = obtain((line) => console.log(`      ${line}`));
  } catch (error) {
    return notRunHere(context, suite, error instanceof Error ? error.message : String(error));
  }
  return value;
};
