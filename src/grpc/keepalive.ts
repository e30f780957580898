import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Timers } from '../app/ports.ts';

/**
 * Pings, by the rules of gRPC's servers (OSAC): a client may ping every ten seconds, also without a call; more often is
 * forgiven twice between two answers, and as often as it likes while an answer is on its way: clients measure the line
 * then. An idle connection is pinged, and one that does not answer is ended.
 */
export type Keepalive = {
  /** Gives back what is to be told of a stream whenever something is sent on it, has left, or it is closed. */
  readonly watch: (session: ServerHttp2Session) => (stream: ServerHttp2Stream) => void;
  readonly stop: () => void;
};

export type KeepaliveOptions = {
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  readonly settings?: Partial<KeepaliveSettings>;
};

export type KeepaliveSettings = {
  /** Milliseconds that a client must leave between two pings. */
  readonly leastBetweenMs: number;
  /** Pings that come too early and are forgiven. */
  readonly forgiven: number;
  /** Milliseconds of silence after which the service pings. */
  readonly idleMs: number;
  /** Milliseconds in which a ping must be answered. */
  readonly answerMs: number;
};

export const KEEPALIVE: KeepaliveSettings = {
  leastBetweenMs: 10_000,
  forgiven: 2,
  idleMs: 15_000,
  answerMs: 10_000,
};

type Pulse = {
  lastMs: number;
  pingedMs: number | undefined;
  /** The answer was late at the last look: this process may have stood still itself. */
  late: boolean;
};

export const createKeepalive = ({ timers, monotonicMs, settings }: KeepaliveOptions): Keepalive => {
  const { leastBetweenMs, forgiven, idleMs, answerMs } = { ...KEEPALIVE, ...settings };
  const pulses = new Map<ServerHttp2Session, Pulse>();
  let cancel: (() => void) | undefined;

  const look = (session: ServerHttp2Session, pulse: Pulse, now: number): void => {
    if (pulse.pingedMs !== undefined) {
      if (now - pulse.pingedMs < answerMs) return;
      if (pulse.late) session.destroy();
      pulse.late = true;
      return;
    }
    if (now - pulse.lastMs < idleMs || session.destroyed || session.closed) return;
    pulse.pingedMs = now;
    session.ping(() => {
      pulse.pingedMs = undefined;
      pulse.late = false;
      pulse.lastMs = monotonicMs();
    });
  };
  const sweep = (): void => {
    const now = monotonicMs();
    for (const [session, pulse] of pulses) look(session, pulse, now);
    cancel = pulses.size === 0 ? undefined : timers.after(Math.min(idleMs, answerMs) / 2, sweep);
  };

  return {
    watch: (session) => {
      const pulse: Pulse = { lastMs: monotonicMs(), pingedMs: undefined, late: false };
      let strikes = 0;
      let lastPingMs = Number.NEGATIVE_INFINITY;
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
        lastPingMs = Number.NEGATIVE_INFINITY;
      };
      pulses.set(session, pulse);
      cancel ??= timers.after(Math.min(idleMs, answerMs) / 2, sweep);
      session.once('close', () => pulses.delete(session));
      session.on('ping', () => {
        const now = monotonicMs();
        if (now - lastPingMs < leastBetweenMs) strikes += 1;
        lastPingMs = now;
        pulse.lastMs = now;
        if (isSending()) forgive();
        if (strikes <= forgiven) return;
        session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'));
        session.destroy();
      });
      return (stream) => {
        if (stream.destroyed) return void sending.delete(stream);
        pulse.lastMs = monotonicMs();
        forgive();
        if (stream.writableLength > 0) sending.add(stream);
      };
    },
    stop: () => {
      cancel?.();
      cancel = undefined;
    },
  };
};
