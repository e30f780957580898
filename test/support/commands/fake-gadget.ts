import { z } from 'zod';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { documentKind } from '../../../src/domain/catalog/document-kind.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import type { EventType } from '../../../src/domain/event-type.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt } from '../../../src/domain/json-tools.ts';
import type { EventOf } from '../domain/decider-spec.ts';

/** A kind with a name per project and unique codes that may change. */
export const gadget = documentKind({
  kind: 'gadget',
  context: 'gadgets',
  events: {
    created: 'GadgetDefined',
    revised: 'GadgetRevised',
    deletionRequested: 'GadgetRetirementRequested',
    retired: 'GadgetRetired',
  },
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  uniqueValues: (document) =>
    codesOf(document).map((code) => ({
      scope: 'gadget.code',
      value: code,
      field: 'spec.codes',
    })),
  protectedWhileReferenced: false,
});
export type GadgetEvent = EventOf<typeof gadget>;

const eventType = (type: string, more: Partial<EventType> = {}): EventType => ({
  type,
  version: 1,
  context: 'gadgets',
  audience: 'provider',
  schema: z.looseObject({}),
  ...more,
});

export const gadgetCodec = createEventCodec([
  eventType('GadgetDefined', { begins: true }),
  eventType('GadgetRevised'),
  eventType('GadgetRetirementRequested'),
  eventType('GadgetRetired'),
  eventType('CreationAbandoned', { changesDocument: false }),
  eventType('NameReserved', { changesDocument: false }),
  eventType('NameReleased', { changesDocument: false }),
]);

export const GADGET_LIFECYCLE = { starts: ['GadgetDefined'], ends: ['GadgetRetired'] } as const;

export const createGadget =
  (id: string, name: string, codes: readonly string[] = []) =>
  (abandonedBefore: number): DocumentCommand => ({
    type: 'CreateDocument',
    at: '2026-11-21T10:00:00.000Z',
    id,
    tenant: 'acme',
    project: '',
    name,
    creator: 'subject-1',
    document: { metadata: {}, spec: { codes: [...codes] } },
    abandonedBefore,
  });

export const reviseGadget = (codes: readonly string[]): DocumentCommand => ({
  type: 'ReviseDocument',
  at: '2026-11-21T10:00:01.000Z',
  document: { spec: { codes: [...codes] } },
  paths: ['spec.codes'],
});

export const deleteGadget: DocumentCommand = { type: 'DeleteDocument', at: '2026-11-21T10:00:02.000Z' };

const codesOf = (document: JsonObject): string[] =>
  listAt(objectAt(document, 'spec'), 'codes').filter((code) => typeof code === 'string');
