import { COMPUTE_INSTANCE, USER_DATA_SECRET } from '../../../../domain/compute/hub-objects.ts';
import { OSAC_GROUP } from '../../../../domain/hubs/hub-object.ts';
import { sameJson } from '../../../../domain/json-tools.ts';
import { kubernetesTime, type ObjectRecord } from '../record.ts';
import type { Behaviour } from './behaviour.ts';
import { addressOf, conditionsAt, subnetsIn, userDataBehaviour } from './machines.ts';
import { phaseBehaviour, type Before } from './phases.ts';

/** Machines: they start, stop and restart as their spec says; other changes do not touch what runs. */
type Spec = { readonly runStrategy?: string; readonly restartRequestedAt?: string };
const runs = (spec: Spec | undefined): boolean => spec?.runStrategy === 'Always';

const isRestart = (spec: Spec, was: Spec | undefined): boolean =>
  runs(spec) && runs(was) && !sameJson(spec.restartRequestedAt ?? null, was?.restartRequestedAt ?? null);

const begun = (record: ObjectRecord, before: Before): object => {
  const [spec, was] = [record.spec as Spec, before.spec as Spec | undefined];
  const restarts = isRestart(spec, was);
  const isSame = was !== undefined && runs(spec) === runs(was) && !restarts;
  if (isSame) return {};
  return {
    phase: was !== undefined && !runs(spec) ? 'Stopping' : 'Starting',
    ...(restarts ? { lastRestartedAt: kubernetesTime(before.now) } : {}),
    conditions: conditionsAt(before, [
      ['Provisioned', was !== undefined, was === undefined ? 'WaitingForVM' : 'InfrastructureReady'],
      ['Ready', false, 'Scheduling'],
      ['RestartInProgress', restarts, restarts ? 'RestartRequested' : 'NoRestart'],
    ]),
  };
};

const settled = (record: ObjectRecord, before: Before): object => {
  const spec = record.spec as Spec;
  return {
    phase: runs(spec) ? 'Running' : 'Stopped',
    ipAddress: addressOf(record, subnetsIn(spec)[0]),
    conditions: conditionsAt(before, [
      ['ConfigurationApplied', true, 'Applied'],
      ['Provisioned', true, 'InfrastructureReady'],
      ['Ready', runs(spec), runs(spec) ? 'Running' : 'Halted'],
      ['RestartInProgress', false, 'NoRestart'],
      ['RestartFailed', false, 'NoRestart'],
      ['RestartRequired', false, 'NoRestart'],
    ]),
  };
};

export const computeBehaviours: readonly Behaviour[] = [
  phaseBehaviour({
    kind: COMPUTE_INSTANCE,
    subnets: subnetsIn,
    finalizer: `${OSAC_GROUP}/computeinstance`,
    phases: [
      { after: 'accept', status: begun },
      { after: 'finish', status: settled },
    ],
    failed: (text) => ({ phase: 'Failed', message: text }),
    deleting: { phase: 'Deleting' },
    immutable: [
      'cores',
      'memoryGiB',
      'image',
      'bootDisk',
      'additionalDisks',
      'gpu',
      'guestOSFamily',
      'sshKey',
      'userDataSecretRef',
    ],
  }),
  userDataBehaviour(USER_DATA_SECRET),
];
