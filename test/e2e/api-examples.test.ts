import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { greeting } from '../../src/cli/greeting.ts';
import { AS_DEPLOYED, E2E_STORE, SERVE, createStack, type Stack } from '../support/service/stack.ts';
import { isShown, SHELL, shownIn, statedIn } from '../support/docs/shell-examples.ts';

const run = promisify(execFile);

/** The examples of docs/api.md as they stand there, typed into a shell. */
const HEADING = '## By example';
/** `npx ledgerctl` as it is from the sources. */
const NPX = `npx() { shift; node '${SERVE[0]}' "$@"; }\n`;

describe('the examples of the pages for callers and administrators', function () {
  this.timeout(180_000);
  let stack: Stack;
  let folder: string;
  let block: string;

  before(async () => {
    const [, text = ''] = readFileSync('docs/api.md', 'utf8').split(HEADING);
    block = /```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
    folder = mkdtempSync(join(tmpdir(), 'ledger-readme-'));
    stack = await createStack(E2E_STORE, AS_DEPLOYED);
    await stack.start();
  });
  after(async () => {
    await stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  it('work as written, with the statuses that they state and the answers that they show', async () => {
    const environment = {
      ...process.env,
      TOKEN: await stack.token({ tenant: 'acme', user: 'alice' }),
      API: `${stack.http()}/api/fulfillment/v1`,
    };
    const { stdout } = await run('bash', ['-c', SHELL + block], { cwd: folder, env: environment });
    const statuses = readFileSync(join(folder, 'statuses.txt'), 'utf8').trim().split('\n');
    expect(statuses, stdout).to.deep.equal(statedIn(block));
    const shown = shownIn(block);
    // The first watch waits for what does not come.
    expect(shown.filter((text) => text === '')).to.have.length(1);
    for (const [i, text] of shown.entries()) {
      const answer = readFileSync(join(folder, `answer-${i + 1}.txt`), 'utf8');
      if (text !== '') expect(isShown(text, answer), `shown: ${text}\nanswered: ${answer}`).to.equal(true);
    }
  });

  it('so do the lines that `npm start` prints on a terminal', async () => {
    const [before = '', lines = ''] = greeting(stack.http(), true).split('\n\n');
    expect(before.trim().split('\n')[0]).to.equal(`fulfillment-ledger listens on ${stack.http()}`);
    const pages = [...before.matchAll(/http\S+\/[a-z.]+/g)].map(([url]) => url);
    expect(pages).to.have.length(3);
    for (const url of pages) expect((await fetch(url)).status, url).to.equal(200);
    const shell = `set -e\n${NPX}curl() { command curl --fail "$@"; echo; }\n`;
    const { stdout } = await run('bash', ['-c', shell + lines], {
      cwd: folder,
      env: { ...process.env, LEDGER_DATA_DIR: stack.dataDir },
    });
    const [templates, ordered, listed] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id?: string; items?: readonly { id: string }[] });
    expect(templates?.items?.map(({ id }) => id)).to.include('osac.templates.ocp_small');
    expect(listed?.items?.map(({ id }) => id)).to.include(ordered?.id);
  });

  it('those of the networks page work as written', async () => {
    const blocks = [...readFileSync('docs/networks.md', 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)];
    const script = blocks.map(([, each = '']) => each).join('\n');
    const text = `set -e\n${NPX}${script.replaceAll('http://127.0.0.1:8001', stack.http())}`;
    const env = { ...process.env, LEDGER_DATA_DIR: stack.dataDir };
    const { stdout } = await run('bash', ['-c', text], { cwd: folder, env });
    expect(blocks.length).to.be.greaterThan(4);
    expect(stdout).to.match(/^external_ip\/web attached to cluster\/shop, api /m);
    expect(stdout).to.match(/^NAT gateway way-out$[\s\S]*^ {2}state: READY$/m);
    expect(stdout).to.match(/^virtual_network\/shop gone$/m);
  });

  it("a virtual machine is ordered as README's chapter and its page say", async () => {
    const env = { ...process.env, LEDGER_DATA_DIR: stack.dataDir, LEDGERCTL_URL: stack.http() };
    const typed = async (text: string): Promise<string> => {
      const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, each = '']) => each).join('\n');
      const script = blocks.replaceAll('http://127.0.0.1:8001', stack.http());
      return (await run('bash', ['-c', `set -e\n${NPX}${script}`], { cwd: folder, env })).stdout;
    };
    const [, chapter = ''] = readFileSync('README.md', 'utf8').split('## Order a virtual machine');
    const first = await typed(chapter.split('\n## ')[0] ?? '');
    expect(first).to.match(/^compute_instance\/my-vm is to run$/m);
    expect(first).to.match(/^compute_instance\/my-vm gone$/m);
    const page = await typed(readFileSync('docs/virtual-machines.md', 'utf8'));
    expect(page).to.match(/^compute_instance\/vm1 is to restart at 2030-01-01T02:00:00Z$/m);
    expect(page).to.match(/^external_ip\/my-ip attached to compute_instance\/vm1/m);
    expect(page).to.match(/^compute_instance\/vm1 gone$/m);
  });

  it('those of the guide work in their order, with the statuses that they state', async () => {
    // What comes after it is about other installations.
    const [guide = ''] = readFileSync('docs/administration.md', 'utf8').split(
      "## Operators' commands in production",
    );
    const blocks = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, each = '']) => each).join('\n');
    writeFileSync(join(folder, 'hub.kubeconfig'), 'apiVersion: v1\nkind: Config\n');
    rmSync(join(folder, 'statuses.txt'));
    const environment = {
      ...process.env,
      LEDGER_DATA_DIR: stack.dataDir,
      LEDGERCTL_URL: stack.http(),
    };
    const script = SHELL + NPX + blocks.replaceAll('http://127.0.0.1:8001', stack.http());
    const { stdout, stderr } = await run('bash', ['-c', script], { cwd: folder, env: environment });
    const statuses = readFileSync(join(folder, 'statuses.txt'), 'utf8').trim().split('\n');
    expect(statuses, stdout + stderr).to.deep.equal(statedIn(blocks));
    expect(stderr).to.match(/^erasure complete: the data of \S+ cannot be read any more\n$/);
    expect(stdout.match(/"password":"(?!\*\*\*")/g), 'shown once').to.have.length(1);
    expect(stdout).not.to.include('only-sent-never-shown');
  });
});
