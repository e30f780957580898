import { randomUUID } from 'node:crypto';
import type { ApiClient } from '../api-client.ts';
import { openSocket } from '../socket.ts';
import { PUBLIC } from './addresses.ts';
import { ClaimFailed } from './narrator.ts';
import type { Stage } from './stage.ts';

const SESSIONS = `${PUBLIC}/console_sessions`;
/** Prompt of a machine, behind the line before it. */
const PROMPT = '\r\n# ';

/** Types a line at a machine's serial console and gives back what the machine answered, without the echo. */
export const askConsole = async (
  stage: Stage,
  user: ApiClient,
  machine: string,
  line: string,
): Promise<string> => {
  const { ticket } = await user.send<{ ticket: string }>('POST', SESSIONS, {
    resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
    resource_id: machine,
    type: 'CONSOLE_TYPE_SERIAL',
    client_id: randomUUID(),
  });
  const url = new URL(`${SESSIONS}/connect`, stage.service().http);
  const { stream, leave } = await openSocket(url, ticket, { timeoutMs: stage.patienceMs });
  const late = setTimeout(() => stream.destroy(), stage.patienceMs);
  let said = '';
  let typed = false;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      said += piece.toString();
      const [, answer] = said.split(`${line}\r\n`);
      if (answer?.endsWith(PROMPT) === true) return answer.slice(0, -PROMPT.length);
      if (typed || !said.endsWith(PROMPT)) continue;
      typed = true;
      stream.write(`${line}\r`);
    }
  } catch {
    // The claim below says what was missed.
  } finally {
    clearTimeout(late);
    await leave();
  }
  throw new ClaimFailed(`the console of ${machine} did not answer '${line}': ${said}`);
};
