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
import { ApiError, unavailable } from '../http/errors.ts';
import { frameOf } from './frames.ts';
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
        const now = async (): Promise<ServingStatus> =>
          isKnown(service) ? status() : ServingStatus.SERVICE_UNKNOWN;
        let told = await now();
        let cancel = (): void => {};
        const look = async (): Promise<void> => {
          const next = await now().catch(() => ServingStatus.NOT_SERVING);
          if (next !== told) sink.write(frameOf(response(next)));
          told = next;
          later();
        };
        const later = (): void => {
          if (!exchange.response.destroyed) cancel = timers.after(LOOK_MS, () => void look());
        };
        sink.head();
        sink.write(frameOf(response(told)));
        exchange.response.once('close', () => cancel());
        const stop = (): void => sink.end(unavailable('this instance stops', 'SHUTTING_DOWN', 1));
        ending?.addEventListener('abort', stop, { once: true, signal: exchange.signal() });
        later();
      },
    },
  ];
};
