import type { Stack, Who } from './stack.ts';

/** An answer whatever its status: for tests of what is refused. */
export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; throws when it is none. */
  readonly json: () => Readonly<Record<string, unknown>>;
};

export type CallOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signal?: AbortSignal;
};

/** Calls as one user, on the service as it is started now. */
export const callerOf = async (stack: Stack, who: Who) => {
  const token = await stack.token(who);
  return async (
    method: string,
    path: string,
    { headers, body, signal }: CallOptions = {},
  ): Promise<Reply> => {
    const response = await fetch(`${stack.http()}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: () => JSON.parse(text) as Record<string, unknown>,
    };
  };
};

export type Caller = Awaited<ReturnType<typeof callerOf>>;

/** What `/readyz` says now. */
export const readiness = async (
  stack: Stack,
): Promise<{ readonly status: number; readonly failing: readonly string[] }> => {
  const response = await fetch(`${stack.http()}/readyz`);
  const { checks } = (await response.json()) as { checks: { name: string; ok: boolean }[] };
  return { status: response.status, failing: checks.filter(({ ok }) => !ok).map(({ name }) => name) };
};
