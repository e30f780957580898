import type { JsonObject } from '../json.ts';
import { withoutEmpty } from '../json-tools.ts';
import { holdersOf, messageOf, type Placed } from '../placed-document.ts';
import type { ObservedInstance } from './event-shapes.ts';

const CONDITION = 'COMPUTE_INSTANCE_CONDITION_TYPE_';
/** As a hub calls them. */
const CONDITIONS: { readonly [type: string]: string } = {
  ConfigurationApplied: 'CONFIGURATION_APPLIED',
  Ready: 'READY',
  RestartInProgress: 'RESTART_IN_PROGRESS',
  RestartFailed: 'RESTART_FAILED',
  Provisioned: 'PROVISIONED',
  RestartRequired: 'RESTART_REQUIRED',
};

/** Those that its hub shows; what stands in its way before that, or in place of it, is said of its provisioning. */
export const conditionsOf = (
  state: Placed & { readonly observed?: ObservedInstance },
): readonly JsonObject[] => {
  const { failure, waiting, observed } = state;
  const shown = (observed?.conditions ?? []).flatMap(({ type, status, lastTransitionTime, ...said }) =>
    CONDITIONS[type] === undefined
      ? []
      : [
          withoutEmpty({
            type: CONDITION + CONDITIONS[type],
            status: `CONDITION_STATUS_${status.toUpperCase()}`,
            last_transition_time: lastTransitionTime ?? '',
            reason: said.reason ?? '',
            message: said.message ?? '',
          }),
        ],
  );
  const why = messageOf(state);
  if (why === '') return shown;
  const provisioned = `${CONDITION}PROVISIONED`;
  const reason = waiting === undefined && holdersOf(state).length === 0 ? (failure?.reason ?? '') : 'Waiting';
  return [
    ...shown.filter(({ type }) => type !== provisioned),
    withoutEmpty({
      type: provisioned,
      status: 'CONDITION_STATUS_FALSE',
      last_transition_time: (waiting ?? failure)?.at ?? '',
      reason,
      message: why,
    }),
  ];
};
