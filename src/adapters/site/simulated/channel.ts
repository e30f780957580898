import { programBeside } from '../../management-cluster/worker-thread.ts';
import {
  createEngineRoom,
  inlineChannel,
  workerChannel,
  type AnyChannel,
  type CommonAsk,
} from '../../simulation/channel.ts';
import { createSiteEngine, type SiteCall, type SiteEngine, type SiteEngineOptions } from './engine.ts';
import type { ScopedSettings } from './settings.ts';

type OtherAsk =
  | { readonly do: 'configure'; readonly settings: ScopedSettings; readonly now: number }
  | { readonly do: 'synchronous' };
export type SiteAsk = CommonAsk<SiteEngineOptions, { readonly call: SiteCall }> | OtherAsk;
export type SiteChannel = AnyChannel<SiteAsk>;

const tell = (engine: SiteEngine, question: OtherAsk): number =>
  question.do === 'configure' ? engine.configure(question.settings, question.now) : engine.synchronous();

export const createSiteRoom = (monotonicMs: () => number) =>
  createEngineRoom({ word: 'site', open: createSiteEngine, tell }, monotonicMs);

export const createInlineSiteChannel = (monotonicMs: () => number): SiteChannel =>
  inlineChannel(createSiteRoom(monotonicMs));

/** One worker thread for all simulated sites of a process. */
export const createSiteChannel = (): SiteChannel =>
  workerChannel<SiteAsk>('simulated-sites', programBeside(import.meta.url, 'site-worker'));
