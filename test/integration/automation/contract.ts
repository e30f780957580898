import { expect } from 'chai';
import {
  AutomationError,
  type Automation,
  type AutomationConnection,
  type AutomationPurpose,
} from '../../../src/app/automation/automation.ts';
import type { CallOptions } from '../../../src/app/hubs/management-cluster.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';

/** What a playbook was given. */
export type Given = { readonly purpose: AutomationPurpose; readonly order: JsonObject };

/** Credentials of a connection; `undefined` leaves one out. */
export type Credentials = { readonly token?: string | undefined; readonly hmacSecret?: string | undefined };

/** Automation to test an adapter on. Its playbooks only keep what they are given. */
export type AutomationUnderTest = {
  /** With the right credentials, but for what is named. */
  readonly connect: (change?: Credentials) => Automation;
  /** To an address where nothing listens. */
  readonly connectNowhere: () => Automation;
  /** In the order in which the playbooks began. */
  readonly given: () => Promise<readonly Given[]>;
  readonly patienceMs: number;
  readonly close: () => Promise<void>;
};

/** Values that must not come out anywhere. */
export const TOKEN = 'token-canary-5f1c';
export const HMAC_SECRET = 'hmac-canary-77aa';
export const PULL_SECRET = JSON.stringify({
  auths: { 'quay.io': { auth: Buffer.from('robot:pull-canary-90ab').toString('base64') } },
});
export const CANARIES: readonly string[] = [
  TOKEN,
  HMAC_SECRET,
  'pull-canary-90ab',
  Buffer.from('robot:pull-canary-90ab').toString('base64'),
];

/** References to the values above and to wrong ones, by value. */
export const secretStore = {
  reveal: async ({ id }: SecretRef): Promise<Uint8Array | undefined> =>
    id === 'absent' ? undefined : new TextEncoder().encode(id),
};
const refTo = (id: string): SecretRef => ({ id, version: 'v1', kind: 'secret-data', fingerprint: 'f' });

export const connectionTo = (
  mode: 'eda' | 'aap',
  url: string,
  credentials: Credentials,
  more: Partial<AutomationConnection> = {},
): AutomationConnection => ({
  hub: 'hub-a',
  mode,
  url,
  templatePrefix: 'osac',
  tenant: 'shared',
  ...(credentials.token === undefined ? {} : { token: refTo(credentials.token) }),
  ...(credentials.hmacSecret === undefined ? {} : { hmacSecret: refTo(credentials.hmacSecret) }),
  ...more,
});

let calls = 0;
export const callBy = (more: Partial<CallOptions> = {}): CallOptions => ({
  effectId: `contract-${process.pid}-${(calls += 1)}`,
  deadlineMs: 30_000,
  signal: new AbortController().signal,
  ...more,
});

/** A ClusterOrder as an API server stores it, with everything that playbooks read (OSAC's operator). */
export const orderCalled = (name: string, spec: JsonObject = {}): JsonObject => ({
  apiVersion: 'osac.openshift.io/v1alpha1',
  kind: 'ClusterOrder',
  metadata: {
    name,
    namespace: 'orders',
    uid: `uid-of-${name}`,
    generation: 1,
    labels: { 'osac.openshift.io/clusterorder-uuid': `id-of-${name}` },
    annotations: { 'osac.openshift.io/tenant': 'acme' },
    finalizers: ['osac.openshift.io/finalizer'],
  },
  spec: {
    templateID: 'osac.templates.ocp_small',
    templateParameters: '{"size":"5","greeting":"grüße, 你好"}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
    pullSecret: PULL_SECRET,
    sshPublicKey: 'ssh-ed25519 AAAA someone@example',
    ...spec,
  },
  status: { phase: 'Progressing', conditions: [] },
});

export const refusedWith = async (work: Promise<unknown>): Promise<AutomationError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof AutomationError) return error;
    throw error;
  }
  throw new Error('it was not refused');
};

/** Everything that an error could tell, causes included. */
export const everythingIn = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { cause, ...own } = error as Error & { cause?: unknown };
  return [
    error.message,
    error.stack,
    JSON.stringify(own),
    cause === undefined ? '' : everythingIn(cause),
  ].join('\n');
};

const POLL_MS = 20;

/** What every automation does, whatever runs its playbooks. */
export const describeAutomationContract = (
  name: string,
  factory: () => Promise<AutomationUnderTest>,
  options: {
    /** It verifies a signature beside the token. */
    readonly signed: boolean;
    /** Where starting one takes long, all specs use the same. */
    readonly each?: 'fresh' | 'shared';
  },
): void => {
  describe(`automation: ${name}`, function () {
    this.timeout(120_000);
    const shared = options.each === 'shared';
    let under: AutomationUnderTest;
    let names = 0;

    before(async () => {
      if (shared) under = await factory();
    });
    beforeEach(async () => {
      if (!shared) under = await factory();
    });
    afterEach(async () => {
      if (!shared) await under.close();
    });
    after(async () => {
      if (shared) await under?.close();
    });

    const newName = (): string => `order-${process.pid}-${(names += 1)}`;
    const givenTo = async (order: string): Promise<readonly Given[]> =>
      (await under.given()).filter((given) => nameOf(given.order) === order);
    const until = async (orders: readonly string[]): Promise<readonly Given[]> => {
      const end = performance.now() + under.patienceMs;
      for (;;) {
        const given = await under.given();
        const known = new Set(given.map(({ order }) => nameOf(order)));
        if (orders.every((order) => known.has(order))) return given;
        if (performance.now() > end) {
          throw new Error(`playbooks ran for ${[...known].join(', ')}, not for all of ${orders.join(', ')}`);
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    };
    const trigger = (
      order: JsonObject,
      purpose: AutomationPurpose = 'provision',
      automation = under.connect(),
    ) => automation.trigger({ purpose, orderName: nameOf(order), order }, callBy());

    for (const purpose of ['provision', 'deprovision'] as const) {
      it(`runs the playbook to ${purpose} once, with the whole order`, async () => {
        const order = orderCalled(newName());
        await trigger(order, purpose);
        await until([nameOf(order)]);
        expect(await givenTo(nameOf(order))).to.deep.equal([{ purpose, order }]);
      });
    }

    it('runs a playbook for each of several orders asked for at once', async () => {
      const orders = Array.from({ length: 5 }, () => orderCalled(newName()));
      const automation = under.connect();
      await Promise.all(orders.map((order) => trigger(order, 'provision', automation)));
      await until(orders.map(nameOf));
      for (const order of orders) expect(await givenTo(nameOf(order))).to.have.length(1);
    });

    it('finds nothing wrong when it is asked whether all is well, and starts nothing', async () => {
      const before = (await under.given()).length;
      expect(await under.connect().check(callBy())).to.deep.equal({ problems: [] });
      expect(await under.given()).to.have.length(before);
    });

    const wrong: readonly (readonly [string, Credentials])[] = [
      ['a wrong token', { token: 'wrong-canary-1' }],
      ['no token', { token: undefined }],
      ['a token that is not in the secret store', { token: 'absent' }],
    ];
    const wrongSignature: typeof wrong = [
      ['a wrong HMAC secret', { hmacSecret: 'wrong-canary-2' }],
      ['no signature', { hmacSecret: undefined }],
    ];
    for (const [what, change] of [...wrong, ...(options.signed ? wrongSignature : [])]) {
      it(`with ${what} says that it is not authorized, names no secret and starts nothing`, async () => {
        const order = orderCalled(newName());
        const automation = under.connect(change);
        const error = await refusedWith(trigger(order, 'provision', automation));
        expect(error.kind).to.equal('unauthorized');
        const { problems } = await automation.check(callBy());
        expect(problems).to.have.length(1);
        for (const secret of [...CANARIES, 'wrong-canary'])
          expect(everythingIn(error) + problems.join()).not.to.include(secret);
        expect(await givenTo(nameOf(order))).to.deep.equal([]);
      });
    }

    it('says that nothing was done when nothing listens there', async () => {
      const error = await refusedWith(trigger(orderCalled(newName()), 'provision', under.connectNowhere()));
      expect(error.kind).to.equal('unavailable');
      for (const secret of CANARIES) expect(everythingIn(error)).not.to.include(secret);
      expect((await under.connectNowhere().check(callBy())).problems).to.have.length(1);
    });

    it('sends nothing once its caller has given up', async () => {
      const order = orderCalled(newName());
      const call = callBy({ signal: AbortSignal.abort() });
      const error = await refusedWith(
        under.connect().trigger({ purpose: 'provision', orderName: nameOf(order), order }, call),
      );
      expect(error.kind).to.equal('unavailable');
    });

    it('refuses an order whose text playbooks would carry out', async () => {
      for (const parameters of [
        '{"a":"{{ 7*6 }}"}',
        String.raw`{"a":"\u007b\u007b 7*6 }}"}`,
        '{"{% x %}":1}',
      ]) {
        const order = orderCalled(newName(), { templateParameters: parameters });
        const error = await refusedWith(trigger(order));
        expect(error.kind).to.equal('invalid');
        expect(error.message).to.include('spec.templateParameters');
      }
    });
  });
};

export const nameOf = (order: JsonObject): string => (order['metadata'] as { name: string }).name;
