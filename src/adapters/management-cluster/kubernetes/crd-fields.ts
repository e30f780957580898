import { HubError, type CallOptions, type HubProblem } from '../../../app/hubs/management-cluster.ts';
import { isOwned } from '../../../domain/hub-objects.ts';
import { apiVersionOf, type HubObject, type OwnedObject } from '../../../domain/hubs/hub-object.ts';
import type { JsonValue } from '../../../domain/json.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import { pathOf, type Api } from './api.ts';
import type { Rights } from './rights.ts';

const UNKNOWN_FIELD = /unknown field "([^"]{1,200})"/g;

/**
 * What the hub's CRD would drop of an object of ours, or refuse in it: an API server drops unknown fields without a word.
 * Asked by a dry run with strict validation, for which the stock rights are enough and which stores nothing; a hub that
 * cannot answer (missing rights, a webhook that knows no dry run) is not accused of anything here. Admission webhooks of
 * the hub see the dry run: what was once found well is asked again only when `thorough`.
 */
export type ObjectFields = (
  kind: HubObject,
  namespace: string,
  thorough: boolean,
  by: CallOptions,
) => Promise<readonly HubProblem[]>;

export const createObjectFields = (api: Api, rights: Pick<Rights, 'ask'>): ObjectFields => {
  const well = new Set<string>();
  return async (kind, namespace, thorough, by) => {
    if (!isOwned(kind) || (well.has(kind.kind) && !thorough)) return [];
    // Asked without the right it would be answered with 403, which says nothing of the fields.
    if (!(await rights.ask({ kind, verb: 'create', namespace }, by))) return [];
    const problems = await fieldProblems(api, kind, namespace, by);
    if (problems?.length === 0) well.add(kind.kind);
    else well.delete(kind.kind);
    return problems ?? [];
  };
};

/** Undefined: there was no answer. A webhook that refuses the object gives one, which says nothing of its fields. */
const fieldProblems = async (
  api: Api,
  kind: OwnedObject,
  namespace: string,
  by: CallOptions,
): Promise<readonly HubProblem[] | undefined> => {
  const call = {
    what: `dry run of ${kind.plural}`,
    method: 'POST',
    path: pathOf(kind, { namespace }),
    query: { dryRun: 'All', fieldValidation: 'Strict' },
    body: {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name: `${kind.kind.toLowerCase()}-dry-run-of-check`, namespace },
      ...kind.sample,
    },
    reads: true,
  } as const;
  try {
    await api.ask(call, by);
    return [];
  } catch (error) {
    if (!(error instanceof HubError) || error.facts['status'] === 401) throw error;
    const { status } = error.facts;
    if (status === 403) return [];
    if (status === 400) return droppedFields(kind, error.message);
    return status === 422 ? refusedFields(kind, error.facts['causes']) : undefined;
  }
};

const subjectOf = ({ plural, group }: HubObject, field: string): string => `${plural}.${group} ${field}`;

const droppedFields = (kind: HubObject, message: string): readonly HubProblem[] =>
  [...message.matchAll(UNKNOWN_FIELD)].map(([, field = '']) => ({
    code: 'CrdMissing',
    message: `the hub's CRD of ${kind.kind} has no ${field}: it would be dropped without a word; update the CRD`,
    subject: subjectOf(kind, field),
  }));

const refusedFields = (kind: HubObject, causes: JsonValue | undefined): readonly HubProblem[] =>
  (Array.isArray(causes) ? causes : []).map((cause) => {
    const field = stringAt(cause, 'field');
    return {
      code: 'CrdMissing',
      message: `the hub's CRD of ${kind.kind} is another one: it refuses ${field} (${stringAt(cause, 'message')})`,
      subject: subjectOf(kind, field),
    };
  });
