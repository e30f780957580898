import type { ConnectConsole } from '../app/consoles/console-line.ts';
import type { Clock, Ids, Timers } from '../app/ports.ts';
import type { Readiness } from '../http/app.ts';
import { createBodyBudget } from '../http/body.ts';
import type { ExchangeServices } from '../http/exchange.ts';
import { createCors, type CorsSettings } from '../http/limits/cors.ts';
import type { CallServices } from '../http/osac/served.ts';
import type { StreamService, SurfaceTable } from '../http/osac/service-table.ts';
import { consoleMethods, keySetMethods } from './console.ts';
import { healthMethods } from './health.ts';
import { createGrpcServer, type GrpcServer, type GrpcServerOptions } from './listener.ts';
import { osacMethods } from './osac-methods.ts';
import { reflectionMethods } from './reflection.ts';
import { createServeStream } from './serve.ts';

export type GrpcAppOptions = ExchangeServices &
  CallServices &
  Pick<GrpcServerOptions, 'keepalive' | 'accept'> & {
    readonly clock: Clock;
    readonly ids: Ids;
    readonly timers: Timers;
    readonly surfaces: readonly SurfaceTable[];
    /** Carries a console. Absent: `ConsoleProxy` is not offered. */
    readonly connectConsole?: ConnectConsole;
    /** JSON Web Key Set of what signs their tickets. Absent: `JsonWebKeySet` is not offered. */
    readonly keySet?: () => Promise<string>;
    /** Methods whose answers go on, `Events/Watch`. Default: none. */
    readonly streams?: readonly StreamService[];
    readonly readiness: () => Promise<Readiness> | Readiness;
    /** True: anybody may ask which services there are. Default: admins alone. */
    readonly openReflection?: boolean;
    readonly cors?: CorsSettings;
    readonly slowReaderMs?: number;
    /** Milliseconds in which a message must have arrived. Default 30,000. */
    readonly arrivalMs?: number;
    /** Aborted when the service stops: answers that go on until the caller leaves end then. */
    readonly ending?: AbortSignal;
  };

/** Bytes that the requests of all running calls may take together. */
const MAX_REQUESTS_BYTES = 64 * 1024 * 1024;

/** OSAC's services, health and reflection. The handlers are those of REST: this is another codec around them. */
export const createGrpcApp = (options: GrpcAppOptions): GrpcServer => {
  const {
    surfaces,
    streams = [],
    connectConsole,
    keySet,
    readiness,
    timers,
    cors = { origins: [] },
  } = options;
  const calls = { bodies: createBodyBudget(MAX_REQUESTS_BYTES), ...options };
  const methods = [
    ...osacMethods(surfaces, streams, calls),
    ...(connectConsole === undefined ? [] : consoleMethods(connectConsole, calls)),
    ...(keySet === undefined ? [] : keySetMethods(keySet, calls)),
  ];
  const offered = new Set(methods.map(({ desc }) => desc.parent.typeName));
  const health = healthMethods({ readiness, timers, offered, ending: options.ending });
  const described = [...methods, ...health];
  const reflection = reflectionMethods({
    methods: described,
    anonymous: options.openReflection === true,
    calls,
  });
  const serve = createServeStream({
    ...calls,
    methods: [...described, ...reflection],
    cors: createCors(cors),
  });
  return createGrpcServer(serve, options);
};
