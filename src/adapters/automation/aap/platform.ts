import type { z } from 'zod';
import {
  AutomationError,
  type AutomationConnection,
  type AutomationErrorKind,
} from '../../../app/automation/automation.ts';
import type { CallOptions } from '../../../app/hubs/management-cluster.ts';
import type { SecretStore } from '../../../app/ports.ts';
import { revealCredentials } from '../credentials.ts';
import { retryAfterOf, send, type HttpAnswer, type HttpCall } from '../http.ts';
import { redacted } from '../../../domain/redact.ts';

/** Requests to one automation platform below `/v2`, each with a token revealed for it. */
export type Platform = {
  /** Parsed answer of a GET. Undefined: the platform says that there is no such thing. */
  get<T>(path: string, shape: z.ZodType<T>, call: CallOptions): Promise<Read<T> | undefined>;
  /** A POST; `undefined` for 404 and 405 as the caller allows them. */
  post(
    path: string,
    body: object,
    allowed: readonly number[],
    call: CallOptions,
  ): Promise<{ readonly status: number; readonly json: unknown }>;
  /** The last bytes of a text and what must not be shown of it. Undefined: there is none. */
  tail(
    path: string,
    bytes: number,
    call: CallOptions,
  ): Promise<
    { readonly text: string; readonly cut: boolean; readonly secret: readonly string[] } | undefined
  >;
  /** Address as people know it. */
  readonly base: string;
};
export type Read<T> = {
  readonly value: T;
  /** The platform's clock minus ours, in milliseconds, as its Date header shows it. */
  readonly clockSkewMs: number;
};

export const createPlatform = (options: {
  readonly connection: AutomationConnection;
  readonly secrets: Pick<SecretStore, 'reveal'>;
}): Platform => {
  const { connection, secrets } = options;
  const base = connection.url.replace(/\/+$/, '');

  const ask = async (
    call: Pick<HttpCall, 'method' | 'kind' | 'body' | 'keep'> & { path: string; accept: string },
    options_: CallOptions,
  ): Promise<{ answer: HttpAnswer; secret: readonly string[] }> => {
    const { token, values } = await revealCredentials(secrets, connection);
    const { path, accept, ...rest } = call;
    const answer = await send(
      {
        ...rest,
        url: `${base}/v2${path}`,
        headers: {
          Accept: accept,
          'Content-Type': 'application/json',
          ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        },
        ...(connection.ca === undefined ? {} : { ca: connection.ca }),
      },
      options_,
    );
    return { answer, secret: values };
  };

  const refusal = (
    kind: HttpCall['kind'],
    answer: HttpAnswer,
    secret: readonly string[],
  ): AutomationError => {
    const { status } = answer;
    const [word, advice] = meaningOf(status, kind);
    const said = redacted((detailOf(answer) ?? answer.reason).slice(0, 300), secret);
    return new AutomationError(word, `the automation platform answered ${status} (${said}): ${advice}`, {
      ...retryAfterOf(answer.headers),
    });
  };

  return {
    base,
    get: async (path, shape, call) => {
      const { answer, secret } = await ask(
        { method: 'GET', path, kind: 'read', accept: 'application/json' },
        call,
      );
      // A 404 in other words than the platform's own comes from something else and says nothing about the job.
      if (answer.status === 404 && detailOf(answer) !== undefined) return undefined;
      if (answer.status !== 200) throw refusal('read', answer, secret);
      const parsed = shape.safeParse(jsonOf(answer.text));
      if (parsed.success) return { value: parsed.data, clockSkewMs: skewOf(answer) };
      throw new AutomationError(
        'not-found',
        `no automation platform at ${base}: its answer has another shape`,
      );
    },
    post: async (path, body, allowed, call) => {
      const { answer, secret } = await ask(
        {
          method: 'POST',
          path,
          kind: 'write',
          accept: 'application/json',
          body: Buffer.from(JSON.stringify(body)),
        },
        call,
      );
      const taken = answer.status >= 200 && answer.status <= 299;
      if (taken || allowed.includes(answer.status)) {
        return { status: answer.status, json: jsonOf(answer.text) };
      }
      throw refusal('write', answer, secret);
    },
    tail: async (path, bytes, call) => {
      const { answer, secret } = await ask(
        { method: 'GET', path, kind: 'read', accept: 'text/plain', keep: { end: 'tail', bytes } },
        call,
      );
      if (answer.status === 404) return undefined;
      if (answer.status !== 200) throw refusal('read', answer, secret);
      return { text: answer.text, cut: answer.cut, secret };
    },
  };
};

const skewOf = ({ headers }: HttpAnswer): number => {
  const date = Date.parse(headers.date ?? '');
  return Number.isNaN(date) ? 0 : date - Date.now();
};

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** The platform's own words for an error. */
const detailOf = ({ text }: HttpAnswer): string | undefined => {
  const json = jsonOf(text);
  if (typeof json !== 'object' || json === null) return undefined;
  if ('detail' in json && typeof json.detail === 'string') return json.detail;
  return Object.keys(json).join(', ') || undefined;
};

const meaningOf = (status: number, kind: HttpCall['kind']): readonly [AutomationErrorKind, string] => {
  if (status === 401) return ['unauthorized', 'the token of the hub is not accepted'];
  if (status === 403) return ['forbidden', "the token's user lacks a right, for example to run the template"];
  if (status === 429) return ['throttled', 'it is asked too often'];
  if (status === 503) return ['unavailable', 'it is not there just now'];
  if (status >= 500 || status === 408) {
    return kind === 'write'
      ? ['unknown-outcome', 'it may have been done all the same']
      : ['unavailable', 'it is not well'];
  }
  if (status === 404 || status < 400) return ['not-found', 'nothing of the platform is at this address'];
  return ['invalid', 'it does not take this request'];
};
