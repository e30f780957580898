import { fnv1a64, mix } from '../hash.ts';
import type { Holder } from '../holder.ts';
import type { CapacityClaim, CapacityLimits, PlacementDecision } from './capacity-events.ts';
import { nodeLimit, NOTHING, shortages } from './capacity.ts';
import { firstProblem, type HubHealth } from './health.ts';
import { namespaceFits, namespaceOf, type HubFacts } from './hub-facts.ts';
import { byKey, own } from '../json-tools.ts';
import { TENANT } from '../tenancy/hub-objects.ts';

/** Of any object that is placed: the zone that it asks for. */
export const ZONE_ANNOTATION = 'fulfillment-ledger/zone';

/** What Ansible would carry out, where an order holds it. */
export const TEMPLATE_WORDS = 'an Ansible template ({{, {%, {# or #jinja2:)';

/**
 * Which hub an order goes to: filter, score, and (by the caller) reserve. Pure, so that
 * an auditor who has the recorded candidates comes to the same choice.
 */
export type PlacementRequest = {
  readonly holder: Holder;
  readonly tenant: string;
  /** Absent: none has to be offered. */
  readonly template?: string;
  /** Name of the object on the hub where its length matters: a namespace may be made of it. */
  readonly objectName?: string;
  /** Kinds of objects that the hub must be able to hold, besides those that no hub can be without. */
  readonly objects?: readonly string[];
  /** Kinds of objects that are to follow it there: a hub that carries them all comes before one that does not. */
  readonly followers?: readonly string[];
  /** Absent: any hub. */
  readonly hub?: string;
  /** Absent: any zone. */
  readonly zone?: string;
  /** Absent: it takes no room; the scheduler fills in what the kind of the holder declares (`ActingKind.claims`). */
  readonly claim?: CapacityClaim;
  /** No automation that we call has a part in it: the operator of the hub builds it, by a webhook or job of its own. */
  readonly withoutAutomation?: true;
  /** Field of the order that holds an Ansible template: automation that we call is never given it. */
  readonly ansibleTemplate?: string;
};

/** One registered hub with what is known of it now. */
export type Candidate = {
  readonly hub: HubFacts;
  /** It is being deregistered: nothing new goes there. */
  readonly deleting: boolean;
  /** An adapter of this release reaches it. */
  readonly adapter: boolean;
  /** Its lane is parked: circuit breaker open or paused. */
  readonly blocked: boolean;
  /** What looking at it showed; absent where nobody looks. */
  readonly health?: HubHealth;
  /** Calls of the last hour and how many of them failed; absent when there were none. */
  readonly calls?: { readonly attempts: number; readonly failures: number };
  readonly limits: CapacityLimits;
  readonly used: CapacityClaim;
  /** Orders of the same tenant and kind there. */
  readonly tenantClusters: number;
  /** Why the hub is passed over whatever else is known of it; the choice goes on without it. */
  readonly fault?: string;
};

export type ScoreName = 'leastAllocated' | 'mostAllocated' | 'balanced' | 'spread' | 'health';
export type Weights = {
  readonly version: number;
  readonly weights: { readonly [Name in ScoreName]?: number };
};

/** Bump `version` when a weight changes: decisions name it. */
export const DEFAULT_WEIGHTS: Weights = {
  version: 2,
  weights: { leastAllocated: 1, balanced: 1, spread: 1, health: 1 },
};

export type Placement =
  | { readonly placed: true; readonly hub: HubFacts; readonly decision: PlacementDecision }
  | {
      readonly placed: false;
      /** For the tenant: what but room it waits for, and nothing that tells one hub from another; empty: room. */
      readonly message: string;
      /** For the provider: which hub could take it, and why no other can. */
      readonly detail: string;
      readonly decision: PlacementDecision;
    };

/** Result of the effect `scheduler.place`, after the capacity was reserved. */
export type PlaceResult =
  | ({
      readonly placed: true;
      readonly hub: string;
      readonly decision: PlacementDecision;
      /** The namespace is the tenant's own and made when first needed. */
      readonly tenantNamespace?: true;
      /** Where the ledger does some step: the site of the hub. */
      readonly site?: { readonly zone: string; readonly baseDomain: string };
    } & Pick<HubFacts, 'namespace' | 'mode' | 'controller' | 'simulated' | 'steps'>)
  | Extract<Placement, { placed: false }>;

export const place = (
  request: PlacementRequest,
  candidates: readonly Candidate[],
  weights: Weights = DEFAULT_WEIGHTS,
): Placement => {
  const realHub = candidates.some(isReal);
  const filtered = preferred(
    request,
    candidates.map((candidate) => ({ candidate, refusals: refusalsOf(request, candidate, realHub) })),
  );
  const fitting = filtered.filter(({ refusals }) => refusals.length === 0).map(({ candidate }) => candidate);
  const scored = filtered
    .map(({ candidate, refusals }) => ({
      hub: candidate.hub.id,
      fits: refusals.length === 0,
      reasons: refusals.map(({ text }) => text),
      ...(refusals.length === 0 ? scoresOf(request, candidate, fitting, weights) : { scores: {}, total: 0 }),
    }))
    .sort((left, right) => byKey([left.hub, 0], [right.hub, 0]));
  const decision: PlacementDecision = { weightsVersion: weights.version, candidates: scored };
  const best = fitting.reduce<Candidate | undefined>(
    (winner, candidate) =>
      winner === undefined || beats(request.holder.id, scored, candidate, winner) ? candidate : winner,
    undefined,
  );
  if (best !== undefined) return { placed: true, hub: best.hub, decision };
  return {
    placed: false,
    message: otherThanRoom(
      request,
      filtered.map(({ refusals }) => refusals),
    ),
    detail: detailOf(filtered),
    decision,
  };
};

type Filtered = { readonly candidate: Candidate; readonly refusals: readonly Refusal[] };
/** Of several hubs, those that carry less of what is to follow than another one are passed over. */
const preferred = (
  { followers = [] }: PlacementRequest,
  filtered: readonly Filtered[],
): readonly Filtered[] => {
  const lackedOn = ({ health }: Candidate): readonly string[] =>
    followers.filter((each) => health?.lacking?.kinds.some(({ kind }) => kind === each));
  const fitting = filtered.filter(({ refusals }) => refusals.length === 0);
  const fewest = Math.min(...fitting.map(({ candidate }) => lackedOn(candidate).length));
  return filtered.map(({ candidate, refusals }) => {
    const lacked = lackedOn(candidate);
    if (lacked.length <= fewest) return { candidate, refusals };
    const text = `it carries no ${lacked.join(' or ')}, and another hub carries more`;
    return { candidate, refusals: [...refusals, { kind: 'other', text } as const] };
  });
};

/**
 * A real hub that was reached once: from then on no simulated one takes its orders, also while it is away. One that
 * never
 * answered, as with a kubeconfig that is none, does not count.
 */
export const isReal = ({
  hub,
  adapter,
  deleting,
  health,
}: Pick<Candidate, 'hub' | 'adapter' | 'deleting' | 'health'>): boolean =>
  !hub.simulated && adapter && !deleting && (health === undefined || health.credentials !== undefined);

/** The recorded reasons name hubs and numbers; `kind` is what a tenant may learn of it. */
type Refusal = { readonly kind: RefusalKind; readonly text: string };
type RefusalKind =
  | 'leaving'
  | 'cordoned'
  | 'unreachable'
  | 'unfit'
  /** Its API server has no such objects for us. */
  | 'kind'
  /** Its automation makes none. */
  | 'playbook'
  | 'zone'
  | 'template'
  | 'playbooks'
  | 'capacity'
  | 'other';

const refusalsOf = (
  request: PlacementRequest,
  candidate: Candidate,
  realHub: boolean,
): readonly Refusal[] => {
  const { hub } = candidate;
  const refusals: Refusal[] = [];
  const refuse = (kind: RefusalKind, text: string): number => refusals.push({ kind, text });
  if (candidate.fault !== undefined) {
    refuse('other', candidate.fault);
    return refusals;
  }
  if (candidate.deleting) refuse('leaving', 'hub is being deregistered');
  if (hub.scheduling !== 'open') refuse('cordoned', `hub is ${hub.scheduling}`);
  if (!candidate.adapter) refuse('unreachable', 'NoAdapter: nothing reaches this hub');
  const unwell = healthRefusal(candidate);
  if (unwell !== undefined) refusals.push(unwell);
  // Whatever waits for its tenant needs the Tenant; clusters go without.
  const needed = request.objects === undefined ? [] : [...request.objects, TENANT.kind];
  if (request.withoutAutomation === true && hub.controller === 'ledger' && !hub.simulated)
    refuse('playbook', 'controller ledger: nobody there builds anything but clusters');
  else
    for (const { kind, code, subject = kind } of candidate.health?.lacking?.kinds ?? [])
      if (needed.includes(kind))
        refuse(CARRIED_BY_HUB.includes(code) ? 'kind' : 'playbook', `${code}: ${subject}`);
  if (candidate.blocked) refuse('unreachable', 'circuit breaker open');
  if (hub.simulated && realHub) refuse('other', 'simulated hub while a real one is registered');
  if (request.zone !== undefined && request.zone !== hub.zone) {
    refuse('zone', `zone is ${hub.zone === '' ? 'not set' : hub.zone}, wanted ${request.zone}`);
  }
  if (request.hub !== undefined && request.hub !== hub.id)
    refuse('other', `hub ${request.hub} is the only one possible`);
  const { template } = request;
  if (template !== undefined && hub.templates.length > 0 && !hub.templates.includes(template)) {
    refuse('template', `template ${template} is not offered`);
  }
  if (request.ansibleTemplate !== undefined && hub.mode !== 'operator') {
    const what = `${request.ansibleTemplate} holds ${TEMPLATE_WORDS}`;
    refuse('playbooks', `${what}, which playbooks of mode ${hub.mode} would carry out`);
  }
  const namespace = namespaceOf(hub, request.tenant);
  if (request.objectName !== undefined && !namespaceFits(namespace, request.objectName)) {
    refuse('other', `namespace "${namespace}" leaves no room for the order's name`);
  }
  for (const { what, wanted, left } of shortages(candidate, request.claim ?? NOTHING)) {
    refuse('capacity', `${what}: ${wanted} wanted, ${left} left`);
  }
  return refusals;
};

/** What of its health speaks against a hub: the first thing that would have to be mended. */
const healthRefusal = ({ hub, adapter, health }: Candidate): Refusal | undefined => {
  if (health === undefined) return undefined;
  const wrong = firstProblem(health);
  if (wrong !== undefined) {
    const { code, subject } = wrong.problem;
    const kind = wrong.aspect === 'requirements' ? 'unfit' : 'unreachable';
    return { kind, text: subject === undefined ? code : `${code}: ${subject}` };
  }
  return hub.simulated || !adapter || health.reachable !== undefined
    ? undefined
    : { kind: 'unreachable', text: 'NotChecked: the hub was not looked at yet' };
};

/** What passes without anybody changing the order or what is offered. */
const PASSING: readonly RefusalKind[] = ['capacity', 'cordoned', 'unreachable', 'unfit'];

/** Told of the hub that is nearest to taking it; of how many there are, nothing shows. */
const otherThanRoom = (
  { template = '', objects = [] }: PlacementRequest,
  hubs: readonly (readonly Refusal[])[],
): string => {
  const isAny = (...kinds: readonly RefusalKind[]): boolean =>
    hubs.some((refusals) => refusals.every(({ kind }) => kinds.includes(kind)));
  if (isAny('capacity')) return '';
  if (isAny(...PASSING)) return NOT_NOW;
  if (isAny(...PASSING, 'kind'))
    return `no hub has the CRDs of ${objects.join(' and ')} and the rights to them`;
  if (isAny(...PASSING, 'kind', 'playbook')) return `no hub carries out ${objects.join(' and ')}`;
  if (isAny(...PASSING, 'playbooks'))
    return `a value of the order holds ${TEMPLATE_WORDS}, which the playbooks that build it would carry out`;
  return isAny(...PASSING, 'template') ? `template '${template}' is not offered` : NOT_NOW;
};
/** What was found of a hub itself, not of its automation. */
const CARRIED_BY_HUB: readonly string[] = ['CrdMissing', 'RightMissing'];

const MAX_DETAIL = 1_000;
const detailOf = (
  hubs: readonly { readonly candidate: Candidate; readonly refusals: readonly Refusal[] }[],
): string => {
  const said = hubs.map(({ candidate: { hub }, refusals }) => {
    const couldTake = refusals.every(({ kind }) => kind === 'capacity' || PASSING.includes(kind));
    const why = refusals.map(({ text }) => text).join(', ');
    return { couldTake, text: `hub ${hub.id} ${couldTake ? 'could take it' : 'cannot'}: ${why}` };
  });
  const [could, cannot] = [true, false].map((is) => said.filter(({ couldTake }) => couldTake === is));
  const texts = [...(could ?? []), ...(cannot ?? [])].map(({ text }) => text);
  const head = said.some(({ couldTake }) => couldTake) ? [] : ['no registered hub could take it'];
  return [...head, ...texts].join('; ').slice(0, MAX_DETAIL);
};

const NOT_NOW = 'the provider takes no orders for it at the moment';

const scoresOf = (
  request: PlacementRequest,
  candidate: Candidate,
  fitting: readonly Candidate[],
  weights: Weights,
): { readonly scores: { readonly [name: string]: number }; readonly total: number } => {
  const after = fractionsAfter(request, candidate);
  const all: { readonly [Name in ScoreName]: number } = {
    leastAllocated: 100 * (1 - mean(after)),
    mostAllocated: 100 * mean(after),
    balanced: 100 * (1 - deviation(after)),
    spread: spread(candidate, fitting),
    health: callsThatSucceeded(candidate),
  };
  const scores: { [name: string]: number } = {};
  let sum = 0;
  let weight = 0;
  for (const [name, factor] of Object.entries(weights.weights)) {
    const score = all[name as ScoreName];
    scores[name] = rounded(score);
    sum += factor * score;
    weight += factor;
  }
  return { scores, total: weight === 0 ? 0 : rounded(sum / weight) };
};

/** Share of each limited resource in use once this order is there; unlimited ones count as empty. */
const fractionsAfter = (request: PlacementRequest, { limits, used }: Candidate): readonly number[] => {
  const fraction = (limit: number | undefined, taken: number): number =>
    limit === undefined ? 0 : limit === 0 ? 1 : taken / limit;
  const { controlPlanes, nodes } = request.claim ?? NOTHING;
  return [
    fraction(limits.controlPlanes, used.controlPlanes + controlPlanes),
    ...Object.entries(nodes).map(([hostType, wanted]) =>
      fraction(nodeLimit(limits, hostType), (own(used.nodes, hostType) ?? 0) + wanted),
    ),
  ];
};

/** 100 where the tenant has the fewest clusters, 0 where it has the most. */
const spread = ({ tenantClusters }: Candidate, fitting: readonly Candidate[]): number => {
  const counts = fitting.map((candidate) => candidate.tenantClusters);
  const max = Math.max(...counts);
  const min = Math.min(...counts);
  return max === min ? 100 : (100 * (max - tenantClusters)) / (max - min);
};

/** 100·(1 − failures/attempts) over the last hour; a hub that nobody called has not failed. */
const callsThatSucceeded = ({ calls }: Candidate): number =>
  calls === undefined || calls.attempts === 0 ? 100 : 100 * (1 - calls.failures / calls.attempts);

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

const deviation = (values: readonly number[]): number => {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
};

/** Two digits: events hold what people can compare, and equal scores are equal on every machine. */
const rounded = (value: number): number => Math.round(value * 100) / 100;

const beats = (
  id: string,
  scored: PlacementDecision['candidates'],
  challenger: Candidate,
  winner: Candidate,
): boolean => {
  const total = ({ hub }: Candidate): number => scored.find((entry) => entry.hub === hub.id)?.total ?? 0;
  if (total(challenger) !== total(winner)) return total(challenger) > total(winner);
  const [left, right] = [rendezvous(id, challenger.hub.id), rendezvous(id, winner.hub.id)];
  return left === right ? challenger.hub.id < winner.hub.id : left > right;
};

/** Rendezvous hashing: two schedulers agree on a tie, and ties spread over the hubs. */
export const rendezvous = (orderId: string, hubId: string): bigint => mix(fnv1a64(`${orderId}\n${hubId}`));
