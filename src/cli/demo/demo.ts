import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringAt } from '../../domain/json-tools.ts';
import { duration } from '../output.ts';
import { attachAddress } from './addresses.ts';
import { checkOffline, takeExport } from './audit.ts';
import { followOnKafka, type DemoKafka } from './kafka.ts';
import { needTopicsWithoutRecords, removeTopics } from './kafka-topics.ts';
import { CannotBegin, ClaimFailed, createNarrator, type Narrator } from './narrator.ts';
import { showNetworks } from './networks.ts';
import { askTheHubs, deleteBoth, leftBehind } from './on-hubs.ts';
import { crashAndRecover, orderAndWatch, repeatOrder, scale } from './orders.ts';
import { registerHub } from './real-hub.ts';
import type { ServiceProcess } from './service-process.ts';
import { PATIENCE_MS, setStage, type DemoOptions, type Stage } from './stage.ts';

/** Runs the demo; 0 when everything was as it says, 1 when something was not. */
export const runDemo = async (options: DemoOptions): Promise<number> => {
  const narrator = createNarrator(options.stream);
  const made: { topics?: readonly string[] } = {};
  const code = await play(options, narrator, made);
  return (await tidyUp(options, made.topics, narrator)) ? code : 1;
};

/** `made`: what it leaves on the brokers when it has ended, however it does. */
const play = async (
  options: DemoOptions,
  narrator: Narrator,
  made: { topics?: readonly string[] },
): Promise<number> => {
  const started = performance.now();
  const dir = mkdtempSync(join(tmpdir(), 'fulfillment-ledger-demo-'));
  const running: { service?: ServiceProcess; kafka?: DemoKafka } = {};
  const ordered: string[] = [];
  try {
    if (options.kafka !== undefined) await needTopicsWithoutRecords(options.kafka, options.topics, narrator);
    narrator.chapter('Start: the service on its embedded event log, in a temporary directory');
    const stage = await setStage(options, narrator, join(dir, 'data'), running);
    if (options.hub !== undefined) {
      narrator.chapter(`Hub: ${stringAt(options.hub, 'id')}, a management cluster`);
      await registerHub(narrator, stage.admin(), options.hub, PATIENCE_MS);
    }
    const kafka = await followOnKafka({
      ...stage,
      brokers: options.kafka,
      follow: options.followRecords,
      onMade: (topics) => {
        made.topics = topics;
      },
    });
    running.kafka = kafka;
    const first = await orderAndWatch(stage, ordered);
    await scale(stage, first);
    await attachAddress(stage, first);
    await showNetworks(stage);
    await kafka.showOrder(first.id);
    await repeatOrder(stage, first);
    const second = await crashAndRecover(stage, ordered);
    await kafka.showOrder(second.id);
    await askTheHubs(stage, [first, second]);
    await deleteBoth(stage, [first, second]);
    await kafka.showGone([first.id, second.id]);
    await verifyHistory(stage);
    const { patienceMs, auditor, download } = stage;
    const taken = await takeExport({ narrator, auditor: auditor(), download, dir, patienceMs });
    const events = await stopService(stage);
    await checkOffline(narrator, taken);
    narrator.chapter(
      `Done: ${events} events in the log, ${narrator.checked} claims checked, ${duration((performance.now() - started) / 1000)}`,
    );
    return 0;
  } catch (error) {
    if (error instanceof CannotBegin) {
      options.stream.write(`\n   NOT BEGUN: ${error.message}\n`);
      return 1;
    }
    const failed = error instanceof ClaimFailed ? `NOT AS CLAIMED: ${error.message}` : String(error);
    options.stream.write(`\n   ${failed}\n${(running.service?.log ?? []).slice(-15).join('\n')}\n`);
    options.stream.write(await leftBehind(options, ordered));
    return 1;
  } finally {
    await Promise.allSettled([running.kafka?.close(), running.service?.stop('SIGKILL')]);
    rmSync(dir, { recursive: true, force: true });
  }
};

/** Once whatever publishes to them has ended. False: something is left that should not be. */
const tidyUp = async (
  { kafka: brokers, removeTopics: isWanted, topics }: DemoOptions,
  made: readonly string[] | undefined,
  narrator: Narrator,
): Promise<boolean> =>
  brokers === undefined || made === undefined || isWanted !== true
    ? true
    : removeTopics(brokers, made, topics, narrator);

const verifyHistory = async (stage: Stage): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('History: rebuild every read model from the log and compare');
  const { items } = await stage.admin().get<{ items: { name: string }[] }>('/api/ledger/v1/projections');
  for (const { name } of items) {
    let outcome = 'no report';
    for await (const line of stage
      .admin()
      .lines<{ report?: { outcome: string; events: number } }>(
        'POST',
        `/api/ledger/v1/projections/${name}/rebuild`,
      ))
      if (line.report !== undefined) outcome = line.report.outcome;
    narrator.check(
      `${name}, rebuilt from the first event, equals the live one`,
      outcome === 'switched',
      outcome,
    );
  }
};

const stopService = async (stage: Stage): Promise<number> => {
  const { narrator } = stage;
  let events = 0;
  for await (const _ of stage.admin().lines('GET', '/api/ledger/v1/events?limit=100000')) events += 1;
  const code = await stage.service().stop('SIGTERM');
  narrator.check('the service stopped cleanly on SIGTERM', code === 0, `exit ${code}`);
  return events;
};
