import { createHmac } from 'node:crypto';
import {
  AutomationError,
  type Automation,
  type AutomationConnection,
  type AutomationErrorKind,
  type AutomationPurpose,
} from '../../../app/automation/automation.ts';
import type { CallOptions } from '../../../app/hubs/management-cluster.ts';
import type { SecretStore } from '../../../app/ports.ts';
import { revealCredentials, type Credentials } from '../credentials.ts';
import { retryAfterOf, send, type HttpAnswer } from '../http.ts';
import type { ListenerSlots } from '../listener-slots.ts';
import { playbookSafe } from '../playbook-safe.ts';
import { redacted } from '../../../domain/redact.ts';

/** Paths of the rulebook's listener (OSAC's operator). */
export const EDA_ENDPOINTS: { readonly [Purpose in AutomationPurpose]: string } = {
  provision: 'create-hosted-cluster',
  deprovision: 'delete-hosted-cluster',
};
/** The listener refuses more with 413. */
export const MAX_BODY_BYTES = 1_048_576;
/** A burst makes a listener answer after up to 26 s although it accepted. */
export const SHORTEST_DEADLINE_MS = 30_000;
/** How long a request may wait for its place before it is given back unsent; those before it may take 30 s. */
const WAIT_MS = 45_000;

/**
 * Event-Driven Ansible: posts the whole ClusterOrder to a rulebook's webhook. 200 means that the event is queued there,
 * not that anything will happen (OSAC's operator).
 */
export const createEdaAutomation = (options: {
  readonly connection: AutomationConnection;
  readonly secrets: Pick<SecretStore, 'reveal'>;
  /** Shared by all hubs that post to one listener. */
  readonly slots: ListenerSlots;
}): Automation => {
  const { connection, secrets, slots } = options;
  const base = connection.url.replace(/\/+$/, '');

  const common = {
    keep: { end: 'head', bytes: 4096 },
    ...(connection.ca === undefined ? {} : { ca: connection.ca }),
  } as const;

  /** Posts to one endpoint; resolves when the listener answered 200. */
  const post = async (endpoint: string, key: string, content: object, call: CallOptions): Promise<void> => {
    // These very bytes are signed and sent.
    const body = Buffer.from(JSON.stringify(content));
    if (body.byteLength > MAX_BODY_BYTES) {
      throw new AutomationError(
        'invalid',
        `the order is ${body.byteLength} bytes long, but listeners take at most ${MAX_BODY_BYTES}; nothing was sent`,
      );
    }
    const leave = await slots.enter(base, `${endpoint}/${key}`, { waitMs: WAIT_MS, signal: call.signal });
    try {
      const credentials = await revealCredentials(secrets, connection);
      const answer = await send(
        {
          method: 'POST',
          url: `${base}/${endpoint}`,
          kind: 'write',
          body,
          headers: {
            ...headersOf(credentials, body),
            'Content-Type': 'application/json',
            // Seen by the rules as `meta.headers`; a listener of today does not act on it.
            'Idempotency-Key': call.effectId,
          },
          ...common,
        },
        { deadlineMs: Math.max(call.deadlineMs, SHORTEST_DEADLINE_MS), signal: call.signal },
      );
      if (answer.status < 200 || answer.status > 299) throw refusalOf(answer, credentials.values);
    } finally {
      leave();
    }
  };

  return {
    trigger: async ({ purpose, orderName, order }, call) => {
      await post(EDA_ENDPOINTS[purpose], orderName, playbookSafe(order), call);
      return { kind: 'queued' };
    },
    // A GET is verified like a post and then refused: nothing is queued, and a busy listener answers it at once.
    check: async (call) => {
      try {
        const credentials = await revealCredentials(secrets, connection);
        const headers = headersOf(credentials, new Uint8Array());
        const url = `${base}/${EDA_ENDPOINTS.provision}`;
        const answer = await send({ method: 'GET', url, kind: 'read', headers, ...common }, call);
        if (answer.status === 405 && answer.headers.allow === 'POST') return { problems: [] };
        return { problems: [refusalOf(answer, credentials.values).message] };
      } catch (error) {
        if (error instanceof AutomationError) return { problems: [error.message] };
        throw error;
      }
    },
    lacking: async (kinds) =>
      kinds
        .filter(({ webhook }) => webhook === undefined)
        .map(({ kind }) => ({
          kind,
          code: 'WebhookMissing',
          message: `mode eda has no webhook for ${kind}`,
        })),
  };
};

const headersOf = ({ token, hmacSecret }: Credentials, body: Uint8Array): Record<string, string> => ({
  ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  ...(hmacSecret === undefined ? {} : { 'X-Hub-Signature-256': signatureOf(body, hmacSecret) }),
});

/** `sha256=<lower-case hex>` over the bytes of the body; upper-case is refused. */
export const signatureOf = (body: Uint8Array, secret: string): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

/** Answers of a listener and of what may stand before it. */
const refusalOf = (answer: HttpAnswer, values: readonly string[]): AutomationError => {
  const { status } = answer;
  const said = redacted((answer.text.trim() || answer.reason).slice(0, 200), values);
  const [kind, advice] = meaningOf(status, said);
  return new AutomationError(kind, `the listener answered ${status} (${said}): ${advice}`, {
    ...retryAfterOf(answer.headers),
  });
};

const meaningOf = (status: number, said: string): readonly [AutomationErrorKind, string] => {
  if (status === 401 || status === 403) {
    const kind = status === 401 ? 'unauthorized' : 'forbidden';
    return [kind, 'token and HMAC secret of the hub must be those of the rulebook'];
  }
  if (status === 400 && /signature/i.test(said)) {
    return ['unauthorized', 'it wants a signature; give the hub the HMAC secret of the rulebook'];
  }
  if (status === 429) return ['throttled', 'it is asked too often'];
  if (status === 503) return ['unavailable', 'it is not there just now'];
  if (status >= 500 || status === 408) return ['unknown-outcome', 'the event may be queued all the same'];
  if (status === 404 || status === 405 || status < 400) {
    return ['not-found', 'no rulebook webhook at this address'];
  }
  return ['invalid', 'it does not take this order'];
};
