import { expect } from 'chai';
import { DOCUMENTS, HUBS, hubsStage, WELL, WRONG } from './hubs-stage.ts';

describe('ledgerctl hubs', () => {
  const { stub, file, kubeconfig, encoded, answers, bodyOf } = hubsStage();

  it('check says what is wrong and ends with 1', async () => {
    answers({ [`POST ${HUBS}/hub-1/check`]: WRONG, [`POST ${HUBS}/check`]: WELL });
    const wrong = await stub().run(['hubs', 'check', 'hub-1']);
    expect(wrong.code).to.equal(1);
    expect(wrong.out).to.match(/^hub hub-1: 2 problems\n {2}CrdMissing: /);
    const well = await stub().succeeds(['hubs', 'check', '--kubeconfig', kubeconfig, '--namespace', 'n']);
    expect(well).to.contain('ready for orders').and.to.contain('API server v1.36.0');
    expect((await stub().run(['hubs', 'check'])).code).to.equal(2);
    answers({ [`POST ${HUBS}/hub-1/check`]: { ...WELL, also_in_namespace: ['hub-2'] } });
    expect(await stub().succeeds(['hubs', 'check', 'hub-1'])).to.contain(
      'hub-2 keeps orders in this namespace, too',
    );
  });
  it('check asks for everything that the hub would need as it is to be registered', async () => {
    answers({ [`POST ${HUBS}/check`]: WELL });
    const ca = file('ca.pem', 'PEM');
    const automation = ['--token-file', file('token', 'secret-token\n'), '--ca-file', ca];
    const NEW = ['hubs', 'check', '--kubeconfig', kubeconfig, '--namespace', 'n'];
    const url = 'https://rulebook:5000';
    const way = ['--mode', 'eda', '--controller', 'ledger', '--endpoint', url, '--tenant-namespaces'];
    await stub().succeeds([...NEW, ...way, ...automation]);
    expect(bodyOf(`POST ${HUBS}/check`)).to.deep.equal({
      kubeconfig: encoded,
      namespace: 'n',
      mode: 'eda',
      controller: 'ledger',
      endpoints: { eda: url },
      automation: { token: 'secret-token', ca: 'PEM' },
      tenant_namespaces: true,
    });
    const misfit = await stub().run([...NEW, '--mode', 'aap']);
    expect(misfit.code).to.equal(2);
    expect(misfit.err).to.contain('--mode aap needs --endpoint');
  });
  it('check tries other values with a registered hub, such as another mode before it is switched', async () => {
    answers({ [`POST ${HUBS}/hub-1/check`]: WELL });
    const CHECK = ['hubs', 'check', 'hub-1'];
    const url = 'https://aap.example/api/controller';
    await stub().succeeds([...CHECK, '--mode', 'aap', '--endpoint', url, '--token-file', file('t', 'other')]);
    expect(bodyOf(`POST ${HUBS}/hub-1/check`)).to.deep.equal({
      mode: 'aap',
      endpoints: { aap: url },
      automation: { token: 'other' },
    });
    for (const words of [
      ['--endpoint', url],
      ['--namespace', 'n'],
      ['--controller', 'ledger'],
      ['--tenant-namespaces'],
    ])
      expect((await stub().run([...CHECK, ...words])).code, words[0]).to.equal(2);
  });
  it('credentials checks the new ones before it hands them over', async () => {
    const rotate = ['hubs', 'credentials', 'hub-1', '--kubeconfig', kubeconfig];
    const calls = (check: object, known: object = {}) =>
      answers({
        [`GET ${HUBS}/hub-1`]: { id: 'hub-1', ...known },
        [`POST ${HUBS}/hub-1/check`]: check,
        [`PATCH ${DOCUMENTS}/hub-1`]: {},
      });
    calls(WRONG);
    expect((await stub().run(rotate)).err).to.contain('keeps the credentials');
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.equal(undefined);
    calls(WELL);
    expect((await stub().run(rotate)).err).to.contain('was not compared');
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({ spec: { kubeconfig: encoded } });
    calls({ ...WELL, cluster: 'uid-1' });
    expect((await stub().run(rotate)).err)
      .to.contain('nothing to compare')
      .and.to.contain('cluster uid-1');
    calls({ ...WELL, cluster: 'uid-1' }, { cluster: 'uid-1' });
    const same = await stub().run(rotate);
    expect([same.code, same.err.includes('compare')]).to.deep.equal([0, false]);
  });
  it('credentials accepts another cluster only by its uid: the hub was rebuilt', async () => {
    const different = { code: 'DifferentCluster', message: 'another cluster answers', subject: 'uid-2' };
    const check = { id: 'hub-1', ok: false, problems: [different], cluster: 'uid-2' };
    const document = { id: 'hub-1', metadata: { annotations: { team: 'north' } } };
    const calls = (found: object) =>
      answers({
        [`GET ${HUBS}/hub-1`]: { id: 'hub-1', cluster: 'uid-1' },
        [`POST ${HUBS}/hub-1/check`]: found,
        [`GET ${DOCUMENTS}/hub-1`]: document,
        [`PATCH ${DOCUMENTS}/hub-1`]: {},
      });
    const rotate = (...words: string[]) => stub().run(['hubs', 'credentials', 'hub-1', ...words]);
    calls(check);
    const refused = await rotate('--kubeconfig', kubeconfig);
    expect(refused.code).to.equal(1);
    expect(refused.err).to.contain('another cluster answers').and.to.contain('keeps the credentials');
    expect((await rotate('--accept-cluster', 'uid-3')).code).to.equal(1);
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.equal(undefined);
    const annotations = { team: 'north', 'fulfillment-ledger/cluster': 'uid-2' };
    expect((await rotate('--accept-cluster', 'uid-2')).code).to.equal(0);
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({ metadata: { annotations } });
    calls({ ...WELL, cluster: 'uid-2' });
    expect((await rotate('--kubeconfig', kubeconfig, '--accept-cluster', 'uid-2')).code).to.equal(0);
    expect(bodyOf(`POST ${HUBS}/hub-1/check`)).to.deep.equal({ kubeconfig: encoded, cluster: 'uid-2' });
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({
      spec: { kubeconfig: encoded },
      metadata: { annotations },
    });
  });
  it('credentials rotates the secrets of the automation: of the mode that the hub is in, or of the one before', async () => {
    const token = ['--token-file', file('token', 'new-token\n')];
    const key = ['--hmac-secret-file', file('key', 'new-key\n')];
    const rotate = (...words: string[]) => stub().run(['hubs', 'credentials', 'hub-1', ...words]);
    const calls = (check: object, mode = 'eda') =>
      answers({
        [`GET ${HUBS}/hub-1`]: { id: 'hub-1', mode },
        [`POST ${HUBS}/hub-1/check`]: check,
        [`PATCH ${DOCUMENTS}/hub-1`]: {},
      });
    calls(WELL);
    expect((await rotate(...token, ...key)).code).to.equal(0);
    const automation = { token: 'new-token', hmac_secret: 'new-key' };
    expect(bodyOf(`POST ${HUBS}/hub-1/check`)).to.deep.equal({ mode: 'eda', automation });
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({ spec: { automation } });
    calls(WELL, 'aap');
    expect((await rotate('--mode', 'eda', ...token)).code).to.equal(0);
    expect(bodyOf(`POST ${HUBS}/hub-1/check`)).to.deep.equal({
      mode: 'eda',
      automation: { token: 'new-token' },
    });
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({
      spec: { automation: { eda: { token: 'new-token' } } },
    });
    const failing = { code: 'AutomationFailing', message: 'the listener answered 401' };
    calls({ id: 'hub-1', ok: false, problems: [failing] });
    const refused = await rotate(...token);
    expect(refused.code).to.equal(1);
    expect(refused.err).to.contain('the listener answered 401').and.to.contain('keeps the credentials');
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.equal(undefined);
    // What is wrong with the cluster itself does not keep its listener from getting a token.
    calls(WRONG);
    expect((await rotate(...token)).code).to.equal(0);
    calls(WELL, 'operator');
    expect((await rotate(...token)).err).to.contain('mode operator');
    for (const words of [[], ['--mode', 'eda', '--kubeconfig', kubeconfig]])
      expect((await rotate(...words)).code).to.equal(2);
  });
  it('cordon, uncordon and drain change one field; drain says what is left', async () => {
    answers({
      [`PATCH ${DOCUMENTS}/hub-1`]: {},
      [`GET ${HUBS}/hub-1`]: { id: 'hub-1', orders: { ready: 2, progressing: 1 } },
    });
    for (const [verb, scheduling] of [
      ['cordon', 'cordoned'],
      ['uncordon', 'open'],
      ['drain', 'draining'],
    ] as const) {
      stub().asked.length = 0;
      const out = await stub().succeeds(['hubs', verb, 'hub-1']);
      expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({ spec: { scheduling } });
      if (verb === 'drain') expect(out).to.contain('still on it: 2 ready, 1 progressing');
    }
  });
  it('remove --force gives a hub up with its orders, and leaves its other annotations', async () => {
    answers({
      [`GET ${DOCUMENTS}/hub-1`]: { id: 'hub-1', metadata: { annotations: { mine: 'kept' } } },
      [`PATCH ${DOCUMENTS}/hub-1`]: {},
      [`DELETE ${DOCUMENTS}/hub-1`]: {},
      [`GET ${HUBS}/hub-1/orders`]: { items: [{ id: 'o1', state: 'ready' }], total: 1 },
    });
    expect(await stub().succeeds(['hubs', 'remove', 'hub-1', '--force'])).to.contain('the last of 1 orders');
    expect(bodyOf(`PATCH ${DOCUMENTS}/hub-1`)).to.deep.equal({
      metadata: { annotations: { mine: 'kept', 'fulfillment-ledger/decommission': 'force' } },
    });
    const patch = stub().asked.find(({ verb }) => verb === 'PATCH');
    expect(patch?.headers).to.include({ 'if-match': '"hub-3"' });
    stub().asked.length = 0;
    expect(await stub().succeeds(['hubs', 'remove', 'hub-1'])).to.contain('removed');
    expect(stub().calls()).to.deep.equal([`DELETE ${DOCUMENTS}/hub-1`]);
  });
  it('list, show and orders are for people, or as JSON', async () => {
    const hub = {
      id: 'hub-1',
      adapter: 'kubernetes',
      mode: 'aap',
      controller: 'ledger',
      namespace: 'osac-hub',
      scheduling: 'open',
      health: 'CrdMissing',
      message: 'no clusterorders',
      limits: { nodes: { fc430: 6 } },
      used: { controlPlanes: 1, nodes: { fc430: 2 } },
      hosts: { fc430: { free: 4, ours: 2, foreign: 1 } },
      problems: [{ code: 'CrdMissing', message: 'no clusterorders', since: '2026-11-21T12:00:00.000Z' }],
      orders: { ready: 1 },
      former_automation: { eda: 'https://rulebook:5000' },
      ghosts: 2,
      lacking: [{ kind: 'Volume', code: 'TemplateMissing', message: 'no template osac-create-volume' }],
      watch: {
        namespaces: 2,
        synced: false,
        orders: 7,
        unknown: 3,
        orphans: 1,
        failures: 3,
        not_synced: ['acme'],
        last_error: '403: may not watch',
        last_error_at: '2026-11-21T12:01:00.000Z',
      },
      lane: { breaker: 'open', paused: false, waiting: 3 },
    };
    const routes = {
      [`GET ${HUBS}`]: { items: [hub] },
      [`GET ${HUBS}/hub-1`]: hub,
      [`GET ${HUBS}/hub-1/orders`]: {
        items: [{ id: 'o1', name: 'web', tenant: 't1', state: 'ready' }],
        total: 1,
      },
    };
    answers(routes);
    expect(await stub().succeeds(['hubs', 'list'])).to.match(/hub-1 +kubernetes +aap +- +open +CrdMissing/);
    const rooms = [
      [{}, {}, '-'],
      [{}, { controlPlanes: 1, nodes: { h100: 3 } }, 'h100 3/-'],
      [{ nodes: { h100: 8, fc430: 4 } }, { controlPlanes: 1, nodes: { h100: 3 } }, 'fc430 0/4, h100 3/5'],
      [{ nodes: { h100: 2 } }, { nodes: { h100: 3, cpu: 0 } }, 'h100 3/0'],
      [{ controlPlanes: 4 }, { controlPlanes: 1, nodes: {} }, 'control-planes 1/3'],
    ] as const;
    for (const [limits, used, text] of rooms) {
      answers({ [`GET ${HUBS}`]: { items: [{ ...hub, limits, used }] } });
      const listed = await stub().succeeds(['hubs', 'list']);
      expect(listed.replaceAll(/ +/g, ' ')).to.contain(` CrdMissing ${text} `);
    }
    answers(routes);
    const shown = await stub().succeeds(['hubs', 'show', 'hub-1']);
    expect(shown).to.contain('used:       1 control planes, 2 fc430');
    expect(shown).to.contain('CrdMissing since 2026-11-21T12:00:00.000Z: no clusterorders');
    expect(shown).to.match(/fc430 +4 +2 +1/);
    expect(shown).to.contain('breaker open, 3 waiting');
    expect(shown).to.contain('cannot carry:\n  Volume: TemplateMissing: no template osac-create-volume\n');
    expect(shown).to.contain('former:     eda at https://rulebook:5000, for orders that were begun in it');
    expect(shown).to.contain('ghosts:     2 orders whose cluster has vanished');
    expect(shown).to.contain(
      'unknown:    3 ClusterOrders that nobody here ever ordered; they are left alone',
    );
    expect(shown).to.contain(
      'watch:      broken in acme, 7 orders in 2 namespaces, orphans removed: 1, opened again: 3',
    );
    expect(shown).to.contain('last error: 2026-11-21T12:01:00.000Z 403: may not watch');
    expect(await stub().succeeds(['hubs', 'orders', 'hub-1'])).to.match(/o1 +web +t1 +ready/);
    expect(JSON.parse(await stub().succeeds(['hubs', 'show', 'hub-1', '--json']))).to.deep.equal(hub);
  });
});
