import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import {
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { authentication } from './access.ts';
import { createAppendService } from './append-service.ts';
import { createStats, refusalError, type PeerContext, type ServerVersion, type Stats } from './context.ts';
import { createFaults, type Faults } from './faults.ts';
import { createLog, type Log, type LogOptions } from './log.ts';
import { createReadService } from './read-service.ts';
import {
  features,
  gossip,
  services,
  users,
  uuidOf,
  type FeaturesPb,
  type GossipPb,
  type SharedPb,
  type UsersPb,
} from './wire.ts';

export type PeerOptions = LogOptions & {
  /** The release it behaves as. Default 24.10. */
  readonly version?: ServerVersion;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default `halves`, as the real server. */
  readonly uuids?: 'text' | 'halves';
  /** By how many milliseconds the server's clock is ahead. Default 0. */
  readonly clockAheadMs?: number;
  /** Default 32, as the real server. */
  readonly defaultWindow?: number;
  /** System events at the beginning of the log, as every real server has them. Default 3. */
  readonly systemEvents?: number;
  /** Serves TLS with this certificate. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Passwords of the users whom it lets in, looked up at each call. Only with `tls`: clients send none without. */
  readonly users?: ReadonlyMap<string, string>;
  /** An existing log: another node of the same cluster. */
  readonly log?: Log;
};

export type Peer = {
  readonly port: number;
  /** For one endpoint, without TLS. */
  readonly connectionString: string;
  /** The same server found by gossip. */
  readonly discoveryString: string;
  readonly faults: Faults;
  readonly stats: Stats;
  readonly log: Log;
  /** Cuts every connection; new ones are accepted. */
  cutConnections(): void;
  /** Stops listening and cuts every connection: connections are refused until `restart`. The log stays. */
  goDown(): Promise<void>;
  /** Listens again on the same port with the same log; after `goDown`, or at once for a quick restart. */
  restart(): Promise<void>;
  /** Connections are accepted, but nothing on them is ever answered, nor on existing ones. Returns the way back. */
  blackHole(): () => void;
  stop(): Promise<void>;
};

/**
 * An EventStoreDB as the client sees it, in memory, that misbehaves on command.
 * It listens by itself and hands sockets to the gRPC server, so that connections can be cut and frozen.
 */
export const startPeer = async (options: PeerOptions = {}): Promise<Peer> => {
  const log = options.log ?? createLog(options);
  const faults = createFaults();
  const stats = createStats();
  const sockets = new Map<string, Socket>();
  let frozen = false;
  let port = options.port ?? 0;

  for (let n = 0; options.log === undefined && n < (options.systemEvents ?? 3); n += 1)
    log.inject('$users', { type: '$UserCreated', data: Buffer.from(JSON.stringify({ n })) });

  const peer: PeerContext = {
    log,
    faults,
    stats,
    version: options.version ?? '24.10',
    cut: (address) => sockets.get(address)?.destroy(),
    uuids: options.uuids ?? 'halves',
    clockAheadMs: options.clockAheadMs ?? 0,
    defaultWindow: options.defaultWindow ?? 32,
    address: () => ({ host: '127.0.0.1', port }),
  };
  const { tls, users } = options;
  const grpc = new Server({
    'grpc.max_receive_message_length': 17 * 1024 * 1024,
    // Kestrel's default, which no version changes.
    'grpc.max_concurrent_streams': 100,
    interceptors: users === undefined ? [] : [authentication(users)],
  });
  const serve = (service: unknown, handlers: object): void =>
    grpc.addService(service as never, handlers as UntypedServiceImplementation);
  serve(services.StreamsService, { ...createAppendService(peer), ...createReadService(peer) });
  serve(services.GossipService, { read: gossipHandler(peer) });
  serve(services.ServerFeaturesService, { getSupportedMethods: featuresHandler(peer) });
  serve(services.UsersService, { create: userHandler(peer) });
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) },
        ]);
  const injector = grpc.createConnectionInjector(credentials);

  const accept = (socket: Socket): void => {
    const name = `${socket.remoteAddress}:${socket.remotePort}`;
    sockets.set(name, socket);
    stats.connections += 1;
    stats.connected += 1;
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(name);
      stats.connections -= 1;
    });
    if (!frozen) injector.injectConnection(socket);
  };
  const listen = async () => {
    const listener = createServer(accept);
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
    port = (listener.address() as AddressInfo).port;
    return listener;
  };
  let listener: Awaited<ReturnType<typeof listen>> | undefined = await listen();

  const cutConnections = (): void => {
    for (const socket of sockets.values()) socket.destroy();
  };
  /** Going down and coming up take turns, whoever asks for them. */
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    turn = turn.then(work, work);
    return turn;
  };
  const down = async (): Promise<void> => {
    const open = listener;
    listener = undefined;
    if (open === undefined) return;
    const closed = new Promise((resolve) => open.close(resolve));
    cutConnections();
    await closed;
  };

  return {
    get port() {
      return port;
    },
    get connectionString() {
      return `esdb://127.0.0.1:${port}?tls=false`;
    },
    get discoveryString() {
      return `esdb+discover://127.0.0.1:${port}?tls=false&discoveryInterval=20&maxDiscoverAttempts=3`;
    },
    faults,
    stats,
    log,
    cutConnections,
    goDown: () => inTurn(down),
    restart: () =>
      inTurn(async () => {
        await down();
        listener = await listen();
      }),
    blackHole: () => {
      frozen = true;
      faults.freeze(true);
      return () => {
        frozen = false;
        faults.freeze(false);
        cutConnections();
      };
    },
    stop: async () => {
      faults.clear();
      await inTurn(down);
      injector.destroy();
      grpc.forceShutdown();
    },
  };
};

/** A user is an event of a stream of its own. Nobody is asked for a password here. */
const userHandler =
  ({ log }: PeerContext) =>
  (
    call: ServerUnaryCall<UsersPb.CreateReq, UsersPb.CreateResp>,
    answer: sendUnaryData<UsersPb.CreateResp>,
  ): void => {
    const options = call.request.getOptions();
    const loginName = options?.getLoginName() ?? '';
    const data = {
      loginName,
      fullName: options?.getFullName() ?? '',
      groups: options?.getGroupsList() ?? [],
    };
    log.inject(`$user-${loginName}`, { type: '$UserCreated', data: Buffer.from(JSON.stringify(data)) });
    answer(null, new users.CreateResp());
  };

const gossipHandler =
  (peer: PeerContext) =>
  (
    _call: ServerUnaryCall<SharedPb.Empty, GossipPb.ClusterInfo>,
    answer: sendUnaryData<GossipPb.ClusterInfo>,
  ): void => {
    peer.stats.calls.gossip += 1;
    const fault = peer.faults.next('gossip');
    if (fault?.kind === 'never-answer') return;
    if (fault?.kind === 'refuse') return answer(refusalError(fault, peer.address()));
    const { host, port } = peer.address();
    const member = new gossip.MemberInfo()
      .setInstanceId(uuidOf(randomUUID()))
      .setTimeStamp(String(Date.now()))
      .setState(gossip.MemberInfo.VNodeState.LEADER)
      .setIsAlive(true)
      .setHttpEndPoint(new gossip.EndPoint().setAddress(host).setPort(port));
    answer(null, new gossip.ClusterInfo().setMembersList([member]));
  };

const RELEASES: Readonly<Record<ServerVersion, string>> = {
  '23.10': '23.10.6',
  '24.10': '24.10.4',
  '25.0': '25.0.0',
};

const featuresHandler =
  (peer: PeerContext) =>
  (
    _call: ServerUnaryCall<SharedPb.Empty, FeaturesPb.SupportedMethods>,
    answer: sendUnaryData<FeaturesPb.SupportedMethods>,
  ): void => {
    peer.stats.calls.features += 1;
    const fault = peer.faults.next('features');
    if (fault?.kind === 'never-answer') return;
    if (fault?.kind === 'refuse') return answer(refusalError(fault, peer.address()));
    const supported = ['batchappend', 'append', 'read', 'delete', 'tombstone'].map((method) =>
      new features.SupportedMethod()
        .setMethodName(method)
        .setServiceName('event_store.client.streams.streams'),
    );
    answer(
      null,
      new features.SupportedMethods()
        .setEventStoreServerVersion(RELEASES[peer.version])
        .setMethodsList(supported),
    );
  };
