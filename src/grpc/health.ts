import { create, toBinary, type Message } from '@bufbuild/protobuf';
import type { Timers } from '../app/ports.ts';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  type HealthCheckRequest,
} from '../gen/grpc/health/v1/health_pb.ts';
import type { Readiness } from '../http/app.ts';
import { ApiError, tooMuch, unavailable } from '../http/errors.ts';
import { addressKey } from '../http/limits/admission.ts';
import type { MessageSink } from '../http/osac/service-table.ts';
import { pathOf, type GrpcMethod, type ReadRequest } from './method.ts';

export type HealthServices = {
  readonly readiness: () => Promise<Readiness> | Readiness;
  readonly timers: Timers;
  /** Names of the services that are offered: each is as healthy as the whole. */
  readonly offered: ReadonlySet<string>;
  /** Aborted when the service stops. */
  readonly ending?: AbortSignal | undefined;
};

/** Milliseconds between two looks for those who watch. */
const LOOK_MS = 1_000;

/** Watches of all callers together, and those of one address: they are for anybody. */
const MAX_WATCHES = 1_000;
const MAX_WATCHES_OF_ONE = 100;

type Watched = {
  readonly known: boolean;
  readonly address: string;
  readonly sink: MessageSink;
  /** `UNKNOWN` until it was told something. */
  told: ServingStatus;
};

/** `grpc.health.v1.Health`, for anybody: `/readyz` in gRPC's words. */
export const healthMethods = ({
  readiness,
  timers,
  offered,
  ending,
}: HealthServices): readonly GrpcMethod[] => {
  const status = async (): Promise<ServingStatus> =>
    (await readiness()).ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  const isKnown = (service: string): boolean => service === '' || offered.has(service);
  const serviceOf = async (read: ReadRequest): Promise<string> =>
    ((await read()) as (Message & HealthCheckRequest) | undefined)?.service ?? '';
  const response = (of: ServingStatus): Uint8Array =>
    toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: of }));
  const tell = (watched: Watched, now: ServingStatus): void => {
    const next = watched.known ? now : ServingStatus.SERVICE_UNKNOWN;
    if (next !== watched.told) watched.sink.write([response(next)]);
    watched.told = next;
  };
  const watches = new Set<Watched>();
  const assertRoom = (address: string): void => {
    let own = 0;
    for (const watched of watches) if (watched.address === address) own += 1;
    if (own >= MAX_WATCHES_OF_ONE)
      throw tooMuch(`${own} watches of the health are open from this address`, 'TOO_MANY_WATCHES', 1);
    if (watches.size >= MAX_WATCHES)
      throw tooMuch(`${MAX_WATCHES} watches of the health are open already`, 'TOO_MANY_WATCHES', 1);
  };
  let looking = false;
  /** One for all who watch, while anybody does. */
  const look = async (): Promise<void> => {
    looking = watches.size > 0;
    if (!looking) return;
    const now = await status().catch(() => ServingStatus.NOT_SERVING);
    for (const watched of watches) if (watched.told !== ServingStatus.UNKNOWN) tell(watched, now);
    later();
  };
  let cancel = (): void => {};
  const later = (): void => {
    looking = true;
    if (ending?.aborted !== true) cancel = timers.after(LOOK_MS, () => void look());
  };
  ending?.addEventListener('abort', () => {
    cancel();
    for (const { sink } of watches) sink.end(unavailable('this instance stops', 'SHUTTING_DOWN', 1));
  });
  const { check, list, watch } = Health.method;
  return [
    {
      desc: check,
      verb: 'GET',
      serve: async (exchange, read) => {
        exchange.method = pathOf(check);
        if (!isKnown(await serviceOf(read))) throw new ApiError('NOT_FOUND', 'unknown service');
        return { message: response(await status()), headers: {} };
      },
    },
    {
      desc: list,
      verb: 'GET',
      serve: async (exchange, read) => {
        exchange.method = pathOf(list);
        await read();
        const now = { status: await status() };
        const statuses = Object.fromEntries(['', ...offered].map((name) => [name, now]));
        const message = create(HealthListResponseSchema, { statuses });
        return { message: toBinary(HealthListResponseSchema, message), headers: {} };
      },
    },
    {
      desc: watch,
      verb: 'GET',
      open: async (exchange, read, sink) => {
        exchange.method = pathOf(watch);
        const service = await serviceOf(read);
        const { response: answer } = exchange;
        if (answer.destroyed) return;
        const address = addressKey(exchange.request.socket.remoteAddress ?? '');
        assertRoom(address);
        const watched = { known: isKnown(service), address, sink, told: ServingStatus.UNKNOWN };
        watches.add(watched);
        answer.once('close', () => watches.delete(watched));
        const now = await status();
        sink.head();
        tell(watched, now);
        if (!looking) later();
      },
    },
  ];
};
