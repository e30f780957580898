/** Hosts that may be on their way at once on one hub: what its provisioning carries. */
export const MAX_CONCURRENT = 20;

export type Stock = {
  readonly target: number;
  readonly free: number;
  readonly discovering: number;
  /** What orders that wait are short of. */
  readonly awaited: number;
  /** Hosts that can still be asked for; undefined: nobody knows. */
  readonly known?: number;
};

/** Hosts to ask for now: continuous review, S − (free + discovering), and what orders wait for. */
export const refill = (
  { target, free, discovering, awaited, known = Infinity }: Stock,
  slots: number,
): number => Math.max(0, Math.min(target + awaited - free - discovering, known, slots));

/** True while too few are free or on their way. */
export const isLow = ({
  target,
  free,
  discovering,
}: Pick<Stock, 'target' | 'free' | 'discovering'>): boolean => free + discovering < target;
