import type { Manifest, ObjectPlace, HubObjectEvent } from '../../../domain/hubs/hub-object.ts';
import type { ObjectLook } from '../../../app/hubs/management-cluster.ts';
import type { HubErrorData } from '../error-data.ts';
import type { GivenSettings } from './settings.ts';

/**
 * What travels between the adapter and the engine of a hub: plain data, since the engine usually lives in a worker
 * thread. The engine knows no clock; hub time comes with every message. Kinds go by their words.
 */
type PatchedPlace = ObjectPlace & { readonly part?: 'status' };
export type CallRequest = { readonly kind: string } & (
  | { readonly op: 'create'; readonly manifest: Manifest }
  | { readonly op: 'patch'; readonly ref: PatchedPlace; readonly spec: object }
  | { readonly op: 'delete'; readonly ref: ObjectPlace & { readonly uid?: string } }
  | { readonly op: 'get'; readonly ref: ObjectPlace }
  | { readonly op: 'find'; readonly namespace: string; readonly id: string }
  | { readonly op: 'read-secret'; readonly ref: ObjectPlace; readonly key: string }
  /** `beside`: the kind that is read beside each; null for one that has to be read by itself. */
  | { readonly op: 'digests'; readonly looks: readonly ObjectLook[]; readonly beside?: string }
  /** Whether it answers. */
  | { readonly op: 'check' }
);

/** Deeds of people and other programs on the hub, behind the back of whoever uses it. Never faulty. */
export type Tampering =
  | { readonly op: 'configure'; readonly settings: GivenSettings }
  /** `what`: kind of what disappears, the object or one beside it. */
  | { readonly op: 'vanish'; readonly kind: string; readonly ref: ObjectPlace; readonly what: string }
  | {
      readonly op: 'remove-finalizer';
      readonly kind: string;
      readonly ref: ObjectPlace;
      readonly finalizer: string;
    };

export type CallMeta = {
  /** Hub time in milliseconds since 1970. */
  readonly now: number;
  readonly effectId: string;
  /** True: this call was held up on its way (fault `late`) and now arrives. */
  readonly arrived: boolean;
};

export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: HubErrorData };

/** `now` is the hub's time after the call; it never goes back, also not for another instance. */
export type EngineAnswer = { readonly now: number } & (
  | { readonly kind: 'answer'; readonly delayMs: number; readonly outcome: Outcome }
  | { readonly kind: 'silent' }
  | { readonly kind: 'late'; readonly afterMs: number }
);

export type WatchPoll = {
  readonly now: number;
  readonly events: readonly HubObjectEvent[];
  /** Hub time of the next change that comes by itself. */
  readonly nextAt?: number;
  /** The hub does not answer at the moment; the watch goes on when it does. */
  readonly down: boolean;
};

export const isWrite = (op: CallRequest['op']): boolean =>
  op === 'create' || op === 'patch' || op === 'delete';

export { errorData, hubError } from '../error-data.ts';
