import type { StoredMark } from '../../../app/hubs/management-cluster.ts';
import type { HubMark } from '../../../domain/hubs/mark.ts';
import {
  createEngineRoom,
  inlineChannel,
  workerChannel,
  type AnyChannel,
  type CommonAsk,
} from '../../simulation/channel.ts';
import { programBeside } from '../worker-thread.ts';
import { createHubEngine, type HubEngine, type HubEngineOptions } from './engine.ts';
import type { CallMeta, CallRequest, EngineAnswer, Tampering, WatchPoll } from './protocol.ts';

/** What can be asked of an engine. */
export type Ask =
  | CommonAsk<HubEngineOptions, { readonly request: CallRequest; readonly meta: CallMeta }>
  | OtherAsk;
type OtherAsk =
  | { readonly do: 'tamper'; readonly deed: Tampering; readonly meta: CallMeta }
  | { readonly do: 'watch'; readonly kind: string; readonly namespace: string }
  | { readonly do: 'poll'; readonly watch: number; readonly now: number }
  | { readonly do: 'unwatch'; readonly watch: number }
  | { readonly do: 'read-mark' }
  | { readonly do: 'write-mark'; readonly mark: HubMark; readonly over: string | undefined }
  | { readonly do: 'synchronous' };

/** Answer to each kind of question. */
export type Told<A extends Ask> = A extends { do: 'call' }
  ? EngineAnswer
  : A extends { do: 'tamper' }
    ? { readonly now: number }
    : A extends { do: 'read-mark' }
      ? StoredMark | undefined
      : A extends { do: 'write-mark' }
        ? string | undefined
        : A extends { do: 'watch' | 'synchronous' }
          ? number
          : A extends { do: 'poll' }
            ? WatchPoll
            : undefined;

/** Where engines run. Rejects as any channel does. */
export type EngineChannel = Pick<AnyChannel<Ask>, 'next' | 'close'> & {
  ask<A extends Ask>(hub: number, question: A): Promise<Told<A>>;
};

const tell = (engine: HubEngine, question: OtherAsk): unknown => {
  switch (question.do) {
    case 'tamper':
      return engine.tamper(question.deed, question.meta);
    case 'watch':
      return engine.watches.open(question.kind, question.namespace);
    case 'poll':
      return engine.watches.poll(question.watch, question.now);
    case 'unwatch':
      return engine.watches.close(question.watch);
    case 'read-mark':
      return engine.readMark();
    case 'write-mark':
      return engine.writeMark(question.mark, question.over);
    case 'synchronous':
      return engine.synchronous();
  }
};

export const createHubRoom = (monotonicMs: () => number) =>
  createEngineRoom({ word: 'hub', open: createHubEngine, tell }, monotonicMs);

export const createInlineChannel = (monotonicMs: () => number): EngineChannel =>
  inlineChannel(createHubRoom(monotonicMs)) as EngineChannel;

/** One worker thread for all simulated hubs of a process. */
export const createWorkerChannel = (): EngineChannel =>
  workerChannel<Ask>('simulated-hubs', programBeside(import.meta.url, 'hub-worker')) as EngineChannel;
