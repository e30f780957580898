import { invalid, type Rejection } from '../decider.ts';
import type { PoolSize } from './pool.ts';

/** What the fields of pools of both kinds have in common. */
const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/;
/** A year. */
const MOST_SECONDS = 31_536_000;

export const nameRejection = (field: string, name: string): Rejection | undefined =>
  NAME.test(name)
    ? undefined
    : invalid(
        'INVALID_NAME',
        field,
        `field '${field}' must be 1 to 63 lower-case letters, digits, dots and hyphens (got '${name.slice(0, 64)}')`,
      );

export const quarantineRejection = ({ quarantineSeconds: seconds }: PoolSize): Rejection | undefined =>
  Number.isSafeInteger(seconds) && seconds >= 0 && seconds <= MOST_SECONDS
    ? undefined
    : invalid(
        'INVALID_QUARANTINE',
        'quarantine_seconds',
        `field 'quarantine_seconds' must be a whole number from 0 to ${MOST_SECONDS} (got ${seconds})`,
      );
