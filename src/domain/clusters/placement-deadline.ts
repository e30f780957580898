import { invalid, type Rejection } from '../decider.ts';
import { durationMs } from '../iso-duration.ts';
import { own } from '../json-tools.ts';

/** How long an order may wait for a place: annotation of the order, which wins over the setting of the service. */
export const DEADLINE_ANNOTATION = 'fulfillment-ledger/placement-deadline';

type Annotations = { readonly [key: string]: string };

/** As it is taken into the order's facts; a later change of either changes no order. */
export const placementDeadline = (
  annotations: Annotations,
  fallback: string | undefined,
): { readonly placementDeadline?: string } => {
  const deadline = own(annotations, DEADLINE_ANNOTATION) || fallback;
  return deadline === undefined ? {} : { placementDeadline: deadline };
};

/** Undefined: there is none, or it can be read. */
export const deadlineRejection = (annotations: Annotations): Rejection | undefined => {
  const text = own(annotations, DEADLINE_ANNOTATION) ?? '';
  return text === '' || durationMs(text) !== undefined
    ? undefined
    : invalid(
        'INVALID_DEADLINE',
        'metadata.annotations',
        `annotation '${DEADLINE_ANNOTATION}' must be an ISO 8601 duration such as PT30M or P2D, without years and months`,
      );
};
