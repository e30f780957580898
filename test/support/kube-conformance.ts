import type { Behaviour } from './kube-conformance/context.ts';
import { OUR_KINDS } from './kube-conformance/kinds.ts';
import { READING } from './kube-conformance/reading.ts';
import { RECORDED } from './kube-conformance/recorded.ts';
import { RIGHTS } from './kube-conformance/rights.ts';
import { WRITING } from './kube-conformance/writing.ts';

export { conformanceContext, type Behaviour, type ConformanceContext } from './kube-conformance/context.ts';

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
