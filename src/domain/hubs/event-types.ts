import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { documentTypes } from '../catalog/document-types.ts';
import { count, counts, text, typesOf } from '../schemas.ts';

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
  }),
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
const limits = z.strictObject({ controlPlanes: count.exactOptional(), nodes: counts.exactOptional() });

const hubCapacityTypes: readonly EventType[] = typesOf({ context: 'hubs', audience: 'provider' }, [
  ['HubCapacityDeclared', { hub: text, limits }],
  ['HubCapacityReserved', { clusterId: text, claim }],
  ['HubCapacityResized', { clusterId: text, claim }],
  ['HubCapacityReleased', { clusterId: text }],
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
