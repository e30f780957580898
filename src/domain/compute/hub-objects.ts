import { z } from 'zod';
import { plainDrift, type OwnedObject, type OwnedShown } from '../hubs/hub-object.ts';
import {
  shownConditions,
  shownList,
  shownMeta,
  shownPart,
  shownText,
  type Condition,
} from '../hubs/hub-codecs.ts';
import { userDataSecret } from '../machines/user-data.ts';
import { explained, networkObject } from '../networks/hub-objects.ts';

/** What a compute instance is on a hub (OSAC's operator), and the Secret that holds its user data. */
const maybe = z.exactOptional(z.string());
const shownMaybe = maybe.catch(undefined as never);
const disk = z.object({ sizeGiB: z.int().min(1), storageTier: maybe });
const attachment = z.object({ subnetRef: z.string(), securityGroupRefs: z.array(z.string()).readonly() });

const instanceSpec = z.object({
  templateID: z.string(),
  templateParameters: z.string(),
  cores: z.int().min(1).max(128),
  memoryGiB: z.int().min(1),
  image: z.object({ sourceType: z.literal('registry'), sourceRef: z.string().min(1) }),
  bootDisk: disk,
  additionalDisks: z.exactOptional(z.array(disk).readonly()),
  runStrategy: z.enum(['Always', 'Halted']),
  gpu: z.exactOptional(
    z.object({
      pciDeviceSelector: z.string(),
      resourceName: z.string(),
      count: z.int().min(1).max(16),
    }),
  ),
  guestOSFamily: maybe,
  sshKey: maybe,
  userDataSecretRef: z.exactOptional(z.object({ name: z.string() })),
  networkAttachments: z.array(attachment).max(8).readonly(),
  restartRequestedAt: maybe,
});
type InstanceSpec = z.infer<typeof instanceSpec>;

const shownAttachment = shownPart({ subnetRef: shownText, securityGroupRefs: shownList(z.string()) });
/** Only what may change; what is immutable there is as it was written. */
const MUTABLE = ['templateParameters', 'runStrategy', 'networkAttachments', 'restartRequestedAt'] as const;
type ShownSpec = Pick<InstanceSpec, 'networkAttachments' | 'templateParameters'> & {
  readonly runStrategy: string;
  readonly restartRequestedAt?: string;
};
const shownInstance = shownPart({
  spec: shownPart({
    templateParameters: shownText,
    runStrategy: shownText,
    networkAttachments: shownList(shownAttachment),
    restartRequestedAt: shownMaybe,
  }),
  status: shownPart({
    phase: shownText,
    conditions: shownConditions,
    ipAddress: shownText,
    externalIPAddress: shownText,
    lastRestartedAt: shownText,
  }),
});

type ShownInstance = OwnedShown<ShownSpec> & {
  readonly phase: string;
  readonly message: string;
  readonly conditions: readonly Condition[];
  readonly ipAddress: string;
  readonly externalIPAddress: string;
  readonly lastRestartedAt: string;
};

const picked = (spec: object): object =>
  Object.fromEntries(
    Object.entries(spec).filter(([field]) => (MUTABLE as readonly string[]).includes(field)),
  );

export const COMPUTE_INSTANCE: OwnedObject<InstanceSpec, ShownInstance> = {
  ...networkObject('ComputeInstance', 'computeinstance', 'compute instances'),
  webhook: 'create-compute-instance',
  spec: instanceSpec,
  sample: {
    spec: {
      templateID: 'check',
      templateParameters: '{}',
      cores: 2,
      memoryGiB: 4,
      image: { sourceType: 'registry', sourceRef: 'quay.example/image:1' },
      bootDisk: { sizeGiB: 20, storageTier: 'fast' },
      additionalDisks: [{ sizeGiB: 10 }],
      runStrategy: 'Always',
      gpu: { pciDeviceSelector: '10de:20b0', resourceName: 'nvidia.com/A100', count: 1 },
      guestOSFamily: 'linux',
      sshKey: 'ssh-ed25519 AAAA',
      userDataSecretRef: { name: 'check' },
      networkAttachments: [{ subnetRef: 'check', securityGroupRefs: ['check'] }],
      restartRequestedAt: '2026-11-23T00:00:00Z',
    },
    status: {
      phase: 'Running',
      ipAddress: '10.0.0.5',
      externalIPAddress: '192.0.2.1',
      lastRestartedAt: '2026-11-23T00:00:00Z',
    },
  },
  drift: (stored, wanted) => plainDrift(stored, picked(wanted)),
  shown: (object) => {
    const { spec, status } = shownInstance.parse(object);
    const meta = shownMeta(object, COMPUTE_INSTANCE.idLabel);
    const { conditions } = status;
    const failed = conditions.find(({ type, status: is }) => type === 'Provisioned' && is === 'False');
    return { ...meta, spec, ...status, message: failed?.message ?? explained(conditions) };
  },
};

export const USER_DATA_SECRET = userDataSecret('UserDataSecret', 'computeinstance', 'compute instance');
