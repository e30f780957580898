/** Examples of documents as they are typed: every `curl` writes down its status, and its answer under its number. */
export const SHELL = String.raw`
curl() {
  body=$(command curl -w '\n%{http_code}' "$@")
  touch statuses.txt
  printf '%s\n' "$body" | sed '$d' | tee "answer-$(($(wc -l < statuses.txt) + 1)).txt"
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

/** What stands behind `#>` below each call; nothing where nothing is said. */
export const shownIn = (block: string): readonly string[] => {
  const shown: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('curl ')) shown.push('');
    if (line.startsWith('#> ')) shown.push(`${shown.pop() ?? ''}${line.slice(3)}`);
  }
  return shown;
};

/** True when one line of the answer is as shown, where `…` stands for any text. */
export const isShown = (shown: string, answer: string): boolean => {
  const parts = shown.split('…').map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  const pattern = new RegExp(`^${parts.join('.*')}$`);
  return answer.split('\n').some((line) => pattern.test(line));
};
