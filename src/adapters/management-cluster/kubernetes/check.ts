import {
  HubError,
  type CallOptions,
  type HubProblem,
  type HubReport,
} from '../../../app/hubs/management-cluster.ts';
import type { Clock } from '../../../app/ports.ts';
import { ownedObjects } from '../../../domain/hub-objects.ts';
import type { LackedKind } from '../../../domain/hubs/health-events.ts';
import type { HubObject, OwnedObject, RightsSetup } from '../../../domain/hubs/hub-object.ts';
import { NAMESPACE } from '../../../domain/hubs/hub-objects.ts';
import { differentCluster } from '../../../domain/hubs/identity.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, listAt, stringAt } from '../../../domain/json-tools.ts';
import { refusal } from './api-errors.ts';
import type { Api } from './api.ts';
import { isTlsCode, type ApiAnswer } from './connection.ts';
import type { ObjectFields } from './crd-fields.ts';
import type { Identity } from './identity.ts';
import { neededRights, READ_AGENTS, READ_IDENTITY, sayRight, type Right, type Rights } from './rights.ts';

/** What of a hub decides which rights it needs. */
export type HubNeeds = {
  readonly namespace: string;
  readonly controller: 'operator' | 'ledger';
  readonly tenantNamespaces: boolean;
  /** Namespaces of single tenants besides. */
  readonly otherNamespaces: readonly string[];
  /** Which cluster the hub is known to be. */
  readonly cluster?: string;
};

type Checked = {
  readonly api: Api;
  readonly rights: Rights;
  readonly identity: Identity;
  readonly needs: HubNeeds;
  readonly clock: Clock;
  readonly objects: readonly HubObject[];
  readonly objectFields: ObjectFields;
  /** Of CheckOptions. */
  readonly thorough: boolean;
};

/** The oldest Kubernetes that osac-operator's CRDs (CEL rules) and HyperShift's run on. */
const OLDEST_MINOR = 27;

/**
 * Really connects and looks at everything that orders need. What is wrong is told, each thing for itself; what cannot
 * be asked because of it is left out. Never throws for what it finds.
 */
export const checkHub = async (
  { api, rights, identity, needs, clock, objects, objectFields, thorough }: Checked,
  by: CallOptions,
): Promise<HubReport> => {
  const reached = await reach(api, clock, by);
  if (reached.problems.length > 0) return reached;
  const who = await identityOf({ api, identity, needs }, by);
  // Of another cluster nothing else is to be mended.
  if (who.problems.some(({ code }) => code !== 'RightMissing')) return { ...reached, ...who };
  const places = await Promise.all(
    placesOf(needs).map((name) => told(namespaceProblems(api, name, by), api)),
  );
  // In a namespace that is not there nobody has rights, and no order can be tried.
  const gone = new Set(
    places.flat().flatMap(({ code, subject }) => (code === 'NamespaceMissing' ? [subject] : [])),
  );
  const isIn = ({ namespace }: Right): boolean => !gone.has(namespace);
  const ask = (right: Right): Promise<boolean> => rights.ask(right, by);
  // Twenty kinds may each need a dozen rights: they are asked for again with each trial, and every ten minutes.
  const askLater = thorough ? ask : (right: Right): Promise<boolean> => rights.has(right, by);
  const lackedOf = async (kind: OwnedObject): Promise<readonly LackedKind[]> => {
    if (needs.controller === 'ledger' && kind.withoutPlaybook !== true) {
      const message = `no operator builds ${kind.kind} there: the ledger is the controller, of clusters alone`;
      return [{ kind: kind.kind, code: 'NoOperator', message }];
    }
    const rightsTo = () =>
      rightProblems([kind, ...(kind.needs ?? [])], needs, isIn, askLater, { optional: true });
    const found = await told(crdProblems(api, kind, rightsTo, by), api);
    // The first thing says enough.
    return found.slice(0, 1).map((problem) => ({ kind: kind.kind, ...problem }));
  };
  const lacking = Promise.all(
    ownedObjects(objects)
      .filter(({ required }) => required !== true)
      .map(lackedOf),
  );
  const found = await Promise.all(
    [
      ...objects
        .filter(({ required }) => required === true)
        .map((kind) =>
          crdProblems(
            api,
            kind,
            async () => (gone.has(needs.namespace) ? [] : objectFields(kind, needs.namespace, thorough, by)),
            by,
          ),
        ),
      rightProblems(objects, needs, isIn, ask),
    ].map((look) => told(look, api)),
  );
  const allowed = (right: Right): Promise<boolean> => rights.ask(right, by).catch(() => false);
  return {
    ...reached,
    ...who,
    problems: [...who.problems, ...places.flat(), ...found.flat()],
    lacking: (await lacking).flat(),
    canReadNodePools: (await Promise.all(partsOf(objects).map(allowed))).every((each) => each),
    canReadAgents: await allowed(READ_AGENTS),
  };
};

/** Without the right to see it nothing is wrong, unless it was seen before: then it could not be compared any more. */
const identityOf = async (
  { api, identity, needs }: Pick<Checked, 'api' | 'identity' | 'needs'>,
  by: CallOptions,
): Promise<Pick<HubReport, 'problems' | 'cluster'>> => {
  try {
    const cluster = await identity.read(by);
    if (cluster === undefined)
      return {
        problems: needs.cluster === undefined ? [] : [missingRight(READ_IDENTITY, 'hub-access')],
      };
    const other = needs.cluster !== undefined && needs.cluster !== cluster;
    const problems = other ? [differentCluster(needs.cluster, cluster) as HubProblem] : [];
    return { problems, cluster };
  } catch (error) {
    if (error instanceof HubError) return { problems: [problemOf(error, api)] };
    throw error;
  }
};

/** Where orders are by the hub's document, those of tenants' own namespaces aside. */
const placesOf = ({ namespace, otherNamespaces }: HubNeeds): readonly string[] => [
  ...new Set([namespace, ...otherNamespaces]),
];

/** Something that was asked and got no answer is a problem as well. */
const told = async (look: Promise<readonly HubProblem[]>, api: Api): Promise<readonly HubProblem[]> => {
  try {
    return await look;
  } catch (error) {
    if (error instanceof HubError) return [problemOf(error, api)];
    throw error;
  }
};

const problemOf = (error: HubError, { connection: { address } }: Api): HubProblem => {
  if (error.facts['status'] === 401)
    return {
      code: 'CredentialsRefused',
      message:
        'the hub refuses the credentials (401): the token or certificate has ended or was revoked; register new ones',
    };
  if (error.kind === 'unauthorized') return { code: 'RightMissing', message: error.message };
  const code = error.facts['code'];
  if (typeof code === 'string' && isTlsCode(code))
    return {
      code: 'Unreachable',
      message: error.message,
      subject: 'TLS',
    };
  const { message } = error;
  // An answer that is an error has no address of its own.
  return { code: 'Unreachable', message: message.includes(address) ? message : `${address}: ${message}` };
};

const reach = async (api: Api, clock: Clock, by: CallOptions): Promise<HubReport> => {
  const startedAt = Date.parse(clock.now());
  try {
    const call = { what: 'get version', method: 'GET', path: '/version' } as const;
    const answer = await api.raw(call, by);
    const took = Date.parse(clock.now()) - startedAt;
    const told = versionOf(answer);
    if (told === undefined)
      throw notAnApiServer(answer, api) ?? refusal(answer, call.what, false, api.redact);
    const { major, minor, gitVersion } = told;
    // The header counts whole seconds: on average the clock shows half a second more.
    const skew = Date.parse(answer.headers.date ?? '') + 500 - (startedAt + took / 2);
    const old = Number(major) < 1 || (Number(major) === 1 && Number.parseInt(minor, 10) < OLDEST_MINOR);
    const problem: HubProblem = {
      code: 'VersionTooOld',
      message: `the hub runs Kubernetes ${gitVersion}; 1.${OLDEST_MINOR} is the oldest that works`,
    };
    return {
      problems: old ? [problem] : [],
      version: gitVersion,
      ...(Number.isFinite(skew) ? { clockSkewMs: Math.round(skew) } : {}),
    };
  } catch (error) {
    if (error instanceof HubError) return { problems: [problemOf(error, api)] };
    throw error;
  }
};

type Version = { readonly major: string; readonly minor: string; readonly gitVersion: string };

/** Undefined: it is no answer of an API server to this question. */
const versionOf = ({ status, body }: ApiAnswer): Version | undefined => {
  if (status !== 200) return undefined;
  const told = objectIn(body);
  const gitVersion = stringAt(told, 'gitVersion').slice(0, 100);
  if (gitVersion === '') return undefined;
  return {
    major: stringAt(told, 'major') || '1',
    minor: stringAt(told, 'minor') || String(OLDEST_MINOR),
    gitVersion,
  };
};

const objectIn = (body: string): JsonObject => {
  try {
    const value = JSON.parse(body) as JsonValue;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};

/** Credentials come before what answers; and an API server that is starting or busy says so in plain text. */
const OF_ANY_SERVER: readonly number[] = [401, 429, 503];

/** Undefined: it answers as an API server does that has something against the call. */
const notAnApiServer = ({ status, body }: ApiAnswer, { connection }: Api): HubError | undefined => {
  const refuses = status !== 200 && stringAt(objectIn(body), 'kind') === 'Status' && status !== 404;
  if (refuses || OF_ANY_SERVER.includes(status)) return undefined;
  return new HubError(
    'unavailable',
    `${connection.address}: something answers ${connection.prefix}/version there (HTTP ${status}), but not as a Kubernetes API server does; ` +
      "look at the field 'server' of the kubeconfig (host, port, path) and at proxies or load balancers on the way",
  );
};

const namespaceProblems = async (api: Api, name: string, by: CallOptions): Promise<readonly HubProblem[]> => {
  try {
    if ((await api.get(NAMESPACE, { name }, by)) !== undefined) return [];
  } catch (error) {
    // Whether it may be read is no matter: the rights within it are asked for by name.
    if (error instanceof HubError && error.facts['status'] === 403) return [];
    throw error;
  }
  const message = `namespace ${name} is not on the hub; create it or correct spec.namespace and spec.namespaces`;
  return [{ code: 'NamespaceMissing', message, subject: name }];
};

/** What is read beside an object where the rights allow it. */
const partsOf = (objects: readonly HubObject[]): readonly Right[] =>
  objects.flatMap(({ parts }) => Object.values(parts ?? {}).map(({ of }) => ({ kind: of, verb: 'list' })));

const crdProblems = async (
  api: Api,
  kind: HubObject,
  fields: () => Promise<readonly HubProblem[]>,
  by: CallOptions,
): Promise<readonly HubProblem[]> => {
  if (await isServed(api, kind, by)) return fields();
  const subject = `${kind.plural}.${kind.group}`;
  const message = `the hub does not serve ${subject} ${kind.version}; install its CRD`;
  return [{ code: 'CrdMissing', message, subject }];
};

/** Discovery, which everybody may read. */
const isServed = async (
  api: Api,
  { group, version, plural }: HubObject,
  by: CallOptions,
): Promise<boolean> => {
  if (group === '') return true;
  try {
    const path = `/apis/${group}/${version}`;
    const told = await api.ask({ what: `discover ${group}`, method: 'GET', path }, by);
    return listAt(told, 'resources').some((resource) => stringAt(resource, 'name') === plural);
  } catch (error) {
    if (error instanceof HubError && error.facts['status'] === 404) return false;
    throw error;
  }
};

const rightProblems = async (
  objects: readonly HubObject[],
  needs: HubNeeds,
  counts: (right: Right) => boolean,
  isAllowed: (right: Right) => Promise<boolean>,
  which: { readonly optional?: true } = {},
): Promise<readonly HubProblem[]> => {
  const { namespace, controller, tenantNamespaces } = needs;
  const needed = neededRights(objects, {
    hubNamespace: namespace,
    places: placesOf(needs),
    anywhere: tenantNamespaces,
    ...which,
    setups: [
      'hub-access',
      ...(tenantNamespaces ? (['tenant-namespaces'] as const) : []),
      ...(controller === 'ledger' ? (['controller-ledger'] as const) : []),
    ],
  });
  const answers = await Promise.all(
    needed
      .filter(({ right }) => counts(right))
      .map(async ({ right, setup }) => ((await isAllowed(right)) ? [] : [missingRight(right, setup)])),
  );
  return answers.flat();
};

const missingRight = (right: Right, setup: RightsSetup): HubProblem => ({
  code: 'RightMissing',
  message: `the hub's credentials may not ${sayRight(right)}; ops/rbac/${setup}.yaml grants it`,
  subject: sayRight(right),
});
