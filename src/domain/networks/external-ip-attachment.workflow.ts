import type { JsonObject } from '../json.ts';
import { isObject, stringAt } from '../json-tools.ts';
import { placeIn } from '../placed-document.ts';
import { asking, documentOf, type PlacedRun } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { ADDRESS_NEWS, attachAddress, awaitedBy } from './attached-address.ts';
import { networkEventTypes } from './event-types.ts';
import {
  addressIn,
  endpointIn,
  externalIpAttachment,
  targetIn,
  type AttachmentCommand,
  type AttachmentEvent,
  type AttachmentState,
} from './external-ip-attachment.resource.ts';
import { externalIp } from './external-ip.resource.ts';
import { EXTERNAL_IP_ATTACHMENT } from './hub-objects.ts';

type AttachmentRun = PlacedRun<AttachmentState>;

/** As a hub calls the endpoints of a cluster. */
const ENDPOINTS: { readonly [endpoint: string]: string } = { API: 'API', INGRESS: 'Ingress' };

/** It must be where its address is, and so must what it is attached to. */
const whereItsAddressIs = (run: AttachmentRun): JsonObject => {
  const { kind = '', id = '' } = targetIn(documentOf(run)) ?? {};
  return { lender: { kind: externalIp.kind, id: addressIn(documentOf(run)) }, target: { kind, id } };
};

/** From the ordered attachment to its object on the hub of its address, and back. */
export const actingExternalIpAttachment = placedKind<AttachmentState, AttachmentCommand, AttachmentEvent>(
  externalIpAttachment,
  {
    eventTypes: networkEventTypes,
    object: EXTERNAL_IP_ATTACHMENT,
    wakes: {
      types: [...ADDRESS_NEWS, 'HubSelected', 'ComputeInstancePlaced', 'BareMetalInstancePlaced'],
      of: (run) => awaitedBy(run, 'attach') || awaitedBy(run, 'place') || addressIn(documentOf(run)),
    },
    first: [
      attachAddress<AttachmentState>(externalIpAttachment),
      asking(
        'place',
        (run: AttachmentRun) => ({
          port: 'takings',
          operation: 'place',
          lane: 'takings',
          args: whereItsAddressIs(run),
        }),
        {
          after: ['attach'],
          done: ({ subject }) => subject.place !== undefined,
          record: ({ id }, { place }, at) =>
            isObject(place)
              ? { type: 'PlaceOnHub', at, ...placeIn(place, EXTERNAL_IP_ATTACHMENT.nameOf(id)) }
              : undefined,
        },
      ),
    ],
    wanted: (run) => {
      const document = documentOf(run);
      const { onHub = '', id = '' } = targetIn(document) ?? {};
      const endpoint = ENDPOINTS[endpointIn(document)];
      return {
        spec: {
          externalIP: addressIn(document),
          [onHub]: id,
          ...(endpoint === undefined ? {} : { targetEndpoint: endpoint }),
        },
      };
    },
    ready: (run, _object, at) => ({
      type: 'RecordAttached',
      at,
      address: stringAt(run.done['attach']?.result, 'address'),
    }),
    states: ['accepted', 'pending', 'ready', 'failed', 'deleting'],
    deeds: {
      attach: 'claim its address',
      'undo-attach': 'give its address back',
      place: 'find the hub of its address',
    },
    sentences: {
      ExternalIPAttachmentBecameReady: (data) => `Address ${stringAt(data, 'address')} is attached.`,
    },
  },
);
