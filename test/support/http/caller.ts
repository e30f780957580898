export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed body; undefined when it is not JSON. */
  readonly json: Json;
};
/** JSON of any shape: specs look into whatever came back. */
export interface Json {
  readonly [key: string]: Json | undefined;
}

/** The text at the end of a path into an answer; an error when something else is there. */
export const textAt = (json: Json | undefined, ...path: readonly string[]): string => {
  const value: unknown = path.reduce<Json | undefined>((node, key) => node?.[key], json);
  if (typeof value !== 'string') throw new Error(`no text at ${path.join('..')}: ${JSON.stringify(json)}`);
  return value;
};

export const itemsOf = (reply: Reply): readonly Json[] => (reply.json['items'] ?? []) as unknown as Json[];

export const callerOf =
  (service: { readonly url: string }, token?: string) =>
  async (
    verb: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> => {
    const response = await fetch(service.url + path, {
      method: verb,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      json = undefined;
    }
    return { status: response.status, headers: response.headers, text, json: json as Json };
  };
export type Caller = ReturnType<typeof callerOf>;

export const PUBLIC = '/api/fulfillment/v1';
export const PRIVATE = '/api/private/v1';
