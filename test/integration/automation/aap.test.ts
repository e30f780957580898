import { expect } from 'chai';
import { EFFECT_VARIABLE } from '../../../src/adapters/automation/aap/aap-automation.ts';
import { createAutomations } from '../../../src/adapters/automation/automations.ts';
import {
  AutomationError,
  type Automation,
  type AutomationJob,
} from '../../../src/app/automation/automation.ts';
import { COMPUTE_INSTANCE } from '../../../src/domain/compute/hub-objects.ts';
import type { OwnedObject } from '../../../src/domain/hubs/hub-object.ts';
import { EXTERNAL_IP, EXTERNAL_IP_POOL } from '../../../src/domain/networks/hub-objects.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { orderOfJob, startAap, type AapOptions, type AapStandIn } from '../../support/aap/aap-server.ts';
import { loopbackTls } from '../../support/http/loopback-tls.ts';
import { startStandIn } from '../../support/stand-in/process.ts';
import {
  callBy,
  CANARIES,
  connectionTo,
  describeAutomationContract,
  nameOf,
  orderCalled,
  PULL_SECRET,
  refusedWith,
  secretStore,
  TOKEN,
} from './contract.ts';
import { eventually } from '../../support/eventually.ts';

const RIGHT = { token: TOKEN };
const CREATE = 'osac-create-hosted-cluster';

for (const workflow of [true, false]) {
  describeAutomationContract(
    `automation platform with ${workflow ? 'workflow' : 'job'} templates, stand-in`,
    async () => {
      const aap = await startAap({
        token: TOKEN,
        templates: ['create', 'delete'].map((verb) => ({
          name: `osac-${verb}-hosted-cluster`,
          workflow,
          asksVariables: true,
        })),
      });
      const automations = createAutomations({ secrets: secretStore });
      return {
        connect: (change) => automations.of(connectionTo('aap', aap.url, { ...RIGHT, ...change })),
        connectNowhere: () => automations.of(connectionTo('aap', 'http://127.0.0.1:1', RIGHT)),
        given: async () =>
          aap.jobs.map((job) => ({
            purpose: job.template.name === CREATE ? ('provision' as const) : ('deprovision' as const),
            order: orderOfJob(job),
          })),
        patienceMs: 2_000,
        close: aap.close,
      };
    },
    { signed: false },
  );
}

describe('kinds that a hub’s automation makes nothing of', () => {
  const ofNetworks = [EXTERNAL_IP_POOL, EXTERNAL_IP];
  it('are those without a template, by name; what was missing is looked for again when it is asked to', async () => {
    const names = ['osac-create-external-ip'];
    const templates = names.map((name) => ({ name, workflow: false, asksVariables: true }));
    const aap = await startAap({ token: TOKEN, templates });
    const automation = createAutomations({ secrets: secretStore }).of(connectionTo('aap', aap.url, RIGHT));
    const lacked = (thorough: boolean) => automation.lacking?.(ofNetworks, { ...callBy(), thorough });
    const missing = {
      kind: 'ExternalIPPool',
      code: 'TemplateMissing',
      message: 'the automation platform has no job or workflow template called osac-create-external-ip-pool',
      subject: 'osac-create-external-ip-pool',
    };
    expect(await lacked(true)).to.deep.equal([missing]);
    await aap.close();
    expect(await lacked(false), 'nobody is asked again so soon').to.deep.equal([missing]);
    expect((await lacked(true)?.catch((error: unknown) => error)) instanceof AutomationError).to.equal(true);
  });
  it('are those without a webhook in mode eda', async () => {
    const connection = connectionTo('eda', 'http://127.0.0.1:1', RIGHT);
    const automation = createAutomations({ secrets: secretStore }).of(connection);
    const volume = { ...EXTERNAL_IP, kind: 'Volume', webhook: undefined } as unknown as OwnedObject;
    expect(
      await automation.lacking?.([...ofNetworks, volume], { ...callBy(), thorough: true }),
    ).to.deep.equal([
      { kind: 'Volume', code: 'WebhookMissing', message: 'mode eda has no webhook for Volume' },
    ]);
    expect(await automation.lacking?.([COMPUTE_INSTANCE], { ...callBy(), thorough: true })).to.deep.equal([]);
  });
});

describe('an automation that is not registered yet', () => {
  it('is checked with secrets that are kept nowhere', async () => {
    const aap = await startAap({
      token: TOKEN,
      templates: ['create', 'delete'].map((verb) => ({
        name: `osac-${verb}-hosted-cluster`,
        workflow: false,
        asksVariables: true,
      })),
    });
    const revealing = { reveal: () => Promise.reject(new Error('nothing is stored')) };
    const { candidate } = createAutomations({ secrets: revealing });
    const asked = {
      hub: 'hub-1',
      mode: 'aap',
      url: aap.url,
      templatePrefix: 'osac',
      tenant: 'shared',
    } as const;
    expect(await candidate?.({ ...asked, token: TOKEN }).check(callBy())).to.deep.equal({ problems: [] });
    expect((await candidate?.({ ...asked, token: 'wrong' }).check(callBy()))?.problems).to.have.lengthOf(1);
    // What the hub has already goes along as a reference.
    for (const [id, count] of [
      [TOKEN, 0],
      ['wrong', 1],
    ] as const) {
      const token = { id, version: 'v1', kind: 'automation-token', fingerprint: 'f' } as const;
      const kept = createAutomations({ secrets: secretStore }).candidate?.({ ...asked, token });
      expect((await kept?.check(callBy()))?.problems).to.have.lengthOf(count);
    }
    await aap.close();
  });
});

describe('automation platform', function () {
  this.timeout(10_000);
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  const start = async (more: AapOptions = {}): Promise<AapStandIn> => {
    const aap = await startAap({ token: TOKEN, pace: 'by-hand', ...more });
    closing.push(aap.close);
    return aap;
  };
  const automations = createAutomations({ secrets: secretStore });
  const connect = ({ url }: { url: string }, ca?: string): Automation =>
    automations.of(connectionTo('aap', url, RIGHT, ca === undefined ? {} : { ca }));
  const launch = async (automation: Automation, order: JsonObject, more = {}): Promise<AutomationJob> => {
    const triggered = await automation.trigger(
      { purpose: 'provision', orderName: nameOf(order), order },
      callBy(more),
    );
    if (triggered.kind !== 'launched') throw new Error('nothing was launched');
    return triggered.job;
  };
  const jobOf = (automation: Automation, job: Pick<AutomationJob, 'id' | 'workflow'>) =>
    automation.job?.(job, callBy());
  const find = (automation: Automation, effectId: string, since: string) =>
    automation.findJobs?.({ purpose: 'provision', since }, callBy({ effectId }));
  const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

  it('launches with both shapes of the order and the effect id', async () => {
    const aap = await start();
    const order = orderCalled('order-a');
    await launch(connect(aap), order, { effectId: 'run-1/trigger:1' });
    expect(aap.jobs.map(({ variables }) => variables)).to.deep.equal([
      {
        osac_job_vars: { resource: order },
        ansible_eda: { event: { payload: order } },
        [EFFECT_VARIABLE]: 'run-1/trigger:1',
      },
    ]);
  });

  it('resolves a template once, and again when it was made anew', async () => {
    const aap = await start();
    const automation = connect(aap);
    const lookUps = (): number => aap.requests.filter(({ path }) => path.includes('?name=')).length;
    await launch(automation, orderCalled('order-a'));
    await launch(automation, orderCalled('order-b'));
    const once = lookUps();
    aap.remakeTemplate(CREATE);
    await launch(automation, orderCalled('order-c'));
    expect([once, lookUps()]).to.deep.equal([2, 4]);
    expect(aap.jobs).to.have.length(3);
  });

  it('polls workflow jobs where they are, through every state', async () => {
    const aap = await start();
    const automation = connect(aap);
    const job = await launch(automation, orderCalled('order-a'));
    expect(job).to.include({ workflow: true, template: CREATE, state: 'Pending' });
    const seen: (string | undefined)[] = [];
    for (let n = 0; n < 4; n += 1) {
      seen.push((await jobOf(automation, job))?.state);
      await aap.advance(Number(job.id));
    }
    expect(seen).to.deep.equal(['Pending', 'Waiting', 'Running', 'Succeeded']);
    const asked = aap.requests.filter(({ path }) => /\/(workflow_)?jobs\/\d+/.test(path));
    expect(asked.every(({ path }) => path.startsWith(`/v2/workflow_jobs/${job.id}/`))).to.equal(true);
    const ended = await jobOf(automation, job);
    expect(ended).to.include.keys('startedAt', 'finishedAt').and.not.include.keys('outputTail');
  });

  for (const [status, state] of [
    ['new', 'Unknown'],
    ['failed', 'Failed'],
    ['error', 'Failed'],
    ['canceled', 'Canceled'],
  ] as const) {
    it(`calls what is ${status} there ${state}`, async () => {
      const aap = await start();
      const job = await launch(connect(aap), orderCalled('order-a'));
      for (const each of aap.jobs) each.status = status;
      expect((await jobOf(connect(aap), job))?.state).to.equal(state);
    });
  }

  it('knows that a job has vanished, and a wrong address from that', async () => {
    const aap = await start();
    const job = await launch(connect(aap), orderCalled('order-a'));
    aap.vanish(Number(job.id));
    expect(await jobOf(connect(aap), job)).to.equal(undefined);
    const astray = connect({ url: aap.url.replace('controller', 'gateway') });
    expect((await refusedWith(jobOf(astray, job) as Promise<unknown>)).kind).to.equal('not-found');
  });

  it('cancels what runs, and says so when it had ended or is gone', async () => {
    const aap = await start();
    const automation = connect(aap);
    const job = await launch(automation, orderCalled('order-a'));
    const cancel = () => automation.cancel?.(job, callBy());
    expect(await cancel()).to.equal(true);
    expect((await jobOf(automation, job))?.state).to.equal('Canceled');
    expect(await cancel()).to.equal(false);
    aap.vanish(Number(job.id));
    expect(await cancel()).to.equal(false);
  });

  it('shows the end of what a failed job of a workflow said, without its credentials', async () => {
    const aap = await start();
    const automation = connect(aap);
    const job = await launch(automation, orderCalled('order-a'));
    aap.endNext({
      status: 'failed',
      stdout: [
        ...Array.from({ length: 2_000 }, (_, n) => `ok: task ${n}`),
        `\u001B[0;31mfatal: [localhost]: FAILED! => ${JSON.stringify({ spec: { pullSecret: PULL_SECRET } })}\u001B[0m`,
        `curl -H "Authorization: Bearer ${TOKEN}" failed`,
        'PLAY RECAP: localhost failed=1',
      ].join('\n'),
    });
    for (let n = 0; n < 3; n += 1) await aap.advance(Number(job.id));
    const failed = await jobOf(automation, job);
    expect(failed?.state).to.equal('Failed');
    expect(failed?.outputTail).to.match(
      /fatal: \[localhost\]: FAILED! [\s\S]*PLAY RECAP: localhost failed=1$/,
    );
    expect(failed?.outputTail?.length).to.be.at.most(4_000);
    for (const secret of CANARIES) expect(failed?.outputTail).not.to.include(secret);
    expect(aap.requests.filter(({ path }) => path.includes('stdout'))).to.have.length(1);
  });

  it('finds a job whose launch was answered by nobody, by its effect id and nothing else', async () => {
    const aap = await start();
    const automation = connect(aap);
    await launch(automation, orderCalled('order-b'), { effectId: 'other' });
    aap.nextLaunch('lose');
    const error = await refusedWith(launch(automation, orderCalled('order-a'), { effectId: 'mine' }));
    expect(error.kind).to.equal('unknown-outcome');
    const found = await find(automation, 'mine', ago(1_000));
    expect(found?.map(({ id, workflow }) => [Number(id), workflow])).to.deep.equal([[aap.jobs[1]?.id, true]]);
    expect(await find(automation, 'nobody', ago(1_000))).to.deep.equal([]);
    // AWX refuses to be asked for variables with 403.
    expect(aap.requests.some(({ path }) => path.includes('extra_vars'))).to.equal(false);
  });

  it('looks through page after page', async () => {
    const aap = await start();
    const automation = connect(aap);
    await Promise.all(
      Array.from({ length: 120 }, (_, n) =>
        launch(automation, orderCalled(`order-${n}`), { effectId: `effect-${n}` }),
      ),
    );
    expect(await find(automation, 'effect-119', ago(5_000))).to.have.length(1);
    const pages = aap.requests.filter(({ path }) => path.includes('&page='));
    expect(pages.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
  });

  for (const hours of [-1, 1]) {
    it(`finds it on a platform whose clock is ${hours} hour off`, async () => {
      const aap = await start({ clockAheadMs: hours * 3_600_000 });
      const automation = connect(aap);
      await launch(automation, orderCalled('order-a'), { effectId: 'mine' });
      expect(await find(automation, 'mine', ago(1_000))).to.have.length(1);
    });
  }

  it('does not look at jobs from long before', async () => {
    const aap = await start();
    const automation = connect(aap);
    await launch(automation, orderCalled('order-a'), { effectId: 'mine' });
    const later = new Date(Date.now() + 120_000).toISOString();
    expect(await find(automation, 'mine', later)).to.deep.equal([]);
  });

  for (const [behaviour, kind, launched] of [
    ['lose', 'unknown-outcome', 1],
    ['drop', 'unknown-outcome', 0],
    [{ status: 500 }, 'unknown-outcome', 0],
    [{ status: 504 }, 'unknown-outcome', 0],
    [{ status: 503 }, 'unavailable', 0],
    [{ status: 429, retryAfter: 7 }, 'throttled', 0],
    [{ status: 403 }, 'forbidden', 0],
    [{ status: 400 }, 'invalid', 0],
  ] as const) {
    it(`a launch met with ${JSON.stringify(behaviour)} is ${kind}`, async () => {
      const aap = await start();
      aap.nextLaunch(behaviour);
      const error = await refusedWith(launch(connect(aap), orderCalled('order-a')));
      expect(error.kind).to.equal(kind);
      expect(error.retryAfterMs).to.equal(kind === 'throttled' ? 7_000 : undefined);
      expect(aap.jobs).to.have.length(launched);
    });
  }

  it('stops a job that was launched without the order, and says what to switch on', async () => {
    const template = { workflow: false, asksVariables: false };
    const aap = await start({
      templates: ['create', 'delete'].map((verb) => ({ ...template, name: `osac-${verb}-hosted-cluster` })),
    });
    const { problems } = await connect(aap).check(callBy());
    expect(problems).to.have.length(2);
    expect(problems[0]).to.include('prompt on launch');
    const error = await refusedWith(launch(connect(aap), orderCalled('order-a')));
    expect(error.kind).to.equal('invalid');
    expect(error.message).to.include('prompt on launch');
    expect(aap.jobs.map(({ status }) => status)).to.deep.equal(['canceled']);
  });

  it('names the templates that are missing', async () => {
    const aap = await start({ templates: [{ name: CREATE, workflow: true, asksVariables: true }] });
    const { problems } = await connect(aap).check(callBy());
    expect(problems).to.deep.equal(['job or workflow template osac-delete-hosted-cluster not found']);
    const error = await refusedWith(
      connect(aap).trigger(
        { purpose: 'deprovision', orderName: 'order-a', order: orderCalled('order-a') },
        callBy(),
      ),
    );
    expect(error.kind).to.equal('not-found');
  });

  it('trusts the authority that the hub names and no other', async () => {
    const tls = await loopbackTls();
    const aap = await start({ tls });
    await launch(connect(aap, tls.cert), orderCalled('order-a'));
    const error = await refusedWith(launch(connect(aap), orderCalled('order-b')));
    expect(error.kind).to.equal('unavailable');
    expect(aap.jobs).to.have.length(1);
  });

  it('works with a platform in a process of its own, whose jobs go on by themselves', async () => {
    const main = new URL('../../support/aap/main.ts', import.meta.url).pathname;
    const pace = { pendingMs: 5, waitingMs: 5, runningMs: 5 };
    const aap = await startStandIn(main, { token: TOKEN, pace });
    closing.push(aap.kill);
    const automation = connect(aap);
    const job = await launch(automation, orderCalled('order-a'));
    await eventually('the job ends', async () => (await jobOf(automation, job))?.state === 'Succeeded');
    await aap.command('vanish', Number(job.id));
    expect(await jobOf(automation, job)).to.equal(undefined);
  });
});
