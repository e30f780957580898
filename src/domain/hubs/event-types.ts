import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { documentTypes } from '../catalog/document-types.ts';
import type { JsonObject } from '../json.ts';
import { objectAt } from '../json-tools.ts';
import { count, counts, text, typesOf } from '../schemas.ts';

/**
 * Version 1 called the namespaces of single tenants `tenant_namespaces`, which has said since whether each tenant gets
 * one of its own.
 */
const withNamespaces = (data: JsonObject): JsonObject => {
  const document = objectAt(data, 'document');
  const { tenant_namespaces: named, ...spec } = objectAt(document, 'spec');
  if (typeof named !== 'object' || named === null) return data;
  return { ...data, document: { ...document, spec: { ...spec, namespaces: named } } };
};

const problems = z.array(z.strictObject({ code: text, message: text, subject: text.exactOptional() }));
const hosts = z.record(z.string(), z.strictObject({ free: count, ours: count, foreign: count }));

const ofHubs = { context: 'hubs', audience: 'provider', resource: 'hub' } as const;

/** Registry entries of a hub's own stream: its document, and what looking at it showed. */
const hubDocumentTypes: readonly EventType[] = [
  ...documentTypes(ofHubs, {
    created: 'HubRegistered',
    revised: 'HubRevised',
    deletionRequested: 'HubDeregistrationRequested',
    retired: 'HubDeregistered',
  }).map((entry) =>
    ['HubRegistered', 'HubRevised'].includes(entry.type)
      ? { ...entry, version: 2, upcast: { 1: withNamespaces } }
      : entry,
  ),
  ...typesOf(ofHubs, [
    ['HubBecameReachable', {}],
    ['HubBecameUnreachable', { problems }],
    ['HubCredentialsAccepted', {}],
    ['HubCredentialsRefused', { problems }],
    ['HubIdentified', { cluster: text }],
    ['HubFoundToBeAnotherCluster', { problems }],
    ['HubFoundDrivenElsewhere', { problems }],
    ['HubDrivingResumed', {}],
    ['HubFoundComplete', {}],
    ['HubFoundIncomplete', { problems }],
    ['HubAutomationAnswered', {}],
    ['HubAutomationFailed', { problems }],
    ['HubVersionSeen', { version: text }],
    ['HubHostsCounted', { hosts }],
  ]),
];

/** Registry entries of a hub's capacity stream. */
const claim = z.strictObject({ controlPlanes: count, nodes: counts });
const holder = z.strictObject({ kind: text, id: text });
const limits = z.strictObject({ controlPlanes: count.exactOptional(), nodes: counts.exactOptional() });

const hubCapacityTypes: readonly EventType[] = typesOf({ context: 'hubs', audience: 'provider' }, [
  ['HubCapacityDeclared', { hub: text, limits }],
  ['HubCapacityReserved', { holder, claim }],
  ['HubCapacityResized', { holder, claim }],
  ['HubCapacityReleased', { holder }],
  ['HubCapacityClosed', { hub: text, hubRevision: count }],
]);

/** Registry entries of the lanes that people hold back. */
const lanePauseTypes: readonly EventType[] = typesOf({ context: 'hubs', audience: 'provider' }, [
  ['LanePaused', { lane: text, by: text, reason: text }],
  ['LaneResumed', { lane: text, by: text }],
]);

export const hubEventTypes: readonly EventType[] = [
  ...hubDocumentTypes,
  ...hubCapacityTypes,
  ...lanePauseTypes,
];
