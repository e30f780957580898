import type {
  CallOptions,
  HubController,
  HubReport,
  ManagementCluster,
} from '../../../app/hubs/management-cluster.ts';
import type { HubObjectEvent } from '../../../domain/hubs/hub-object.ts';
import type { HubErrorData } from '../error-data.ts';
import type { FromThread } from '../worker-thread.ts';
import type { HubNeeds } from './check.ts';

/** What can be done with a hub besides watching it. Each takes its CallOptions last. */
export type HubOperations = Omit<
  Required<ManagementCluster>,
  'hubId' | 'simulated' | 'check' | 'controller' | 'watch' | 'openConsole' | 'close'
> &
  HubController & {
    /** `thorough` as in CheckOptions, of which only CallOptions pass by themselves. */
    check(thorough: boolean, options: CallOptions): Promise<HubReport>;
  };

export type Operation = keyof HubOperations;

const CONTROLLING: readonly Operation[] = ['prepare', 'writeStatus', 'release'];
const OF_OBJECTS: readonly Operation[] = ['create', 'patch', 'delete', ...CONTROLLING];
/** Their first argument is a declared kind, of which the word alone passes between threads. */
const KINDED: readonly Operation[] = [...OF_OBJECTS, 'get', 'read', 'find', 'digests'];
const WRITES: readonly Operation[] = [
  ...OF_OBJECTS,
  'ensureTenantNamespace',
  'removeTenantNamespace',
  'writeMark',
];
export const isKinded = (op: Operation): boolean => KINDED.includes(op);
export const isWrite = (op: Operation): boolean => WRITES.includes(op);

/** One union of questions, so that the worker and the inline mode run the same code. Plain data only. */
export type Ask =
  /** Again with other credentials: they replace the first, and running watches start anew with them. */
  | { readonly do: 'open'; readonly needs: HubNeeds; readonly kubeconfig: Uint8Array }
  | {
      readonly do: 'call';
      readonly op: Operation;
      readonly args: readonly unknown[];
      readonly effectId: string;
      readonly deadlineMs: number;
      /** Number under which `abort` ends it. */
      readonly call: number;
    }
  | { readonly do: 'abort'; readonly call: number }
  | { readonly do: 'watch'; readonly kind: string; readonly namespace: string }
  | { readonly do: 'next'; readonly watch: number }
  | { readonly do: 'unwatch'; readonly watch: number }
  | { readonly do: 'close' };

/** Answer to each kind of question. */
export type Told<A extends Ask> = A extends { do: 'watch' }
  ? number
  : A extends { do: 'next' }
    ? readonly HubObjectEvent[] | undefined
    : A extends { do: 'call' }
      ? unknown
      : undefined;

export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: HubErrorData }
  | { readonly ok: false; readonly notOpen: true }
  | { readonly ok: false; readonly fault: string };

/** Something for the log of the process. */
export type Note = {
  readonly hub: number;
  readonly level: 'debug' | 'warn';
  readonly fields: { readonly [name: string]: string | number };
  readonly message: string;
};

export type FromWorker = FromThread<Answer> | { readonly note: Note };
