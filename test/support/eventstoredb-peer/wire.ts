import { createRequire } from 'node:module';
import type * as Protobuf from 'google-protobuf';
import type * as AnyPb from 'google-protobuf/google/protobuf/any_pb.js';
import type * as EmptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import type * as GossipService from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import type * as GossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import type * as FeaturesService from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import type * as FeaturesPb from '@eventstore/db-client/generated/serverfeatures_pb.js';
import type * as SharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type * as StatusPb from '@eventstore/db-client/generated/status_pb.js';
import type * as UsersService from '@eventstore/db-client/generated/users_grpc_pb.js';
import type * as UsersPb from '@eventstore/db-client/generated/users_pb.js';
import type * as StreamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type * as StreamsPb from '@eventstore/db-client/generated/streams_pb.js';

/**
 * The client's own generated messages. They are CommonJS modules that fill their exports
 * at run time, which `import` cannot see; google-protobuf must be the very copy that the client resolves.
 */
const require = createRequire(import.meta.url);
const requireOfClient = createRequire(require.resolve('@eventstore/db-client'));

export const streams = require('@eventstore/db-client/generated/streams_pb') as typeof StreamsPb;
export const shared = require('@eventstore/db-client/generated/shared_pb') as typeof SharedPb;
export const statusPb = require('@eventstore/db-client/generated/status_pb') as typeof StatusPb;
export const gossip = require('@eventstore/db-client/generated/gossip_pb') as typeof GossipPb;
export const features = require('@eventstore/db-client/generated/serverfeatures_pb') as typeof FeaturesPb;
export const users = require('@eventstore/db-client/generated/users_pb') as typeof UsersPb;
export const services = {
  ...(require('@eventstore/db-client/generated/streams_grpc_pb') as typeof StreamsService),
  ...(require('@eventstore/db-client/generated/gossip_grpc_pb') as typeof GossipService),
  ...(require('@eventstore/db-client/generated/serverfeatures_grpc_pb') as typeof FeaturesService),
  ...(require('@eventstore/db-client/generated/users_grpc_pb') as typeof UsersService),
};
export const protobuf = requireOfClient('google-protobuf') as typeof Protobuf;
export const anyPb = requireOfClient('google-protobuf/google/protobuf/any_pb') as typeof AnyPb;
export const emptyPb = requireOfClient('google-protobuf/google/protobuf/empty_pb') as typeof EmptyPb;

export type { StreamsPb, SharedPb, GossipPb, FeaturesPb, StatusPb, UsersPb };

/** UUIDs come as text, or as two signed 64-bit halves (the real server answers in halves). */
export const uuidText = (uuid: SharedPb.UUID | undefined): string => {
  const halves = uuid?.getStructured();
  if (halves === undefined) return uuid?.getString() ?? '';
  const hex = [halves.getMostSignificantBits(), halves.getLeastSignificantBits()]
    .map((half) => BigInt.asUintN(64, BigInt(half)).toString(16).padStart(16, '0'))
    .join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
};

export const uuidOf = (text: string, form: 'text' | 'halves' = 'text'): SharedPb.UUID => {
  const uuid = new shared.UUID();
  if (form === 'text') return uuid.setString(text);
  const hex = text.replaceAll('-', '');
  const half = (from: number): string =>
    BigInt.asIntN(64, BigInt(`0x${hex.slice(from, from + 16)}`)).toString();
  return uuid.setStructured(
    new shared.UUID.Structured().setMostSignificantBits(half(0)).setLeastSignificantBits(half(16)),
  );
};

export const streamIdentifier = (name: string): SharedPb.StreamIdentifier =>
  new shared.StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(name, 'utf8')));

export const nameOf = (identifier: SharedPb.StreamIdentifier | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');

export const unsignedPosition = (offset: number): SharedPb.AllStreamPosition =>
  new shared.AllStreamPosition().setCommitPosition(String(offset)).setPreparePosition(String(offset));
