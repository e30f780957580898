import type { Decision } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { byKey, defined, sameJson } from '../json-tools.ts';
import type { HostCount, HubHealthEvent, HubProblemFact, LackedKind } from './health-events.ts';
import { differentCluster } from './identity.ts';

/**
 * Health of a hub: what can be wrong is six things, each with its own pair of events, and each says since when. What
 * was not looked at, because something before it failed, keeps what was last known of it.
 */
export const ASPECTS = [
  'reachable',
  'credentials',
  'identity',
  'driver',
  'requirements',
  'automation',
] as const;
export type AspectName = (typeof ASPECTS)[number];

export type Aspect = {
  readonly ok: boolean;
  /** When `ok` became what it is. */
  readonly since: string;
  /** When this was recorded. */
  readonly at: string;
  readonly problems: readonly HubProblemFact[];
};

export type HubHealth = {
  readonly [Name in AspectName]?: Aspect;
} & {
  readonly version?: string;
  /** Which cluster it is (identity.ts); absent: its rights have not shown it yet. */
  readonly cluster?: string;
  readonly hosts?: { readonly at: string; readonly counts: HostCounts };
  /** Kinds whose objects cannot be there; the hub is well without them. */
  readonly lacking?: { readonly at: string; readonly kinds: readonly LackedKind[] };
  /** All that is known is well; since when that is so. */
  readonly ready?: { readonly ok: boolean; readonly since: string };
};

export type HostCounts = { readonly [resourceClass: string]: HostCount };

/** What one look found. An aspect that is absent was not looked at. */
export type HubFindings = {
  readonly [Name in AspectName]?: readonly HubProblemFact[];
} & {
  readonly version?: string;
  readonly hosts?: HostCounts;
  /** Which cluster answered; absent: the rights do not show it. */
  readonly cluster?: string;
  readonly lacking?: readonly LackedKind[];
};

export type ReportHubCheck = {
  readonly type: 'ReportHubCheck';
  readonly at: string;
  /** Version of the kubeconfig that was used: news of credentials that were replaced since are no news. */
  readonly kubeconfig?: string;
  readonly findings: HubFindings;
};

/** Sorts what a check found by aspect; who does not answer tells nothing of rights, and so on. */
export const findingsOf = (report: {
  readonly problems: readonly HubProblemFact[];
  readonly version?: string;
  readonly cluster?: string;
  readonly lacking?: readonly LackedKind[];
}): HubFindings => {
  const of = (...codes: readonly string[]): readonly HubProblemFact[] =>
    report.problems.filter(({ code }) => codes.includes(code));
  const unreachable = of('InvalidKubeconfig', 'Unreachable');
  if (unreachable.length > 0) return { reachable: unreachable };
  const version = defined({ version: report.version });
  const refused = of('CredentialsRefused');
  if (refused.length > 0) return { reachable: [], credentials: refused, ...version };
  const cluster = defined({ cluster: report.cluster });
  const elsewhere = of('DifferentCluster');
  if (elsewhere.length > 0) return { reachable: [], credentials: [], identity: elsewhere, ...cluster };
  const lacking = defined({ lacking: report.lacking });
  return {
    reachable: [],
    credentials: [],
    requirements: report.problems,
    ...version,
    ...cluster,
    ...lacking,
  };
};

/** The first thing that is wrong, in the order in which somebody would mend them; undefined when nothing is known to be. */
export const firstProblem = (
  health: HubHealth,
): { readonly aspect: AspectName; readonly problem: HubProblemFact } | undefined => {
  for (const aspect of ASPECTS) {
    const known = health[aspect];
    if (known === undefined || known.ok) continue;
    const [problem = { code: 'Unknown', message: 'the hub failed its check' }] = known.problems;
    return { aspect, problem };
  }
  return undefined;
};

const GOOD: { readonly [Name in AspectName]: HubHealthEvent['type'] } = {
  reachable: 'HubBecameReachable',
  credentials: 'HubCredentialsAccepted',
  identity: 'HubIdentified',
  driver: 'HubDrivingResumed',
  requirements: 'HubFoundComplete',
  automation: 'HubAutomationAnswered',
};
const BAD: { readonly [Name in AspectName]: HubHealthEvent['type'] } = {
  reachable: 'HubBecameUnreachable',
  credentials: 'HubCredentialsRefused',
  identity: 'HubFoundToBeAnotherCluster',
  driver: 'HubFoundDrivenElsewhere',
  requirements: 'HubFoundIncomplete',
  automation: 'HubAutomationFailed',
};
const ASPECT_OF = new Map<string, { readonly aspect: AspectName; readonly ok: boolean }>(
  ASPECTS.flatMap((aspect) => [
    [GOOD[aspect], { aspect, ok: true }] as const,
    [BAD[aspect], { aspect, ok: false }] as const,
  ]),
);

/** Milliseconds for which a problem that only words itself differently is not told again. */
const REWORD_MS = 600_000;
/** Milliseconds between two counts of a hub's hosts that are recorded. */
const COUNT_MS = 60_000;

/**
 * Compared here and not where it was read: who looked may not have known yet which cluster is expected. Of another one
 * nothing else counts.
 */
const identified = (found: HubFindings, expected: string | undefined): HubFindings => {
  const { identity: _told, cluster, ...findings } = found;
  if (cluster === undefined) return findings;
  if (expected === undefined || expected === cluster) return { ...findings, identity: [], cluster };
  const { requirements: _theirs, version: _its, hosts: _of, lacking: _kinds, ...ours } = findings;
  return { ...ours, identity: [differentCluster(expected, cluster)] };
};

/**
 * What of the findings is new. Pure: times are compared, none is read. `accepted`: the cluster that the hub's document
 * names; without, it is the one that was recorded.
 */
export const decideHealth = (
  health: HubHealth,
  { at, findings: found }: ReportHubCheck,
  accepted?: string,
): Decision<HubHealthEvent> => {
  const findings = identified(found, accepted ?? health.cluster);
  const events: HubHealthEvent[] = [];
  for (const aspect of ASPECTS) {
    const told = findings[aspect];
    const { cluster } = findings;
    const isOther = aspect === 'identity' && cluster !== undefined && cluster !== health.cluster;
    // That a hub is driven is the rule, and worth telling only after it was not.
    if (aspect === 'driver' && health.driver === undefined && told?.length === 0) continue;
    if (told === undefined || !(isOther || isNews(health[aspect], told, at))) continue;
    const problems = told.slice(0, MAX_PROBLEMS).map(plainProblem);
    const good = aspect === 'identity' ? { at, cluster } : { at };
    const event =
      problems.length === 0
        ? { type: GOOD[aspect], data: good }
        : { type: BAD[aspect], data: { at, problems } };
    events.push(event as HubHealthEvent);
  }
  const { version, lacking } = findings;
  const hosts = findings.hosts === undefined ? undefined : boundedHosts(findings.hosts);
  if (version !== undefined && version !== health.version)
    events.push({ type: 'HubVersionSeen', data: { at, version } });
  if (lacking !== undefined && !sameProblems(health.lacking?.kinds ?? [], lacking))
    events.push({
      type: 'HubKindsSeen',
      data: { at, lacking: lacking.map(({ kind, ...problem }) => ({ kind, ...plainProblem(problem) })) },
    });
  if (hosts !== undefined && isNewCount(health.hosts, hosts, at))
    events.push({ type: 'HubHostsCounted', data: { at, hosts } });
  return events;
};

const isNews = (known: Aspect | undefined, found: readonly HubProblemFact[], at: string): boolean => {
  if (known === undefined || known.ok !== (found.length === 0)) return true;
  const told = found.slice(0, MAX_PROBLEMS).map(plainProblem);
  if (!sameProblems(known.problems, told)) return true;
  const reworded = !sameJson(known.problems.map(textOf).toSorted(), told.map(textOf).toSorted());
  return reworded && between(known.at, at) >= REWORD_MS;
};

const sameProblems = (known: readonly HubProblemFact[], found: readonly HubProblemFact[]): boolean =>
  sameJson(known.map(identityOf).toSorted(), found.map(identityOf).toSorted());

const isNewCount = (known: HubHealth['hosts'], counts: HostCounts, at: string): boolean =>
  known === undefined || (!sameJson(known.counts, counts) && between(known.at, at) >= COUNT_MS);

/** Resource classes that are counted; a hub has a handful, and its document must stay one. */
const MAX_CLASSES = 200;
const boundedHosts = (counts: HostCounts): HostCounts =>
  Object.fromEntries(Object.entries(counts).toSorted(byKey).slice(0, MAX_CLASSES));

const between = (from: string, to: string): number => Date.parse(to) - Date.parse(from);
const identityOf = ({ code, subject = '' }: HubProblemFact): string => `${code}\n${subject}`;
const textOf = (problem: HubProblemFact): string => `${identityOf(problem)}\n${problem.message}`;
const plainProblem = ({ code, message, subject }: HubProblemFact): HubProblemFact => ({
  code,
  message: message.slice(0, MAX_MESSAGE),
  ...(subject === undefined ? {} : { subject }),
});
/** Characters of one problem's text that are kept, and problems of one aspect: an API server may answer pages. */
const MAX_MESSAGE = 1_000;
const MAX_PROBLEMS = 50;

/** Types of the events of health, as a subscription names them. */
export const HEALTH_EVENTS: readonly string[] = [
  ...ASPECT_OF.keys(),
  'HubVersionSeen',
  'HubHostsCounted',
  'HubKindsSeen',
];

export const isHealthEvent = (event: { readonly type: string }): event is HubHealthEvent =>
  HEALTH_EVENTS.includes(event.type);

export const evolveHealth = (health: HubHealth, event: HubHealthEvent): HubHealth => {
  const { at } = event.data;
  if (event.type === 'HubVersionSeen') return { ...health, version: event.data.version };
  if (event.type === 'HubKindsSeen') return { ...health, lacking: { at, kinds: event.data.lacking } };
  if (event.type === 'HubHostsCounted') return { ...health, hosts: { at, counts: event.data.hosts } };
  const is = ASPECT_OF.get(event.type);
  if (is === undefined) return health;
  const before = health[is.aspect];
  const since = before?.ok === is.ok ? before.since : at;
  const problems = 'problems' in event.data ? event.data.problems : [];
  const cluster = event.type === 'HubIdentified' ? { cluster: event.data.cluster } : {};
  const next: HubHealth = { ...health, [is.aspect]: { ok: is.ok, since, at, problems }, ...cluster };
  return summedUp(next, at);
};

const summedUp = (health: HubHealth, at: string): HubHealth => {
  const ok = firstProblem(health) === undefined;
  return health.ready?.ok === ok ? health : { ...health, ready: { ok, since: at } };
};

/** Health of a hub that calls no automation by itself: what was seen of one says nothing any more. */
export const withoutAutomation = (health: HubHealth, at: string): HubHealth => {
  const { automation, ...kept } = health;
  return automation === undefined ? health : summedUp(kept, at);
};

const CONDITIONS: {
  readonly [Name in AspectName]: { readonly type: string; readonly good: string; readonly bad: string };
} = {
  reachable: { type: 'Reachable', good: 'Connected', bad: 'Unreachable' },
  credentials: { type: 'CredentialsAccepted', good: 'Accepted', bad: 'Refused' },
  identity: { type: 'SameCluster', good: 'Identified', bad: 'DifferentCluster' },
  driver: { type: 'DrivenHere', good: 'MarkHeld', bad: 'DrivenElsewhere' },
  requirements: { type: 'Compatible', good: 'Complete', bad: 'Incomplete' },
  automation: { type: 'AutomationReachable', good: 'Connected', bad: 'Failing' },
};

const conditionOf = (
  type: string,
  { ok, since, reason, message }: { ok: boolean; since: string; reason: string; message?: string },
): JsonObject => ({
  type,
  status: ok ? 'CONDITION_STATUS_TRUE' : 'CONDITION_STATUS_FALSE',
  last_transition_time: since,
  reason,
  ...(message === undefined || message === '' ? {} : { message }),
});

/**
 * Conditions of the hub's document: `Ready` sums up, the others say what exactly. A hub that was just registered is not
 * ready, for it was not looked at yet.
 */
export const conditionsOf = (health: HubHealth, registeredAt: string): readonly JsonObject[] => {
  const conditions: JsonObject[] = [];
  for (const aspect of ASPECTS) {
    const known = health[aspect];
    if (known === undefined) continue;
    const { type, good, bad } = CONDITIONS[aspect];
    const [first] = known.problems;
    conditions.push(
      conditionOf(type, {
        ok: known.ok,
        since: known.since,
        reason: known.ok ? good : (first?.code ?? bad),
        message: known.problems.map(({ message }) => message).join('; '),
      }),
    );
  }
  const [lacked] = health.lacking?.kinds ?? [];
  if (health.lacking !== undefined && lacked !== undefined) {
    const { at: since, kinds } = health.lacking;
    const message = kinds.map((each) => `${each.kind}: ${each.message}`).join('; ');
    conditions.push(conditionOf('ServesAllKinds', { ok: false, since, reason: lacked.code, message }));
  }
  const wrong = firstProblem(health);
  if (health.ready !== undefined) {
    const reason = wrong === undefined ? 'Checked' : wrong.problem.code;
    return [
      conditionOf('Ready', {
        ...health.ready,
        reason,
        ...(wrong === undefined ? {} : { message: wrong.problem.message }),
      }),
      ...conditions,
    ];
  }
  const message = 'the hub was not looked at yet; orders are placed on it once it was';
  return [conditionOf('Ready', { ok: false, since: registeredAt, reason: 'NotChecked', message })];
};

/** Counts as the document shows them: what is 0 is left out. */
export const shownHosts = (counts: HostCounts): JsonObject =>
  Object.fromEntries(
    Object.entries(counts).map(([resourceClass, count]) => [
      resourceClass,
      Object.fromEntries(Object.entries(count).filter(([, number]) => number !== 0)),
    ]),
  );
