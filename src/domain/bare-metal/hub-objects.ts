import { z } from 'zod';
import { base32, fnv1a64 } from '../hash.ts';
import {
  shownConditions,
  shownList,
  shownMeta,
  shownPart,
  shownText,
  wholeNumber,
  type Condition,
} from '../hubs/hub-codecs.ts';
import { plainDrift, type OwnedObject, type OwnedShown } from '../hubs/hub-object.ts';
import { userDataSecret } from '../machines/user-data.ts';
import { networkObject } from '../networks/hub-objects.ts';

/** What a bare-metal instance is on a hub (OSAC's operator of bare metal), and the Secret that holds its user data. */
const WORD = 'baremetalinstance';
const attachment = z.object({
  subnetRef: z.string(),
  securityGroupRefs: z.array(z.string()).readonly(),
  interface: z.exactOptional(z.string()),
  primary: z.exactOptional(z.literal(true)),
});

const instanceSpec = z.object({
  hostType: z.string(),
  /** Empty: the operator fills it once it has found a host, and it is never written again. */
  externalHostID: z.literal(''),
  templateID: z.string(),
  templateParameters: z.string(),
  runStrategy: z.enum(['Always', 'Halted']),
  restartTrigger: z.exactOptional(z.int()),
  selector: z.exactOptional(z.object({ hostSelector: z.record(z.string(), z.string()) })),
  networkAttachments: z.exactOptional(z.array(attachment).max(8).readonly()),
});
type InstanceSpec = z.infer<typeof instanceSpec>;

/** Only what may change; what is immutable there is as it was written. */
const MUTABLE = ['runStrategy', 'restartTrigger', 'networkAttachments'] as const;
type ShownSpec = Partial<Pick<InstanceSpec, (typeof MUTABLE)[number]>>;
const shownAttachment = shownPart({
  subnetRef: shownText,
  securityGroupRefs: shownList(z.string()),
  interface: z.exactOptional(z.string()).catch(undefined as never),
  primary: z.exactOptional(z.literal(true)).catch(undefined as never),
});
const mac = z
  .string()
  .transform((text) => text.toLowerCase())
  .pipe(z.string().regex(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/));

const shownInstance = shownPart({
  spec: shownPart({
    runStrategy: z.enum(['Always', 'Halted']).optional().catch(undefined),
    restartTrigger: wholeNumber,
    networkAttachments: shownList(shownAttachment),
  }),
  status: shownPart({
    phase: shownText,
    conditions: shownConditions,
    restartTrigger: wholeNumber,
    hardware: shownPart({
      nics: shownList(z.object({ mac })),
    }),
    networkAttachmentStatuses: shownList(
      shownPart({
        interface: shownText,
        subnetRef: shownText,
        ipAddress: shownText,
        primary: z.boolean().catch(false),
      }),
    ),
  }),
});

type ShownInstance = OwnedShown<ShownSpec> & {
  readonly phase: string;
  readonly message: string;
  readonly conditions: readonly Condition[];
  readonly nics: readonly string[];
  readonly attachments: readonly {
    readonly interface: string;
    readonly subnet: string;
    readonly address: string;
    readonly primary: boolean;
  }[];
  readonly restartTrigger: number;
};

const picked = (spec: object): object =>
  Object.fromEntries(
    Object.entries(spec).filter(([field]) => (MUTABLE as readonly string[]).includes(field)),
  );

export const BARE_METAL_INSTANCE: OwnedObject<InstanceSpec, ShownInstance> = {
  ...networkObject('BareMetalInstance', WORD, 'bare metal instances'),
  nameOf: (id) => `bmi-${base32(fnv1a64(id))}`,
  spec: instanceSpec,
  sample: {
    spec: {
      hostType: 'default',
      externalHostID: '',
      templateID: 'check',
      templateParameters: '{}',
      runStrategy: 'Always',
      restartTrigger: 1,
      selector: { hostSelector: { class: 'check' } },
      networkAttachments: [
        { subnetRef: 'check', securityGroupRefs: ['check'], interface: 'eth0', primary: true },
      ],
    },
    status: {
      phase: 'Ready',
      restartTrigger: 1,
      conditions: [
        {
          type: 'PowerSynced',
          status: 'True',
          reason: 'PowerOn',
          message: '',
          lastTransitionTime: '2026-11-23T00:00:00Z',
        },
      ],
      hardware: { nics: [{ mac: '02:00:00:00:00:01' }] },
      networkAttachmentStatuses: [
        { interface: 'eth0', subnetRef: 'check', ipAddress: '10.0.0.5', primary: true },
      ],
    },
  },
  drift: (stored, wanted) => plainDrift(stored, picked(wanted)),
  shown: (object) => {
    const { spec, status } = shownInstance.parse(object);
    const { phase, conditions, hardware, networkAttachmentStatuses, restartTrigger = 0 } = status;
    const failed = conditions.find(({ status: is, message }) => is === 'False' && message !== undefined);
    return {
      ...shownMeta(object, BARE_METAL_INSTANCE.idLabel),
      spec: spec as ShownSpec,
      phase,
      conditions,
      nics: hardware.nics.map((nic) => nic.mac),
      attachments: networkAttachmentStatuses.map(({ interface: name, subnetRef, ipAddress, primary }) => ({
        interface: name,
        subnet: subnetRef,
        address: ipAddress,
        primary,
      })),
      restartTrigger,
      message: failed?.message ?? '',
    };
  },
};

export const BARE_METAL_USER_DATA = userDataSecret(
  'BareMetalUserDataSecret',
  WORD,
  'bare metal instance',
  // A virtual machine may have the same id.
  'bmi-userdata',
);
