import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';

/**
 * Pings of clients, by the rules of gRPC's servers (OSAC): a client may ping every ten seconds, also without a call; more
 * often is forgiven twice between two answers, and as often as it likes while an answer is on its way: clients measure
 * the line then. The library answers floods for ever.
 */
export type PingRules = {
  /** Milliseconds that a client must leave between two pings. */
  readonly leastBetweenMs: number;
  /** Pings that come too early and are forgiven. */
  readonly forgiven: number;
};

/** Gives back what is to be told of a stream whenever something is sent on it, has left, or it is closed. */
export const countPings = (
  session: ServerHttp2Session,
  { leastBetweenMs, forgiven }: PingRules,
  monotonicMs: () => number,
): ((stream: ServerHttp2Stream) => void) => {
  let strikes = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  const sending = new Set<ServerHttp2Stream>();
  const isSending = (): boolean => {
    for (const stream of sending) {
      if (stream.writableLength > 0) return true;
      sending.delete(stream);
    }
    return false;
  };
  const forgive = (): void => {
    strikes = 0;
    lastMs = Number.NEGATIVE_INFINITY;
  };
  session.on('ping', () => {
    const now = monotonicMs();
    if (now - lastMs < leastBetweenMs) strikes += 1;
    lastMs = now;
    if (isSending()) forgive();
    if (strikes <= forgiven) return;
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'));
    session.destroy();
  });
  return (stream) => {
    if (stream.destroyed) return void sending.delete(stream);
    forgive();
    if (stream.writableLength > 0) sending.add(stream);
  };
};
