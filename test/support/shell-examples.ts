/** Examples of documents as they are typed: every `curl` writes its status down; what it printed stays what it printed. */
export const SHELL = String.raw`
curl() {
  body=$(command curl -w '\n%{http_code}' "$@")
  printf '%s\n' "$body" | sed '$d'
  printf '%s\n' "$(printf '%s\n' "$body" | tail -n 1)" >> statuses.txt
}
`;

/** A status in the comment above calls, up to the next empty line; else 200. */
export const statedIn = (block: string): readonly string[] => {
  const stated: string[] = [];
  let last = '200';
  for (const line of block.split('\n')) {
    if (line === '') last = '200';
    if (line.startsWith('# ')) last = /\((\d{3})\)/.exec(line)?.[1] ?? '200';
    if (line.startsWith('curl ')) stated.push(last);
  }
  return stated;
};
