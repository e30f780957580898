import { parseItem } from 'structured-headers';

/** Header `Idempotency-Key`: a structured-field string (RFC 8941), or a bare token as many clients send it. */
export const MAX_IDEMPOTENCY_KEY = 255;

export type ParsedKey =
  | { readonly ok: true; readonly key: string | undefined }
  | { readonly ok: false; readonly message: string };

const BARE = /^[A-Za-z0-9!#$%&'*+\-.^_`|~:/=@]+$/;
const HOW = 'send it as a quoted string, for example Idempotency-Key: "order-4711"';

/** `header` is the value as received; undefined and several lines of it (joined by commas) are dealt with. */
export const parseIdempotencyKey = (header: string | undefined): ParsedKey => {
  if (header === undefined) return { ok: true, key: undefined };
  const text = header.trim();
  const key = text.startsWith('"') ? quoted(text) : BARE.test(text) ? text : undefined;
  if (key === undefined) return { ok: false, message: `header Idempotency-Key cannot be read: ${HOW}` };
  if (key.length === 0) return { ok: false, message: `header Idempotency-Key is empty: ${HOW}` };
  if (key.length > MAX_IDEMPOTENCY_KEY)
    return {
      ok: false,
      message: `header Idempotency-Key has ${key.length} characters; at most ${MAX_IDEMPOTENCY_KEY} are allowed`,
    };
  return { ok: true, key };
};

/** Parameters behind the string are allowed by the format and mean nothing here. */
const quoted = (text: string): string | undefined => {
  try {
    const [value] = parseItem(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
};
