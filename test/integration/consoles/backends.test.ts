import { expect } from 'chai';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { MachineConsole } from '../../../src/app/consoles/console-line.ts';
import {
  HubError,
  type CallOptions,
  type ManagementCluster,
} from '../../../src/app/hubs/management-cluster.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { COMPUTE_INSTANCE } from '../../../src/domain/compute/hub-objects.ts';
import type { ConsoleType } from '../../../src/domain/consoles.ts';
import { eventually } from '../../support/eventually.ts';
import { hubAccessOf, kubernetesHub, rbacOf } from '../../support/hubs/kubernetes-hub.ts';
import { startKubeApiServer } from '../../support/kube-apiserver/start.ts';
import { failure } from '../management-cluster/contract-kit.ts';

const NS = 'osac-hub';

type BackendUnderTest = {
  readonly cluster: ManagementCluster;
  /** The machine of this name runs, or it stopped. */
  readonly runs: (name: string, runs: boolean) => Promise<void>;
  readonly close: () => Promise<void>;
};

const specOf = (runs: boolean) => ({
  ...(COMPUTE_INSTANCE.sample.spec as object),
  runStrategy: runs ? ('Always' as const) : ('Halted' as const),
});
const placeOf = (name: string) => ({ namespace: NS, name });

const by = (more: Partial<CallOptions> = {}): CallOptions => ({
  effectId: 'console-test',
  deadlineMs: 60_000,
  signal: new AbortController().signal,
  ...more,
});

const make = (cluster: ManagementCluster, name: string, runs: boolean) =>
  cluster.create(
    COMPUTE_INSTANCE,
    {
      ...placeOf(name),
      labels: { [COMPUTE_INSTANCE.idLabel]: name },
      annotations: {},
      spec: specOf(runs) as never,
    },
    by(),
  );

const simulated = (): Promise<BackendUnderTest> => {
  const dir = mkdtempSync(join(tmpdir(), 'sim-console-'));
  const cluster = createSimulatedHub({
    hubId: 'sim-console',
    file: join(dir, 'hub.sqlite'),
    clock: systemClock(),
    timers: systemTimers(),
    settings: { factor: '0.01' },
    inline: true,
  });
  return Promise.resolve({
    cluster,
    runs: async (name, runs) => {
      await make(cluster, name, runs);
      await eventually(`${name} is as wanted`, async () => {
        const shown = await cluster.get(COMPUTE_INSTANCE, placeOf(name), by());
        return shown?.phase === (runs ? 'Running' : 'Stopped');
      });
    },
    close: async () => {
      await cluster.close();
      rmSync(dir, { recursive: true, force: true });
    },
  });
};

const startKubernetes = async (rights = true, timers = systemTimers()) => {
  const server = await startKubeApiServer({
    namespaces: [NS],
    objects: rbacOf('hub-access', NS),
    controllers: false,
  });
  const user = rights ? hubAccessOf(NS) : { name: 'nobody', groups: [] };
  const { hub, clusters } = kubernetesHub({
    kubeconfigs: { '1': server.kubeconfig({ token: server.tokenFor(user) }) },
    namespace: NS,
    timers,
  });
  return {
    server,
    cluster: hub as ManagementCluster,
    runs: async (name: string, runs: boolean) => {
      server.seed({
        apiVersion: 'osac.openshift.io/v1alpha1',
        kind: 'ComputeInstance',
        metadata: { name, namespace: NS, labels: { [COMPUTE_INSTANCE.idLabel]: name } },
        spec: specOf(runs) as never,
        status: { phase: runs ? 'Running' : 'Stopped' },
      });
    },
    close: async () => {
      await clusters.close();
      await server.close();
    },
  };
};

/** What every adapter does with a console, whatever machine is behind it. */
const describeBackend = (name: string, factory: () => Promise<BackendUnderTest>): void => {
  describe(`console backend: ${name}`, () => {
    let backend: BackendUnderTest;
    const open: MachineConsole[] = [];
    before(async () => {
      backend = await factory();
      await backend.runs('vm-1', true);
    });
    after(() => backend.close());
    afterEach(() => {
      for (const line of open.splice(0)) line.close();
    });

    const opened = async (type: ConsoleType, options = by(), machine = 'vm-1') => {
      const line = await backend.cluster.openConsole?.(COMPUTE_INSTANCE, placeOf(machine), type, options);
      if (line === undefined) throw new Error('it has no consoles');
      open.push(line);
      const heard: Uint8Array[] = [];
      const ended = (async () => {
        for await (const piece of line.incoming) heard.push(piece);
      })();
      ended.catch(() => undefined);
      const text = (): string => Buffer.concat(heard).toString('latin1');
      const hears = (wanted: string) =>
        eventually(
          () => `hears '${wanted}': ${text()}`,
          () => text().includes(wanted),
        );
      return { line, ended, text, hears };
    };

    it('carries a serial prompt both ways', async () => {
      const { line, hears } = await opened('serial');
      await hears('# ');
      await line.send(Buffer.from('echo hä 1 2\r'));
      await hears(`\r\n${Buffer.from('hä').toString('latin1')} 1 2\r\n# `);
      await line.send(Buffer.from('nonsense\r'));
      await hears('nonsense: command not found');
      await line.send(Buffer.from('date\r'));
      await hears(new Date().toISOString().slice(0, 8));
    });

    it('carries a screen, and refuses another security', async () => {
      const screen = await opened('vnc');
      await screen.hears('RFB 003.008\n');
      await screen.line.send(Buffer.from('RFB 003.008\n\x01\x01', 'latin1'));
      await eventually('the screen is told', () => screen.text().length > 12 + 2 + 4 + 24);
      const other = await opened('vnc');
      await other.line.send(Buffer.from('RFB 003.008\n\x02', 'latin1'));
      await other.hears('only security type None');
    });

    it('closes by its owner, and by the signal of who opened it', async () => {
      const { line, ended, hears } = await opened('serial');
      await hears('# ');
      line.close();
      line.close();
      await ended.catch(() => undefined);
      expect(await line.send(Buffer.from('x')).catch(() => 'closed')).to.equal('closed');
      const given = new AbortController();
      given.abort();
      expect(await failure(opened('serial', by({ signal: given.signal })))).to.be.instanceOf(HubError);
    });

    it('takes no more than is read', async () => {
      const line = await backend.cluster.openConsole?.(COMPUTE_INSTANCE, placeOf('vm-1'), 'serial', by());
      if (line === undefined) throw new Error('it has no consoles');
      open.push(line);
      const piece = Buffer.from(`${'x'.repeat(63)}\r`.repeat(1_024));
      let sent = 0;
      const flood = (async () => {
        for (; sent < 2_000; sent += 1) await line.send(piece);
      })().catch(() => undefined);
      let [last, same] = [-1, 0];
      await eventually('nobody takes any more', () => {
        same = sent === last ? same + 1 : 0;
        last = sent;
        return same === 20;
      });
      expect(sent).to.be.below(2_000);
      line.close();
      await flood;
    });

    it('has none of a machine that does not run, or is not there', async () => {
      await backend.runs('vm-2', false);
      for (const machine of ['vm-2', 'vm-3'])
        expect(await failure(opened('serial', by(), machine))).to.include({ kind: 'not-found' });
    });
  });
};

describeBackend('simulated hub', simulated);
describeBackend('kubernetes', () => startKubernetes());

describe('consoles through an API server', () => {
  it('need the right to them', async () => {
    const backend = await startKubernetes();
    try {
      await backend.runs('vm-1', true);
      const { server } = backend;
      const foreign = kubernetesHub({
        kubeconfigs: { '1': server.kubeconfig({ token: server.tokenFor({ name: 'nobody', groups: [] }) }) },
        namespace: NS,
      });
      const wanted = [COMPUTE_INSTANCE, placeOf('vm-1'), 'serial', by()] as const;
      const opening = foreign.hub.openConsole?.(...wanted) ?? Promise.reject(new Error('none'));
      expect(await failure(opening)).to.include({ kind: 'unauthorized' });
      await foreign.clusters.close();
      const line = await backend.cluster.openConsole?.(...wanted);
      let ended = false;
      void (async () => {
        for await (const _piece of line?.incoming ?? []);
        ended = true;
      })().catch(() => {
        ended = true;
      });
      server.consoles.closeAll();
      await eventually('the machine closed it', () => ended);
    } finally {
      await backend.close();
    }
  });

  it('tell a line that broke from a machine that closed its console', async () => {
    let pingMs = 30_000;
    const timers: Timers = {
      after: (ms, run) => systemTimers().after(ms === 30_000 ? pingMs : ms, run),
    };
    const { server, ...backend } = await startKubernetes(true, timers);
    try {
      await backend.runs('vm-1', true);
      const endAfter = async (act: () => void): Promise<unknown> => {
        const line = await backend.cluster.openConsole?.(COMPUTE_INSTANCE, placeOf('vm-1'), 'serial', by());
        if (line === undefined) throw new Error('it has no consoles');
        let heard = '';
        const end = (async () => {
          for await (const piece of line.incoming) {
            const begins = heard === '';
            heard += Buffer.from(piece).toString();
            if (begins) act();
          }
          return 'closed';
        })();
        return end.catch((error: unknown) => error).finally(() => line.close());
      };
      const { closeAll, closeWith, cut, freeze } = server.consoles;
      for (const act of [closeAll, () => closeWith(1000)]) expect(await endAfter(act)).to.equal('closed');
      for (const act of [cut, () => closeWith(1011), () => closeWith(1012)])
        expect(await endAfter(act))
          .to.be.instanceOf(HubError)
          .with.property('kind', 'unavailable');
      pingMs = 20;
      expect(await endAfter(freeze))
        .to.be.instanceOf(HubError)
        .with.property('kind', 'unavailable');
    } finally {
      await backend.close();
    }
  });
});
