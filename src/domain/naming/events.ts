import type { EventOf } from '../schemas.ts';
import type { NAME_SHAPES } from './event-types.ts';

/**
 * Events of `name-<hash of kind, tenant, project, name>`: the stream that owns one name. The same
 * mechanism serves tenant domains, version numbers and "one default version". The stream's id is a hash, so that no
 * stream name holds personal text; `holder` is the resource's id.
 */
export type NameEvent = EventOf<typeof NAME_SHAPES>;
