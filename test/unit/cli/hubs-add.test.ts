import { expect } from 'chai';
import { join } from 'node:path';
import { DOCUMENTS, HUBS, hubsStage, LOOKED, WELL, WRONG } from './hubs-stage.ts';

describe('ledgerctl hubs', () => {
  const { stub, folder, file, kubeconfig, encoded, answers, bodyOf, ADD } = hubsStage();

  it('add checks first and registers what is well', async () => {
    answers({ [`POST ${HUBS}/check`]: WELL, [`POST ${DOCUMENTS}`]: { id: 'hub-1' }, ...LOOKED });
    const token = file('token', 'secret-token\n');
    const automation = [
      '--mode',
      'aap',
      '--endpoint',
      'https://aap.example/api/controller',
      '--token-file',
      token,
    ];
    const more = [
      '--zone',
      'north',
      '--nodes',
      'fc430=4',
      'g5=0',
      '--calls-per-second',
      '2.5',
      '--burst',
      '5',
    ];
    const out = await stub().succeeds([...ADD, ...automation, ...more]);
    expect(out).to.contain('hub hub-1: registered').and.to.contain('hub hub-1: ready for orders');
    expect(bodyOf(`POST ${HUBS}/check`)).to.deep.equal({
      id: 'hub-1',
      kubeconfig: encoded,
      namespace: 'osac-hub',
      mode: 'aap',
      endpoints: { aap: 'https://aap.example/api/controller' },
      automation: { token: 'secret-token' },
    });
    expect(bodyOf(`POST ${DOCUMENTS}`)).to.deep.equal({
      id: 'hub-1',
      metadata: {},
      spec: {
        kubeconfig: encoded,
        namespace: 'osac-hub',
        mode: 'aap',
        endpoints: { aap: 'https://aap.example/api/controller' },
        automation: { token: 'secret-token' },
        zone: 'north',
        capacity: { nodes: { fc430: 4, g5: 0 } },
        pacing: { calls_per_second: 2.5, burst: 5 },
      },
    });
  });
  it('add refuses with every problem named, unless it is told to', async () => {
    answers({ [`POST ${HUBS}/check`]: WRONG, [`POST ${DOCUMENTS}`]: { id: 'hub-1' }, ...LOOKED });
    const refused = await stub().run(ADD);
    expect(refused.code).to.equal(1);
    for (const { code, message } of WRONG.problems) expect(refused.err).to.contain(`${code}: ${message}`);
    expect(refused.err).to.contain('was not registered');
    expect(bodyOf(`POST ${DOCUMENTS}`)).to.equal(undefined);
    expect(await stub().succeeds([...ADD, '--force'])).to.contain('registered');
  });
  it('add waits for the first look of the service, and fails with what that found', async () => {
    const health = ['NotChecked', 'NotChecked', 'CrdMissing'];
    const idle = { orders: {}, limits: {}, used: {}, ghosts: 0 };
    let looks = 0;
    stub().answers(({ verb, path }) => {
      if (`${verb} ${path}` === `POST ${HUBS}/check`) return { body: WELL };
      if (`${verb} ${path}` === `POST ${DOCUMENTS}`) return { body: { id: 'hub-1' } };
      if (path !== `${HUBS}/hub-1`) return undefined;
      const now = health[Math.min(looks, 2)];
      looks += 1;
      // At first this instance has not even heard of it.
      return looks === 1
        ? undefined
        : {
            body: {
              ...WRONG,
              ...idle,
              health: now,
              scheduling: 'open',
              mode: 'operator',
              controller: 'operator',
            },
          };
    });
    const { code, out, err } = await stub().run(ADD);
    expect(code).to.equal(1);
    expect(out).to.contain('hub hub-1: registered');
    expect(err).to.contain('registered and not ready').and.to.contain('CrdMissing: ');
    expect(looks).to.equal(3);
  });
  it('add recommends rights that a hub works without', async () => {
    const recommendation = 'apply ops/rbac/node-counts.yaml';
    answers({ [`POST ${HUBS}/check`]: { ...WELL, recommendation }, [`POST ${DOCUMENTS}`]: {}, ...LOOKED });
    const { code, err } = await stub().run(ADD);
    expect(code, err).to.equal(0);
    expect(err).to.contain('recommended: apply ops/rbac/node-counts.yaml');
  });
  it('add does not wait for ever, and not at all where that is not wanted', async () => {
    const unseen = { id: 'hub-1', health: 'NotChecked', scheduling: 'open' };
    answers({
      [`POST ${HUBS}/check`]: WELL,
      [`POST ${DOCUMENTS}`]: {},
      [`GET ${HUBS}/hub-1`]: unseen,
    });
    const { code, err } = await stub().run([...ADD, '--wait-timeout', '1s']);
    expect([code, err].join(' ')).to.match(/^1 .*was not looked at within 1 s/s);
    stub().asked.length = 0;
    expect(await stub().succeeds([...ADD, '--no-wait'])).to.contain('registered');
    expect(stub().calls()).to.deep.equal([`POST ${HUBS}/check`, `POST ${DOCUMENTS}`]);
    answers({
      [`POST ${HUBS}/check`]: WELL,
      [`POST ${DOCUMENTS}`]: {},
      [`GET ${HUBS}/hub-1`]: { ...unseen, health: 'ok', scheduling: 'cordoned' },
    });
    expect(await stub().succeeds([...ADD, '--cordoned'])).to.contain('ready for orders, but cordoned');
  });
  it('add takes a kubeconfig from stdin, and none that is empty', async () => {
    answers({ [`POST ${HUBS}/check`]: WELL, [`POST ${DOCUMENTS}`]: {}, ...LOOKED });
    const fromStdin = ADD.map((word) => (word === kubeconfig ? '-' : word));
    await stub().succeeds(fromStdin, 'kind: Config');
    expect(bodyOf(`POST ${HUBS}/check`)).to.deep.include({ kubeconfig: encoded });
    const empty = await stub().run(fromStdin, ' ');
    expect([empty.code, empty.err]).to.deep.equal([2, 'ledgerctl: stdin is empty\n']);
    const missing = ADD.map((word) => (word === kubeconfig ? join(folder, 'none') : word));
    expect((await stub().run(missing)).code).to.equal(2);
    expect((await stub().run([...ADD, '--ca-file', folder])).code).to.equal(2);
    expect((await stub().run([...ADD, '--endpoint', 'http://x'])).code).to.equal(2);
    expect((await stub().run([...ADD, '--nodes', 'fc430'])).code).to.equal(2);
  });
  it('add names the options that belong together, before it reads a secret or asks for a check', async () => {
    for (const [words, said] of [
      [['--mode', 'aap'], '--mode aap needs --endpoint'],
      [['--mode', 'eda', '--token-file', 'none'], '--mode eda needs --endpoint'],
      [['--controller', 'ledger'], '--controller ledger is for --mode eda and --mode aap'],
    ] as const) {
      answers({});
      const { code, err } = await stub().run([...ADD, ...words]);
      expect(code, err).to.equal(2);
      expect(err).to.contain(said);
      expect(stub().asked).to.deep.equal([]);
    }
  });
  it('add looks at the id before everything else, and names the option and the rule', async () => {
    answers({});
    const none = ['--kubeconfig', join(folder, 'none'), '--namespace', 'osac-hub'];
    for (const [words, said] of [
      [['--id', 'Bad Id!'], /--id "Bad Id!" .*lower-case letters, digits.*--name/s],
      [['--id', 'x'.repeat(64)], /--id "x+" .*at most 63/s],
      [['--id', 'a/b', '--name', 'ab'], /--id "a\/b" must not hold slashes/],
      [['--id', ' a', '--name', 'ab'], /--id " a" must not .*space/],
      [['--id', 'sim-hub'], /--id "sim-hub" .*simulated.*not be used/s],
      [['--id', 'hub-1', '--name', 'Hub 1'], /--name "Hub 1" .*lower-case letters, digits/s],
    ] as const) {
      const { code, err } = await stub().run(['hubs', 'add', ...words, ...none]);
      expect(code, err).to.equal(2);
      expect(err).to.match(said).and.not.to.contain('metadata.name');
    }
    expect(stub().asked).to.deep.equal([]);
    answers({ [`POST ${HUBS}/check`]: WELL, [`POST ${DOCUMENTS}`]: {} });
    for (const id of ['hub_1', 'eu.hub-1'])
      await stub().succeeds(['hubs', 'add', '--id', id, ...ADD.slice(4), '--no-wait']);
  });
  it('add takes no 0 that would mean "not limited", and no class twice', async () => {
    for (const [words, said] of [
      [['--control-planes', '0'], '--cordoned'],
      [['--calls-per-second', '0'], 'above 0'],
      [['--calls-per-second', '0.00'], 'above 0'],
      [['--burst', '0'], 'above 0'],
      [['--nodes', 'fc430=1', 'fc430=2'], '"fc430" is given twice'],
    ] as const) {
      answers({});
      const { code, err } = await stub().run([...ADD, ...words]);
      expect(code, err).to.equal(2);
      expect(err).to.contain(said);
      expect(stub().asked).to.deep.equal([]);
    }
    answers({ [`POST ${HUBS}/check`]: WELL, [`POST ${DOCUMENTS}`]: {} });
    await stub().run([...ADD, '--no-wait', '--nodes', 'fc430=0', 'h100=1']);
    expect(bodyOf(`POST ${DOCUMENTS}`))
      .to.have.nested.property('spec.capacity')
      .that.deep.equals({
        nodes: { fc430: 0, h100: 1 },
      });
  });
});
