import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, counts, text, typesOf } from '../schemas.ts';

const problems = z.array(z.strictObject({ code: text, message: text, subject: text.exactOptional() }));
const hosts = z.record(z.string(), z.strictObject({ free: count, ours: count, foreign: count }));

/** Registry entries of what looking at a hub showed. */
const hubHealthTypes: readonly EventType[] = typesOf(
  { context: 'hubs', audience: 'provider', resource: 'hub' },
  [
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
  ],
);

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
  ...hubHealthTypes,
  ...hubCapacityTypes,
  ...lanePauseTypes,
];
