import type { DomainEvent } from '../decider.ts';

/**
 * Events of `name-<hash of kind, tenant, project, name>`: the stream that owns one name (design §4). The same
 * mechanism serves tenant domains, version numbers and "one default version". The stream's id is a hash, so that no
 * stream name holds personal text; `holder` is the resource's id.
 */
export type NameEvent =
  | DomainEvent<
      'NameReserved',
      {
        readonly at: string;
        readonly kind: string;
        readonly holder: string;
        /** The command that creates the holder: its retry finds its own reservation. */
        readonly commandId: string;
        /** Stream whose first event completes the reservation. */
        readonly stream: string;
        /** Only of a slot that passes from one to the next: the stream of the resource that had it until now. */
        readonly takenFrom?: string;
      }
    >
  | DomainEvent<
      'NameReleased',
      { readonly at: string; readonly holder: string; readonly why: 'deleted' | 'abandoned' }
    >;
