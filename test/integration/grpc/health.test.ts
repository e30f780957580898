import { create, fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { EventEmitter } from 'node:events';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
} from '../../../src/gen/grpc/health/v1/health_pb.ts';
import { healthMethods } from '../../../src/grpc/health.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { manualTime } from '../../support/manual-time.ts';

const MOST = 1_000;
const MOST_OF_ONE = 100;

/** The method under a time that is told to pass, and those who call it. */
const watching = () => {
  const { timers, pass } = manualTime();
  const ending = new AbortController();
  let ready = true;
  let looks = 0;
  const methods = healthMethods({
    timers,
    offered: new Set(['known']),
    ending: ending.signal,
    readiness: () => {
      looks += 1;
      return { ready, checks: [] };
    },
  });
  const [method] = methods.filter((each) => 'open' in each);
  const watch = async (service = '', remoteAddress = '192.0.2.1') => {
    if (method === undefined) throw new Error('no watch');
    const told: ServingStatus[] = [];
    const ended: string[] = [];
    const response = Object.assign(new EventEmitter(), { destroyed: false });
    const leave = (): void => {
      response.destroyed = true;
      response.emit('close');
    };
    const opened = method.open(
      {
        request: { socket: { remoteAddress } },
        response,
        signal: () => ending.signal,
      } as unknown as Exchange,
      () => Promise.resolve(create(HealthCheckRequestSchema, { service })),
      {
        head: () => undefined,
        backlog: () => 0,
        write: (messages) => {
          for (const message of messages) told.push(fromBinary(HealthCheckResponseSchema, message).status);
          return true;
        },
        onDrain: () => undefined,
        end: (error) => ended.push(error?.error ?? ''),
      },
    );
    const refused = await opened.then(
      () => undefined,
      (error: { error: string }) => error.error,
    );
    if (refused !== undefined) leave();
    return { told, ended, leave, refused };
  };
  return {
    watch,
    pass,
    ending,
    looks: () => looks,
    turn: (now: boolean): void => {
      ready = now;
    },
  };
};

describe('watches of the health', () => {
  const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = ServingStatus;

  it('given many of them, when time passes, then one look serves them all', async () => {
    const { watch, pass, looks, turn } = watching();
    const all = [await watch(), await watch('known'), await watch('nope')];
    await pass(1_000);
    const before = looks();
    turn(false);
    await pass(1_000);
    expect(looks()).to.equal(before + 1);
    await pass(1_000);
    turn(true);
    await pass(1_000);
    const turns = [SERVING, NOT_SERVING, SERVING];
    expect(all.map(({ told }) => told)).to.deep.equal([turns, turns, [SERVICE_UNKNOWN]]);
  });

  it('given none any more, when time passes, then nobody looks', async () => {
    const { watch, pass, looks } = watching();
    (await watch()).leave();
    const before = looks();
    await pass(10_000);
    expect(looks()).to.equal(before);
    const again = await watch();
    await pass(1_000);
    expect(looks()).to.equal(before + 2);
    expect(again.told).to.deep.equal([SERVING]);
  });

  it(`given ${MOST} of them, when one more comes, then it is refused until one has left`, async () => {
    const { watch } = watching();
    const all = [];
    for (let i = 0; i < MOST; i += 1) all.push(await watch('', `192.0.2.${i % 20}`));
    expect(all.map(({ refused }) => refused)).to.deep.equal(all.map(() => undefined));
    expect((await watch()).refused).to.equal('RESOURCE_EXHAUSTED');
    all[7]?.leave();
    expect((await watch()).refused).to.equal(undefined);
    expect((await watch()).refused).to.equal('RESOURCE_EXHAUSTED');
  });

  it(`given ${MOST_OF_ONE} of one address, when one more comes, then others are still served`, async () => {
    const { watch } = watching();
    const all = [];
    for (let i = 0; i < MOST_OF_ONE; i += 1) all.push(await watch());
    expect(all.map(({ refused }) => refused)).to.deep.equal(all.map(() => undefined));
    expect((await watch()).refused).to.equal('RESOURCE_EXHAUSTED');
    expect((await watch('', '192.0.2.2')).refused).to.equal(undefined);
    all[7]?.leave();
    expect((await watch()).refused).to.equal(undefined);
  });

  it('given some, when the service stops, then each is told', async () => {
    const { watch, pass, looks, ending } = watching();
    const all = [await watch(), await watch()];
    ending.abort();
    const before = looks();
    await pass(10_000);
    expect(looks()).to.equal(before);
    expect(all.map(({ ended }) => ended)).to.deep.equal([['UNAVAILABLE'], ['UNAVAILABLE']]);
  });
});
