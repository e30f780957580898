import { derivedCommandId } from '../../app/log/identifiers.ts';
import { neverHosted, type WantedHost } from '../../domain/bare-metal/possible-hosts.ts';
import type { AddressPool } from '../../domain/clusters/catalogue.ts';
import { hubCapacity } from '../../app/hubs/scheduler.ts';
import { fabricInterfaceOf } from '../../domain/catalog/host-type.resource.ts';
import type { ClusterChanges, ClusterCommand, RequestedNodeSet } from '../../domain/clusters/commands.ts';
import { deadlineRejection, placementDeadline } from '../../domain/clusters/placement-deadline.ts';
import {
  canonicalNetwork,
  templateReference,
  referenceProblems,
  resolveOrder,
  usableVersion,
  type Catalogue,
} from '../../domain/clusters/resolve.ts';
import { pullSecretTwice } from '../../domain/clusters/revise.ts';
import {
  grows,
  limitsWhenEmpty,
  neverGrown,
  neverServed,
  neverThere,
  type NodeSets,
  type StandingHub,
  type StandingHubs,
  type Wish,
} from '../../domain/clusters/servable.ts';
import type { NamedSecret } from '../../domain/clusters/state.ts';
import { type Rejection, isRefused } from '../../domain/decider.ts';
import type { CapacityLimits } from '../../domain/hubs/capacity-events.ts';
import { capacityLimitsOf, limitsWithHosts, nodeLimit } from '../../domain/hubs/capacity.ts';
import type { HubHealth } from '../../domain/hubs/health.ts';
import { hubFacts } from '../../domain/hubs/hub-facts.ts';
import { hub } from '../../domain/hubs/hub.resource.ts';
import { ZONE_ANNOTATION } from '../../domain/hubs/placement.ts';
import {
  defined,
  own,
  numberAt,
  objectAt,
  sameJson,
  stringAt,
  textsAt,
  valueAt,
} from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { referenceOf, refersTo } from '../../domain/references.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import type { CatalogueReader } from './catalogue.ts';
import { refused, type Creation } from './creates.ts';
import type { HubAdapters } from './credentials.ts';
import { problemText, referencesInvalid } from './references.ts';
import { HIDDEN } from './secrets.ts';
import type { Change, Revision } from './updates.ts';
import type { WriteServices } from './write-context.ts';

/**
 * Refuses what can never be served, before anything is stored, and for a dry run alike. What a hub declares is read from
 * the read model, so that an order that follows a registration or a change of capacity meets it; what was seen of the hub
 * comes from the registry, which may be a moment behind.
 */
export type RoomCheck = {
  /** Why it can never be served, if so. */
  readonly never: (wish: Wish) => Rejection | undefined;
  /** The others throw ApiError 400. */
  readonly order: (wish: Wish) => void;
  readonly zone: (zone: string) => void;
  readonly host: (wanted: WantedHost) => void;
  /** `hub`: where the cluster is; undefined: it has no place yet. */
  readonly change: (wish: Wish, before: NodeSets, hub: string | undefined) => Promise<void>;
};

type Services = Pick<WriteServices, 'resources' | 'runner'> & { readonly hubs: HubAdapters };

const PAGE = 100;

export const createRoomCheck = (
  { resources, runner, hubs }: Services,
  catalogue: Pick<CatalogueReader, 'object'>,
): RoomCheck => {
  let known: { readonly generation: number; readonly rows: readonly ResourceRow[] } | undefined;

  const rows = (): readonly ResourceRow[] => {
    const generation = resources.generation(hub.kind);
    if (known?.generation !== generation)
      known = { generation, rows: [...resources.pages(hub.kind, PAGE)].flat() };
    return known.rows;
  };

  /** What a hub declares, taken out of its row once. */
  const declared = new WeakMap<ResourceRow, Pick<StandingHub, 'hub'> & { readonly limits: CapacityLimits }>();
  const declaredBy = (row: ResourceRow) => {
    const before = declared.get(row);
    if (before !== undefined) return before;
    const { id, document } = catalogue.object(row);
    const facts = { hub: hubFacts({ id, document }), limits: capacityLimitsOf(document) };
    declared.set(row, facts);
    return facts;
  };

  const healthOf = (id: string): HubHealth => hubs.healthOf?.(id) ?? {};

  const standing = (row: ResourceRow): StandingHub => {
    const { hub: facts, limits } = declaredBy(row);
    const health = healthOf(row.id);
    return {
      hub: facts,
      deleting: row.deleting,
      adapter: hubs.adapterOf(row.id) !== undefined,
      health,
      limits: limitsWhenEmpty(limits, health.hosts),
    };
  };

  const all = (): StandingHubs => ({
    hubs: rows().map(standing),
    ...(hubs.refusesSimulated === undefined ? {} : { refusesSimulated: hubs.refusesSimulated }),
  });

  const orThrow = (wrong: Rejection | undefined): void => {
    if (wrong !== undefined) throw refused(wrong);
  };

  return {
    never: (wish) => neverServed(wish, all()),
    order: (wish) => orThrow(neverServed(wish, all())),
    zone: (zone) => orThrow(neverThere(zone, all())),
    host: (wanted) => orThrow(neverHosted(wanted, all())),
    change: async (wish, before, id) => {
      if (!grows(before, wish.nodeSets)) return;
      if (id === undefined) return orThrow(neverServed(wish, all()));
      const row = rows().find((each) => each.id === id);
      if (row === undefined) return;
      const { limits } = standing(row);
      if (neverGrown(before, wish.nodeSets, { limits, free: () => 0 }) === undefined) return;
      const { used } = (await runner.load(hubCapacity, id)).state;
      const now = limitsWithHosts(declaredBy(row).limits, healthOf(id).hosts?.counts);
      const free = (hostType: string): number =>
        (nodeLimit(now, hostType) ?? 0) - (own(used.nodes, hostType) ?? 0);
      orThrow(neverGrown(before, wish.nodeSets, { limits, free }));
    },
  };
};

/** Orders: resolution against the catalogue, and changes in the words of the aggregate (OSAC). */
const PULL_SECRET = 'spec.pull_secret';
const PULL_SECRET_SECRET = 'spec.pull_secret_secret';

const orThrow = <T extends object>(value: T | Rejection): T => {
  if (isRefused(value)) throw refused(value);
  return value as T;
};

export const clusterCreation = (
  catalogue: CatalogueReader,
  room: RoomCheck,
  defaults: { readonly placementDeadline?: string },
): Creation<ClusterCommand> => ({
  ownChecks: true,
  resolve: async ({ id, at, tenant, project, creator, sent, principal, surface }) => {
    const known = catalogue.of(tenant, principal.visibility, project);
    const spec = objectAt(sent, 'spec');
    checkReferences(spec, known);
    const metadata = sent['metadata'] === undefined ? undefined : objectAt(sent, 'metadata');
    const { pools, ...resolved } = orThrow(
      resolveOrder({ metadata, spec }, await withTemplateSecrets(catalogue, known, spec)),
    );
    const { nodeSets, zone, template, annotations } = resolved;
    checkDeadline(annotations);
    const wish = {
      tenant,
      template: template.id,
      nodeSets,
      ...defined({ zone, hub: resolved.networkAttachment?.hub }),
    };
    room.order(wish);
    const order = {
      ...resolved,
      ...addressesFrom(pools ?? [], id, ({ hub: on }) => room.never({ ...wish, hub: on })),
      ...(await pullSecretFacts(catalogue, resolved.pullSecretSecret)),
    };
    return {
      command: (secrets, abandonedBefore) => {
        const pullSecret = secrets[PULL_SECRET];
        return {
          type: 'OrderCluster',
          ...order,
          ...placementDeadline(annotations, defaults.placementDeadline),
          id,
          at,
          tenant,
          project,
          creator,
          ...(pullSecret === undefined ? {} : { pullSecret }),
          ...(surface === 'private' ? reportedIn(sent) : {}),
          abandonedBefore,
        };
      },
    };
  },
});

/**
 * Where a cluster's external IPs come from: of the pools on whose hub it can be, the one with most free addresses. Their ids
 * are derived from the cluster's, so that nobody can take them beforehand. `never`: why the hub of a pool can never hold it.
 */
const addressesFrom = (
  pools: readonly AddressPool[],
  id: string,
  never: (pool: AddressPool) => Rejection | undefined,
): Pick<Extract<ClusterCommand, { type: 'OrderCluster' }>, 'externalIps'> => {
  const ids = (endpoint: string) => ({
    ip: derivedCommandId(id, 'external-ip', endpoint),
    attachment: derivedCommandId(id, 'external-ip-attachment', endpoint),
  });
  let wrong: Rejection | undefined;
  for (const pool of pools) {
    const why = never(pool);
    if (why === undefined)
      return { externalIps: { ...pool, ids: { API: ids('API'), INGRESS: ids('INGRESS') } } };
    wrong ??= why;
  }
  if (wrong !== undefined) throw refused(wrong);
  return {};
};

/** Finalizers and status that a private caller sets with the order (OSAC). */
const reportedIn = (sent: JsonObject): Pick<ClusterChanges, 'finalizers' | 'status'> => {
  const finalizers = textListAt(objectAt(sent, 'metadata'), 'finalizers');
  return {
    ...(finalizers.length === 0 ? {} : { finalizers }),
    ...(sent['status'] === undefined ? {} : { status: objectAt(sent, 'status') }),
  };
};

/** All problems at once, each with its field (OSAC). */
const checkReferences = (spec: JsonObject, known: Catalogue): void => {
  const violations = referenceProblems(spec, known).map(({ field = '', facts, message }) => ({
    field,
    description: String(facts?.['description'] ?? message),
  }));
  if (violations.length > 0) throw referencesInvalid(violations);
};

/** The catalogue, with the secrets of the template that the order speaks of. */
const withTemplateSecrets = async (
  catalogue: CatalogueReader,
  known: Catalogue,
  spec: JsonObject,
): Promise<Catalogue> => {
  const reference = templateReference(spec, known);
  const template = reference === undefined ? undefined : known.template(reference);
  const found = template === undefined ? undefined : await catalogue.withSecrets(template);
  return found === undefined ? known : { ...known, template: () => found };
};

/** The value behind an object that is given as pull secret: what the hub gets is settled with the order. */
const pullSecretFacts = async (
  catalogue: CatalogueReader,
  named: NamedSecret | undefined,
): Promise<{ pullSecret?: SecretRef }> => {
  if (named === undefined) return {};
  const pullSecret = await catalogue.pullSecretOf(named.id);
  if (pullSecret !== undefined) return { pullSecret: orThrow(pullSecret) };
  const description = problemText('Secret', named, 'not-found');
  throw referencesInvalid([{ field: 'object.spec.pull_secret_secret', description }]);
};

export const clusterRevision = (catalogue: CatalogueReader, room: RoomCheck): Revision<ClusterCommand> => ({
  command: async (change) => {
    const changes = changesOf(change, catalogue);
    await checkRoom(change, changes, room);
    return {
      type: 'ReviseCluster',
      at: change.at,
      changes: { ...changes, ...(await pullSecretChanges(change, catalogue)) },
    };
  },
});

const checkDeadline = (annotations: { readonly [key: string]: string }): void => {
  const wrong = deadlineRejection(annotations);
  if (wrong !== undefined) throw refused(wrong);
};

/** The zone that an order was made with stays; one that does not exist is not taken as an annotation either. */
const checkRoom = async (
  { before, after, tenant }: Change,
  { annotations, nodeSets }: ClusterChanges,
  room: RoomCheck,
): Promise<void> => {
  const zoneIn = (document: JsonObject): string =>
    own(textsAt(objectAt(document, 'metadata'), 'annotations'), ZONE_ANNOTATION) ?? '';
  const zone = zoneIn(after);
  if (annotations !== undefined) checkDeadline(annotations);
  if (annotations !== undefined && zone !== '' && zone !== zoneIn(before)) room.zone(zone);
  if (nodeSets === undefined) return;
  const template = stringAt(valueAt(after, 'spec.template'), 'id');
  const former = zoneIn(before);
  await room.change(
    { tenant, template, nodeSets: setsOf(nodeSets), ...(former === '' ? {} : { zone: former }) },
    setsIn(before),
    stringAt(objectAt(before, 'status'), 'hub') || undefined,
  );
};

/** Those of a known host type; what is wrong with the others is said elsewhere. */
const setsOf = (requested: { readonly [name: string]: RequestedNodeSet }): NodeSets =>
  Object.fromEntries(
    Object.entries(requested).flatMap(
      ([
        name,
        {
          hostType: { id, name: words = id },
          size,
        },
      ]) =>
        id === undefined || words === undefined ? [] : [[name, { hostType: { id, name: words }, size }]],
    ),
  );

const setsIn = (document: JsonObject): NodeSets =>
  setsOf(
    Object.fromEntries(
      Object.entries(objectAt(objectAt(document, 'spec'), 'node_sets')).map(([name, set]) => [
        name,
        { hostType: referenceOf(objectAt(set, 'host_type')) ?? {}, size: numberAt(set, 'size') },
      ]),
    ),
  );

/** Only what differs; texts and maps that are gone are given as empty ones. */
const changesOf = (change: Change, catalogue: CatalogueReader): ClusterChanges => {
  const { after, surface } = change;
  const differs = differsIn(change);
  const metadata = objectAt(after, 'metadata');
  const spec = objectAt(after, 'spec');
  const version = differs('spec.version') ? versionOf(change, catalogue) : undefined;
  return {
    ...(differs('metadata.labels') ? { labels: textsAt(metadata, 'labels') } : {}),
    ...(differs('metadata.annotations') ? { annotations: textsAt(metadata, 'annotations') } : {}),
    ...(differs('metadata.display_name') ? { displayName: stringAt(metadata, 'display_name') } : {}),
    ...(differs('metadata.description') ? { description: stringAt(metadata, 'description') } : {}),
    ...(differs('spec.node_sets') ? nodeSetChanges(change, catalogue) : {}),
    ...(differs('spec.ssh_public_key') ? { sshPublicKey: stringAt(spec, 'ssh_public_key') } : {}),
    ...(version === undefined ? {} : { version }),
    ...(differs('spec.network') ? { network: orThrow(canonicalNetwork(objectAt(spec, 'network'))) } : {}),
    ...(surface === 'private' && differs('metadata.finalizers')
      ? { finalizers: textListAt(metadata, 'finalizers') }
      : {}),
    ...(surface === 'private' && differs('status') ? { status: objectAt(after, 'status') } : {}),
  };
};

const differsIn =
  ({ before, after }: Pick<Change, 'before' | 'after'>) =>
  (path: string): boolean =>
    !sameJson(valueAt(before, path), valueAt(after, path));

/** A value or an object: the merged cluster may have one of them (OSAC). */
const pullSecretChanges = async (
  change: Change,
  catalogue: CatalogueReader,
): Promise<Pick<ClusterChanges, 'pullSecret' | 'pullSecretSecret'>> => {
  const { before, after, secrets } = change;
  const value = secrets[PULL_SECRET];
  const reference = valueAt(after, PULL_SECRET_SECRET);
  const named = { id: stringAt(reference, 'id'), name: stringAt(reference, 'name') };
  const hasValue = value === undefined ? valueAt(before, PULL_SECRET) === HIDDEN : value !== null;
  if (reference !== undefined && hasValue) throw refused(pullSecretTwice());
  const given = value === undefined ? {} : { pullSecret: value };
  if (!differsIn(change)(PULL_SECRET_SECRET)) return given;
  return reference === undefined
    ? { pullSecretSecret: null, ...given }
    : { pullSecretSecret: named, ...(await pullSecretFacts(catalogue, named)) };
};

/** An empty version keeps the old one (OSAC). */
const versionOf = (change: Change, catalogue: CatalogueReader): ClusterChanges['version'] => {
  const row = change.found.get('spec.version');
  return row === undefined ? undefined : orThrow(usableVersion(catalogue.object(row)));
};

const nodeSetChanges = (
  { before, after, tenant, principal }: Change,
  catalogue: CatalogueReader,
): Pick<ClusterChanges, 'nodeSets' | 'resized'> => {
  const stored = objectAt(objectAt(before, 'spec'), 'node_sets');
  const wanted = objectAt(objectAt(after, 'spec'), 'node_sets');
  const project = stringAt(objectAt(before, 'metadata'), 'project');
  const known = catalogue.of(tenant, principal.visibility, project);
  const nodeSets: [string, RequestedNodeSet][] = [];
  for (const [name, set] of Object.entries(wanted)) {
    const reference = referenceOf(objectAt(set, 'host_type')) ?? {};
    const size = numberAt(set, 'size');
    const current = referenceOf(objectAt(own(stored, name), 'host_type'));
    if (current !== undefined && refersTo(reference, { id: current.id ?? '', name: current.name ?? '' })) {
      nodeSets.push([name, { hostType: current, size }]);
      continue;
    }
    const hostType = known.hostType(reference);
    const fabricInterface = hostType === undefined ? undefined : fabricInterfaceOf(hostType.document);
    const requested: RequestedNodeSet = {
      hostType: hostType === undefined ? reference : { id: hostType.id, name: hostType.name },
      size,
      ...(fabricInterface === undefined ? {} : { fabricInterface }),
    };
    nodeSets.push([name, requested]);
  }
  // A set that exists may be scaled to nothing; only a new one must have a size.
  return { nodeSets: Object.fromEntries(nodeSets), resized: Object.keys(stored) };
};

const textListAt = (object: JsonObject, key: string): string[] => {
  const value: JsonValue | undefined = object[key];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
};
