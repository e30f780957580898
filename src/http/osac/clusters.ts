import type { ClusterChanges, ClusterCommand, RequestedNodeSet } from '../../domain/clusters/commands.ts';
import { canonicalNetwork } from '../../domain/clusters/network.ts';
import { resolveOrder, usableVersion } from '../../domain/clusters/resolve.ts';
import { fabricInterfaceOf } from '../../domain/catalog/host-type.resource.ts';
import { isRefused, type Rejection } from '../../domain/decider.ts';
import { numberAt, objectAt, own, sameJson, stringAt, textsAt, valueAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { referenceOf, refersTo } from '../../domain/references.ts';
import type { CatalogueReader } from './catalogue.ts';
import { refused, type Creation } from './creates.ts';
import type { Change, Revision } from './updates.ts';

/** Orders: resolution against the catalogue, and changes in the words of the aggregate (osac-api.md §10, §11 Clusters). */
const PULL_SECRET = 'spec.pull_secret';

const orThrow = <T extends object>(value: T | Rejection): T => {
  if (isRefused(value)) throw refused(value);
  return value as T;
};

export const clusterCreation = (catalogue: CatalogueReader): Creation<ClusterCommand> => ({
  ownChecks: true,
  resolve: async ({ id, at, tenant, project, creator, sent, principal }) => {
    const known = catalogue.of(tenant, principal.visibility);
    const template = referenceOf(objectAt(sent, 'spec')['template']);
    const found = template === undefined ? undefined : known.template(template);
    const withSecrets = found === undefined ? undefined : await catalogue.withSecrets(found);
    const metadata = sent['metadata'];
    const order = orThrow(
      resolveOrder(
        {
          metadata: metadata === undefined ? undefined : objectAt(sent, 'metadata'),
          spec: objectAt(sent, 'spec'),
        },
        {
          ...known,
          template: (reference) => (withSecrets === undefined ? known.template(reference) : withSecrets),
        },
      ),
    );
    return {
      command: (secrets, abandonedBefore) => {
        const pullSecret = secrets[PULL_SECRET];
        return {
          type: 'OrderCluster',
          ...order,
          id,
          at,
          tenant,
          project,
          creator,
          ...(pullSecret === undefined ? {} : { pullSecret }),
          abandonedBefore,
        };
      },
    };
  },
});

export const clusterRevision = (catalogue: CatalogueReader): Revision<ClusterCommand> => ({
  command: (change) => ({ type: 'ReviseCluster', at: change.at, changes: changesOf(change, catalogue) }),
});

/** Only what differs; texts and maps that are gone are given as empty ones. */
const changesOf = (change: Change, catalogue: CatalogueReader): ClusterChanges => {
  const { before, after, secrets, surface } = change;
  const differs = (path: string): boolean => !sameJson(valueAt(before, path), valueAt(after, path));
  const metadata = objectAt(after, 'metadata');
  const spec = objectAt(after, 'spec');
  const pullSecret = secrets[PULL_SECRET];
  const version = differs('spec.version') ? versionOf(change, catalogue) : undefined;
  return {
    ...(differs('metadata.labels') ? { labels: textsAt(metadata, 'labels') } : {}),
    ...(differs('metadata.annotations') ? { annotations: textsAt(metadata, 'annotations') } : {}),
    ...(differs('metadata.display_name') ? { displayName: stringAt(metadata, 'display_name') } : {}),
    ...(differs('metadata.description') ? { description: stringAt(metadata, 'description') } : {}),
    ...(differs('spec.node_sets') ? nodeSetChanges(change, catalogue) : {}),
    ...(differs('spec.ssh_public_key') ? { sshPublicKey: stringAt(spec, 'ssh_public_key') } : {}),
    ...(pullSecret === undefined ? {} : { pullSecret }),
    ...(version === undefined ? {} : { version }),
    ...(differs('spec.network') ? { network: orThrow(canonicalNetwork(objectAt(spec, 'network'))) } : {}),
    ...(surface === 'private' && differs('metadata.finalizers')
      ? { finalizers: textListAt(metadata, 'finalizers') }
      : {}),
    ...(surface === 'private' && differs('status') ? { status: objectAt(after, 'status') } : {}),
  };
};

/** An empty version keeps the old one (osac-api.md §11 Clusters). */
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
  const known = catalogue.of(tenant, principal.visibility);
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
