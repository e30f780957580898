import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/domain/json.ts';
import { orderOfJob, type AapRequest } from '../aap/aap-server.ts';
import type { AapJob } from '../aap/aap-jobs.ts';
import { runMain, type Run } from '../service/run-main.ts';
import { createStack, type Stack } from '../service/stack.ts';
import type { KubeCall, Plural } from '../kube-controllers/api.ts';
import { playHub, type PlayedHub } from '../kube-controllers/hub.ts';
import { kubeconfigOf } from '../kube-apiserver/kubeconfig.ts';
import { startKubeApiServer } from '../kube-apiserver/start.ts';
import type { KubeObject } from '../kube-apiserver/types.ts';
import type { KubeAccess } from '../kube-apiserver/client.ts';
import { startKubeFaultProxy, type KubeFaultProxy } from '../kube-apiserver/fault-proxy.ts';
import { grantHubAccess } from './kubernetes-hub.ts';
import { startRulebook } from '../rulebook/rulebook-server.ts';
import { startStandIn } from '../stand-in/process.ts';
import { bodyOf, standInServer } from '../stand-in/server.ts';

/** How the hub of a test is registered, and so who does what there. */
export type HubCase = {
  readonly mode: 'operator' | 'eda' | 'aap';
  /** `ledger`: no operator runs on the hub. */
  readonly controller: 'operator' | 'ledger';
  readonly tenantNamespaces?: boolean;
};

/** A job or playbook that somebody was asked for. */
export type AskedFor = { readonly kind: 'create' | 'delete'; readonly order: JsonObject };

/** The API server of a hub, with the administrator's ways to it. */
export type HubServer = {
  readonly access: KubeAccess;
  readonly call: KubeCall;
  close(): Promise<void>;
};

/** A management cluster with all that plays on it and its automation, and the real service beside it. */
export type E2eHub = Pick<KubeFaultProxy, 'onCall' | 'seen'> & {
  readonly stack: Stack;
  readonly play: PlayedHub;
  /** All objects of a kind that the hub holds now. */
  list(plural: Plural): Promise<readonly KubeObject[]>;
  /** What the hub's automation was asked for, oldest first, by whoever asks it in this mode. */
  asked(): readonly AskedFor[];
  /** Called at the moment when the automation is asked; what it was asked for goes on when this is done. */
  onAsked(hook: (() => Promise<void>) | undefined): void;
  /** The next request to the automation is carried out, but its answer is lost. Nothing where an operator asks it. */
  loseNextAnswer(): Promise<void>;
  /** What must not be found in a log: token and key of the automation. */
  readonly secrets: readonly string[];
  /** The next request to the automation breaks off and is not carried out. Not in mode operator: nobody of ours asks. */
  dropNext(): Promise<void>;
  /** How many did. */
  dropped(): Promise<number>;
  /** `ledgerctl` as an operator types it. */
  ledgerctl(...argv: readonly string[]): Promise<Run>;
  /** Arguments of `ledgerctl hubs add`. */
  readonly registration: readonly string[];
  dispose(): Promise<void>;
};

export const HUB = 'munich';
export const HUB_NAMESPACE = 'osac-hub';
/** The players are ten times as fast as what they were recorded from. */
const PACE = 0.1;
const TOKEN = 'token-of-the-automation';
const HMAC_SECRET = 'key-that-signs-webhooks';

const KIND_OF: { readonly [endpoint: string]: 'create' | 'delete' } = {
  'create-hosted-cluster': 'create',
  'delete-hosted-cluster': 'delete',
};

type Automation = {
  /** Undefined: the operator has its own, and we are not told of it. */
  readonly endpoint?: string;
  readonly asked: () => readonly AskedFor[];
  readonly loseNextAnswer: () => Promise<void>;
  readonly dropNext: () => Promise<void>;
  readonly dropped: () => Promise<number>;
  readonly close: () => Promise<void>;
};

const isCut = ({ status }: { readonly status: number | 'cut' }): boolean => status === 'cut';

const AAP = new URL('../aap/main.ts', import.meta.url).pathname;

/** The stand-in of an API server, in this process: what plays on the hub takes the short way. */
const standInHubServer = async (): Promise<HubServer> => {
  const server = await startKubeApiServer();
  const access = { url: server.url, ca: server.ca, token: server.adminToken };
  return { access, call: server.call, close: server.close };
};

export const createE2eHub = async (
  hubCase: HubCase,
  startServer: () => Promise<HubServer> = standInHubServer,
): Promise<E2eHub> => {
  const { mode, controller, tenantNamespaces = false } = hubCase;
  const server = await startServer();
  const token = await grantHubAccess(server.call, HUB_NAMESPACE, [
    ...(controller === 'ledger' ? (['controller-ledger'] as const) : []),
    ...(tenantNamespaces ? (['tenant-namespaces'] as const) : []),
  ]);
  // The service alone goes through it, so that what passes is what the service asks for.
  const proxy = await startKubeFaultProxy(server.access);
  const play = playHub({ call: server.call, pace: PACE, operator: controller === 'operator' });
  await play.prepare({ fc430: 8 });
  play.start(20);
  const folder = mkdtempSync(join(tmpdir(), 'ledger-e2e-hub-'));
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  let hook: (() => Promise<void>) | undefined;
  const automation = await startAutomation(mode, play, async () => hook?.());
  const stack = await createStack('sqlite');
  const kubeconfig = kubeconfigOf({ url: proxy.url, ca: proxy.ca, credentials: { token } });
  const { endpoint } = automation;
  return {
    stack,
    play,
    onCall: proxy.onCall,
    seen: proxy.seen,
    list: async (plural) => (await play.api.list(plural, '')) as unknown as readonly KubeObject[],
    asked: automation.asked,
    dropNext: automation.dropNext,
    dropped: automation.dropped,
    onAsked: (next) => void (hook = next),
    loseNextAnswer: automation.loseNextAnswer,
    secrets: [TOKEN, HMAC_SECRET],
    ledgerctl: (...argv) => runMain(argv, { LEDGER_DATA_DIR: stack.dataDir, LEDGERCTL_URL: stack.http() }),
    registration: [
      `--id=${HUB}`,
      `--namespace=${HUB_NAMESPACE}`,
      `--kubeconfig=${file('hub.kubeconfig', kubeconfig)}`,
      `--mode=${mode}`,
      `--controller=${controller}`,
      ...(endpoint === undefined ? [] : [`--endpoint=${endpoint}`, `--token-file=${file('token', TOKEN)}`]),
      ...(mode === 'eda' ? [`--hmac-secret-file=${file('hmac', HMAC_SECRET)}`] : []),
      ...(tenantNamespaces ? ['--tenant-namespaces'] : []),
    ],
    dispose: async () => {
      await stack.dispose();
      await play.stop();
      await automation.close();
      await proxy.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const startAutomation = async (
  mode: HubCase['mode'],
  play: PlayedHub,
  whenAsked: () => Promise<void>,
): Promise<Automation> => {
  switch (mode) {
    case 'operator': {
      const { aap } = play;
      const asked = (): readonly AskedFor[] => aap.launches().map((job) => job as AskedFor);
      const nothing = (): Promise<void> => Promise.resolve();
      const none = (): Promise<number> => Promise.resolve(0);
      return { asked, loseNextAnswer: nothing, dropNext: nothing, dropped: none, close: nothing };
    }
    case 'eda': {
      const asked: AskedFor[] = [];
      const rulebook = await startRulebook({
        token: TOKEN,
        hmacSecret: HMAC_SECRET,
        playbook: async ({ payload, meta }) => {
          const kind = KIND_OF[meta.endpoint] ?? 'create';
          asked.push({ kind, order: payload as JsonObject });
          await whenAsked();
          play.ansible.start(kind, payload as JsonObject);
        },
      });
      const loseNextAnswer = async (): Promise<void> => rulebook.next('cut');
      return {
        endpoint: rulebook.url,
        asked: () => asked,
        loseNextAnswer,
        dropNext: async () => rulebook.next('drop'),
        dropped: async () => rulebook.requests.filter(isCut).length,
        close: rulebook.close,
      };
    }
    case 'aap': {
      const asked: AskedFor[] = [];
      const playbooks = await standInServer(async (request, response) => {
        const job = JSON.parse(String(await bodyOf(request))) as AapJob;
        const kind = KIND_OF[job.template.name.replace(/^osac-/, '')] ?? 'create';
        const order = orderOfJob(job);
        asked.push({ kind, order });
        await whenAsked();
        play.ansible.start(kind, order);
        response.end();
      });
      const platform = await startStandIn(AAP, {
        token: TOKEN,
        // Over before they are looked at for the first time; the next look is 10 s later.
        pace: { pendingMs: 0, waitingMs: 0, runningMs: 0 },
        playbookUrl: playbooks.url,
      });
      const close = async (): Promise<void> => {
        await platform.kill();
        await playbooks.close();
      };
      const loseNextAnswer = (): Promise<void> => platform.command('nextLaunch', 'lose');
      return {
        endpoint: platform.url,
        asked: () => asked,
        loseNextAnswer,
        dropNext: () => platform.command('nextLaunch', 'drop'),
        dropped: async () => (await platform.command<AapRequest[]>('requests')).filter(isCut).length,
        close,
      };
    }
  }
};
