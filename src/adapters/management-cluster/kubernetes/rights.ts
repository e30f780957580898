import { HubError, type CallOptions } from '../../../app/hubs/management-cluster.ts';
import {
  apiVersionOf,
  type HubObject,
  type NeededRight,
  type ObjectType,
  type RightsSetup,
} from '../../../domain/hubs/hub-object.ts';
import { AGENT, NAMESPACE } from '../../../domain/hubs/hub-objects.ts';
import { IDENTITY_NAMESPACE } from '../../../domain/hubs/identity.ts';
import { defined, objectAt } from '../../../domain/json-tools.ts';
import { pathOf, type Api, type Kind } from './api.ts';

const ACCESS_REVIEWS: ObjectType = {
  kind: 'SelfSubjectAccessReview',
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
};

/** One thing that the hub's RBAC may allow. Without a namespace: in every namespace. */
export type Right = {
  readonly kind: Pick<Kind, 'group' | 'plural'>;
  readonly verb: string;
  readonly namespace?: string;
  readonly part?: 'status';
  /** Only of this object. */
  readonly name?: string;
};

/** Where a hub's setup needs rights. */
export type RightsPlaces = {
  readonly hubNamespace: string;
  /** Where our objects are. */
  readonly places: readonly string[];
  /** They may be anywhere. */
  readonly anywhere: boolean;
  readonly setups: readonly RightsSetup[];
  /** Those that nothing is wrong without, instead of the others. */
  readonly optional?: true;
};

/** What the declared kinds need on such a hub, each right with the file of `ops/rbac` that grants it. */
export const neededRights = (
  objects: readonly HubObject[],
  where: RightsPlaces,
): readonly { readonly right: Right; readonly setup: RightsSetup }[] =>
  objects.flatMap((kind) =>
    kind.rights
      .filter(({ optional, setup }) => optional === where.optional && where.setups.includes(setup))
      .flatMap((needed) => rightsOf(kind, needed, where).map((right) => ({ right, setup: needed.setup }))),
  );

const rightsOf = (
  kind: HubObject,
  { verbs, within, part, names, setup }: NeededRight,
  { hubNamespace, places, anywhere }: RightsPlaces,
): readonly Right[] => {
  const namespaces =
    within === 'hub'
      ? [hubNamespace]
      : within === 'orders' && !(anywhere && setup !== 'hub-access')
        ? places
        : [];
  const at = namespaces.length === 0 ? [{}] : namespaces.map((namespace) => ({ namespace }));
  const of = names === undefined ? [{}] : names.map((name) => ({ name: name.replace(/^NS/, hubNamespace) }));
  return verbs.flatMap((verb) =>
    at.flatMap((place) =>
      of.map((one) => ({ kind, verb, ...place, ...(part === undefined ? {} : { part }), ...one })),
    ),
  );
};

export const READ_AGENTS: Right = { kind: AGENT, verb: 'list' };
export const READ_IDENTITY: Right = { kind: NAMESPACE, verb: 'get', name: IDENTITY_NAMESPACE };
export const sayRight = ({ kind, verb, namespace, part, name }: Right): string => {
  const what = `${verb} ${kind.plural}${part === undefined ? '' : `/${part}`}${kind.group === '' ? '' : `.${kind.group}`}`;
  const where = namespace === undefined ? 'in every namespace' : `in namespace ${namespace}`;
  if (name === undefined) return `${what} ${where}`;
  return namespace === undefined ? `${what} ${name}` : `${what} ${name} ${where}`;
};

/** Milliseconds after which an answer is asked for again. */
const REMEMBER_MS = 600_000;

export type Rights = {
  /** Asked anew each time (a SelfSubjectAccessReview, which everybody may make). Throws HubError. */
  ask(right: Right, by: CallOptions): Promise<boolean>;
  /** As `ask`, remembered for ten minutes: what is not allowed is not tried on each read. */
  has(right: Right, by: CallOptions): Promise<boolean>;
};

export const createRights = (api: Api, monotonicMs: () => number): Rights => {
  const known = new Map<string, { readonly allowed: boolean; readonly at: number }>();

  const ask: Rights['ask'] = async (right, by) => {
    const { kind, verb, namespace, part, name } = right;
    const review = await api.ask(
      {
        what: `review of the right to ${verb} ${kind.plural}`,
        method: 'POST',
        path: pathOf(ACCESS_REVIEWS),
        reads: true,
        body: {
          apiVersion: apiVersionOf(ACCESS_REVIEWS),
          kind: ACCESS_REVIEWS.kind,
          spec: {
            resourceAttributes: {
              group: kind.group,
              resource: kind.plural,
              verb,
              ...defined({ namespace, subresource: part, name }),
            },
          },
        },
      },
      by,
    );
    const allowed = objectAt(review, 'status')['allowed'] === true;
    known.set(sayRight(right), { allowed, at: monotonicMs() });
    return allowed;
  };

  return {
    ask,
    has: async (right, by) => {
      const before = known.get(sayRight(right));
      if (before !== undefined && monotonicMs() - before.at < REMEMBER_MS) return before.allowed;
      try {
        return await ask(right, by);
      } catch (error) {
        // A hub that lets nobody ask: then what is not certain is not tried.
        if (!(error instanceof HubError) || error.facts['status'] !== 403) throw error;
        known.set(sayRight(right), { allowed: false, at: monotonicMs() });
        return false;
      }
    },
  };
};
