import type { Behaviour } from './context.ts';
import { OUR_KINDS } from './kinds.ts';
import { READING } from './reading.ts';
import { RECORDED } from './recorded.ts';
import { RIGHTS } from './rights.ts';
import { WRITING } from './writing.ts';

export { conformanceContext, type Behaviour, type ConformanceContext } from './context.ts';

/**
 * What an API server does that our adapter relies on, as checks over a plain HTTPS client. The stand-in and a real
 * kube-apiserver (with the namespace, serviceaccount, token and garbage-collector controllers) both pass the list. The
 * recorded answers at its end build on each other: run the list in order, in one context.
 */
export const KUBE_BEHAVIOURS: readonly Behaviour[] = [
  ...WRITING,
  ...READING,
  ...RIGHTS,
  ...OUR_KINDS,
  ...RECORDED,
];
