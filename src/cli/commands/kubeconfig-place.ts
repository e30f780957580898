import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject, listAt, stringAt } from '../../domain/json-tools.ts';
import type { CheckAnswer } from './hub-text.ts';

/** Problems that are mended in the kubeconfig. */
const OF_KUBECONFIG: readonly string[] = ['InvalidKubeconfig', 'Unreachable', 'CredentialsRefused'];
const MOST_NAMED = 5;

/**
 * The same answer with the file and the context where to look. The service does not know the file, and records what it
 * finds: names of contexts, which often are those of people, are told here alone.
 */
export const withPlace = async (
  check: CheckAnswer,
  file: string | undefined,
  kubeconfig: unknown,
): Promise<CheckAnswer> => {
  const concerned = check.problems.some(({ code }) => OF_KUBECONFIG.includes(code));
  if (!concerned || file === undefined || typeof kubeconfig !== 'string' || kubeconfig === '') return check;
  const place = [file === '-' ? 'stdin' : file, ...(await contextIn(kubeconfig))].join(', ');
  const problems = check.problems.map((problem) =>
    OF_KUBECONFIG.includes(problem.code) ? { ...problem, message: `${problem.message} (${place})` } : problem,
  );
  return { ...check, problems };
};

/** `context "north"`; nothing of a file that is no kubeconfig. `kubeconfig`: base64. */
const contextIn = async (kubeconfig: string): Promise<readonly string[]> => {
  const config = await objectIn(Buffer.from(kubeconfig, 'base64').toString('utf8'));
  if (config === undefined) return [];
  const present = stringAt(config, 'current-context');
  if (present === '') return ['no current-context'];
  const names = listAt(config, 'contexts').map((context) => stringAt(context, 'name'));
  if (names.includes(present)) return [`context ${quoted(present)}`];
  const there = names.slice(0, MOST_NAMED).map(quoted).join(', ');
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  return [
    `context ${quoted(present)}, of which there is none${there === '' ? '' : `; contexts there are ${there}${more}`}`,
  ];
};

const objectIn = async (text: string): Promise<JsonObject | undefined> => {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text, { prettyErrors: false });
  if (document.errors.length > 0) return undefined;
  try {
    const value = document.toJS({ maxAliasCount: 20 }) as JsonValue;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

const quoted = (text: string): string => JSON.stringify(text.slice(0, 100));
