import { kinds } from '../../../domain/kinds.ts';
import type { ResourceKind } from '../../../domain/resource.ts';
import { EVENTS, MESSAGES, type Surface } from '../messages.ts';
import type { FilterTarget } from './fields.ts';

type Declared = Pick<ResourceKind, 'message' | 'secrets' | 'event'>;

/** What lists of a kind can be asked about; undefined when the surface does not have the kind. */
export const listTarget = (kind: Declared, surface: Surface): FilterTarget | undefined => {
  const schema = MESSAGES[kind.message]?.[surface];
  return schema === undefined
    ? undefined
    : { root: 'this', schema, hidden: kind.secrets.map(({ path }) => path) };
};

/** What watches of a surface can be asked about (OSAC). */
export const eventTarget = (surface: Surface, declared: readonly Declared[] = kinds): FilterTarget => ({
  root: 'event',
  schema: EVENTS[surface],
  hidden: declared.flatMap(({ event, secrets }) =>
    event === undefined ? [] : secrets.map(({ path }) => `${event.field}.${path}`),
  ),
});
