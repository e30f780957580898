import type { JsonObject } from '../../domain/json.ts';
import { EVENTS, type Surface } from '../osac/messages.ts';
import { record, TEXT } from './ledger-schemas.ts';
import { componentRef, type MessageSchemas } from './message-schemas.ts';
import type { Operation } from './operation.ts';
import { headerRefs, type ParameterName } from './parameters.ts';
import { tagOf } from './osac-operations.ts';
import { ANY_CALL } from './refusals.ts';

/** A watch as it is served: on which surface, under which path (OSAC). */
export type WatchRoute = { readonly surface: Surface; readonly path: string };

const PARAMETERS: readonly ParameterName[] = [
  'watch_filter',
  'from',
  'Last_Event_ID',
  'X_Ledger_Min_Position',
];

export const watchOperation = ({ surface, path }: WatchRoute, schemas: MessageSchemas): Operation => ({
  verb: 'get',
  path,
  operationId: `${surface}_Events_Watch`,
  tag: tagOf(surface, 'Events'),
  summary: 'Changes as they happen',
  description:
    'The answer begins at once and goes on until you close the connection. As newline-delimited JSON, or with ' +
    '`Accept: text/event-stream` as Server-Sent Events. After a break, `from` (or `Last-Event-ID`) goes on without ' +
    'loss or repetition. A reader that does not read is closed with the last id it was sent.',
  parameters: PARAMETERS,
  answers: {
    200: {
      description: 'One event per line.',
      headers: headerRefs('X_Ledger_Watch_Id'),
      content: {
        'application/json': { schema: watchLine(surface, schemas) },
        'text/event-stream': { schema: TEXT },
      },
    },
  },
  errors: [...ANY_CALL, 'OUT_OF_RANGE'],
  style: 'osac-stream',
});

const watchLine = (surface: Surface, schemas: MessageSchemas): JsonObject => {
  const event = schemas.ref(EVENTS[surface], 'answer');
  return { anyOf: [record({ result: record({ event }) }), componentRef('StreamError')] };
};
