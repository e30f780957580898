import { BARE_METAL_INSTANCE, BARE_METAL_USER_DATA } from '../../../../domain/bare-metal/hub-objects.ts';
import { fnv1a64, hex64 } from '../../../../domain/hash.ts';
import { OSAC_GROUP } from '../../../../domain/hubs/hub-object.ts';
import type { ObjectRecord } from '../record.ts';
import type { Behaviour } from './behaviour.ts';
import { addressOf, conditionsAt, subnetsIn, userDataBehaviour } from './machines.ts';
import { phaseBehaviour, type Before } from './phases.ts';

/** Whole hosts: one is found by its labels, made ready, and powered as the spec says. */
type Spec = {
  readonly runStrategy?: string;
  readonly restartTrigger?: number;
  readonly selector?: { readonly hostSelector?: { readonly [label: string]: string } };
  readonly networkAttachments?: readonly {
    readonly subnetRef: string;
    readonly interface?: string;
    readonly primary?: boolean;
  }[];
};
const runs = (spec: Spec | undefined): boolean => spec?.runStrategy === 'Always';
const triggerIn = (spec: Spec | undefined): number => spec?.restartTrigger ?? 0;

/** Hardware addresses of a host, locally administered. */
const macOf = ({ uid }: ObjectRecord, index: number): string => {
  const digits = hex64(fnv1a64(`${uid}/${index}`)).slice(0, 10);
  return `02:${(digits.match(/../g) ?? []).join(':')}`;
};

const attachmentsIn = ({ networkAttachments = [] }: Spec) => networkAttachments;

const begun = (record: ObjectRecord, before: Before): object => {
  const [spec, was] = [record.spec as Spec, before.spec as Spec | undefined];
  const nics = Array.from({ length: Math.max(1, attachmentsIn(spec).length) }, (_, index) =>
    macOf(record, index),
  );
  if (was === undefined)
    return {
      phase: 'Progressing',
      nics,
      message: '',
      conditions: conditionsAt(before, [['Allocated', true, 'HostAllocated']]),
    };
  const isSame = runs(spec) === runs(was) && (!runs(spec) || triggerIn(spec) === triggerIn(was));
  return isSame ? {} : { conditions: conditionsAt(before, [['PowerSynced', false, 'Progressing']]) };
};

const settled = (record: ObjectRecord, before: Before): object => {
  const spec = record.spec as Spec;
  return {
    phase: 'Ready',
    message: '',
    restartTrigger: triggerIn(spec),
    attachments: attachmentsIn(spec).map((one) => ({
      interface: one.interface ?? '',
      subnet: one.subnetRef,
      address: addressOf(record, one.subnetRef),
      primary: one.primary === true,
    })),
    conditions: conditionsAt(before, [
      ['Available', true, 'AsExpected'],
      ['ProvisionTemplateComplete', true, 'TemplateSucceeded'],
      ['PowerSynced', true, runs(spec) ? 'PowerOn' : 'PowerOff'],
    ]),
  };
};

export const bareMetalBehaviours: readonly Behaviour[] = [
  phaseBehaviour({
    kind: BARE_METAL_INSTANCE,
    subnets: subnetsIn,
    finalizer: `${OSAC_GROUP}/baremetalinstance`,
    hosts: {
      wanted: (spec) => (spec as Spec).selector?.hostSelector ?? {},
      lacking: (before) => ({
        phase: 'Allocating',
        message: 'no free host has the wanted labels',
        conditions: conditionsAt(before, [['Allocated', false, 'NoMatchingHost']]),
      }),
    },
    phases: [
      { after: 'accept', status: begun },
      { after: 'finish', status: settled },
    ],
    failed: (text) => ({ phase: 'Failed', message: text }),
    deleting: { phase: 'Deleting' },
    immutable: ['hostType', 'templateID', 'templateParameters', 'selector'],
  }),
  userDataBehaviour(BARE_METAL_USER_DATA),
];
