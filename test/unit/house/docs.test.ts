import { expect } from 'chai';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { settings } from '../../../src/config.ts';
import { ledgerctl, problemWith } from '../ops/operator-texts.ts';

/** What the documents tell people to read, set and type has to exist. */
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...globSync(['docs/**/*.md', 'ops/**/*.md', 'src/**/*.md', 'test/**/*.md']),
];

/** Names that are paths of the repository when they stand at the beginning. */
const ROOTS = ['src', 'test', 'docs', 'ops', 'fixtures', 'proto', '.ci'];
/** Paths in documents are general: `<kind>`, `{public,private}`, `*` and `…` stand for any name. */
const PLACEHOLDER = /[<>{}*…$]/;

const codeSpansOf = (text: string): string[] =>
  [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, code]) => code ?? '');

/** Code spans, and lines of code blocks, which hold commands too. */
const codeOf = (text: string): string[] => [
  ...codeSpansOf(text),
  ...[...text.matchAll(/^```\w*\n([\s\S]*?)^```/gm)].flatMap(([, block]) => (block ?? '').split('\n')),
];

const linksOf = (text: string): string[] => [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, to]) => to ?? '');

/** Files and folders of the repository that a text names in code spans: `src/http/app.ts`, `ops/alerts/`. */
const pathsIn = (text: string): string[] =>
  codeSpansOf(text).filter(
    (code) =>
      (ROOTS.some((root) => code.startsWith(`${root}/`)) || /^[\w-]+\.(ts|md|json)$/.test(code)) &&
      !PLACEHOLDER.test(code) &&
      !code.includes(' '),
  );

/** A bare file name is told of the folder that the text has just named, so that it may be anywhere. */
const everyFileName = new Set(
  globSync(['src/**', 'test/**', 'ops/**', 'docs/**', 'fixtures/**', '*.{ts,md,json}']).map(
    (path) => path.split('/').at(-1) ?? '',
  ),
);
const isThere = (path: string): boolean => (path.includes('/') ? existsSync(path) : everyFileName.has(path));

const variablesIn = (text: string): string[] =>
  [...text.matchAll(/\bLEDGER_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => name);

const scriptsIn = (text: string): string[] => [
  ...[...text.matchAll(/\bnpm run (?:--?\w+ )*([\w:]+)/g)].map(([, name]) => name ?? ''),
  ...[...text.matchAll(/\bnpm (start|test)\b/g)].map(([, name]) => name ?? ''),
];

/** Command lines, each up to what is no longer part of it: a pipe, a comment, the end of a substitution. */
const commandLinesIn = (text: string): string[] =>
  codeOf(text).flatMap((code) =>
    [...code.matchAll(/(?:^|[\s(])ledgerctl ([^|;)#]+)/g)].map(([, words]) => (words ?? '').trim()),
  );

/** Short forms like `orders show <id>` or just `orders show`, told after the whole command. */
const shortCommandsIn = (text: string): string[] => {
  const groups = ledgerctl()
    .commands.filter(({ commands }) => commands.length > 0)
    .map((command) => command.name());
  return codeSpansOf(text).filter((code) => {
    const [first = '', second] = code.split(' ');
    return groups.includes(first) && second !== undefined;
  });
};

/** Only `--help` goes with any command, and a shell function hands on whichever; what stands in brackets is optional. */
const problemWithLine = (line: string): string | undefined =>
  line === '--help' || line === '"$@"' || line === ''
    ? undefined
    : problemWith(line.replaceAll(/\[[^\]]*\]/g, '').trim());

/** A command that is only named needs no operands. */
const problemWithShort = (line: string): string | undefined => {
  const problem = problemWithLine(line);
  return problem?.endsWith('words, not 0') === true ? undefined : problem;
};

/** `carryOut`, `ClusterOrdered`, `FAILPOINTS`, `resize-up`: one word of code, but no stream and no variable. */
const NAME = /^(?!sys-|LEDGER_)[A-Za-z]+(?:[A-Z_-][A-Za-z]+)*$/;

/** Variables that tests read: they are no settings of the service, but must be read somewhere. */
const testVariables = new Set(
  globSync(['test/**/*.ts', 'src/main.ts', 'package.json'])
    .flatMap((file) => variablesIn(readFileSync(file, 'utf8')))
    .filter((name) => name.startsWith('LEDGER_TEST_')),
);
const known = new Set<string>(settings.map(({ variable }) => variable));
const scripts = Object.keys(
  (JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }).scripts,
);

/** Paths of somebody's machine, package hosts, addresses of private networks. */
const FOREIGN = new RegExp(
  [
    /(?:^|[\s"'`(=])\/(?:home|root|tmp|work|workspace|Users|mnt|srv)\//,
    /:\/\/[^/\s]*\b(?:registry|npm|npmjs|mirror|artifactory|nexus)\b/,
    /\b(?:registry|mirror|artifactory|nexus)\.[\w-]+\.[a-z]{2,}/,
    /\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}:\d+/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'm',
);

describe('documents', () => {
  it('are all found', () => {
    expect(DOCUMENTS).to.include.members(['README.md', 'docs/architecture.md', 'docs/osac-differences.md']);
    expect(DOCUMENTS.filter((file) => file.startsWith('ops/runbooks/'))).not.to.have.length(0);
  });

  for (const file of DOCUMENTS) {
    describe(file, () => {
      const text = readFileSync(file, 'utf8');

      it('names only files and folders that exist', () => {
        expect(pathsIn(text).filter((path) => !isThere(path))).to.deep.equal([]);
      });

      it('links only to files that exist', () => {
        const local = linksOf(text).filter((to) => !/^(https?:|mailto:|#)/.test(to));
        const broken = local.filter(
          (to) => !existsSync(normalize(join(dirname(file), to.split('#')[0] ?? ''))),
        );
        expect(broken).to.deep.equal([]);
      });

      it('names only variables that are read', () => {
        const unknown = variablesIn(text).filter((name) => !known.has(name) && !testVariables.has(name));
        expect(unknown).to.deep.equal([]);
      });

      it('names only npm scripts that exist', () => {
        expect(scriptsIn(text).filter((name) => !scripts.includes(name))).to.deep.equal([]);
      });

      it('names only ledgerctl commands that exist', () => {
        for (const line of commandLinesIn(text)) expect(problemWithLine(line), line).to.equal(undefined);
        for (const line of shortCommandsIn(text)) expect(problemWithShort(line), line).to.equal(undefined);
      });

      it('holds no path of a machine and no host of a network', () => {
        expect(FOREIGN.exec(text)?.[0]).to.equal(undefined);
      });
    });
  }

  it('and the pipeline name only npm scripts that exist', () => {
    const named = scriptsIn(readFileSync('.ci/run', 'utf8'));
    expect(named).to.include.members(['lint', 'typecheck', 'test', 'coverage', 'demo']);
    expect(named.filter((name) => !scripts.includes(name))).to.deep.equal([]);
  });

  it('name functions, types, events and alerts of the architecture as the sources do', () => {
    const words = new Set(
      [...globSync('src/**/*.ts'), 'ops/alerts/fulfillment-ledger.rules.yml'].flatMap(
        (file) => readFileSync(file, 'utf8').match(/[\w-]+/g) ?? [],
      ),
    );
    const named = codeSpansOf(readFileSync('docs/architecture.md', 'utf8')).filter((code) => NAME.test(code));
    expect(named.length).to.be.greaterThan(80);
    expect(named.filter((name) => !words.has(name))).to.deep.equal([]);
  });

  describe('the checks themselves', () => {
    it('find what is wrong', () => {
      expect(pathsIn('see `src/nowhere.ts`, `fixtures/events/<Type>.v1.json` and `npm test`')).to.deep.equal([
        'src/nowhere.ts',
      ]);
      expect(['src/nowhere.ts', 'nowhere.ts', 'src/main.ts', 'evolve.ts'].filter(isThere)).to.deep.equal([
        'src/main.ts',
        'evolve.ts',
      ]);
      expect(linksOf('[a](docs/a.md) and [b](#b)')).to.deep.equal(['docs/a.md', '#b']);
      expect(variablesIn('set LEDGER_NOTHING=1, not `ledger_x`')).to.deep.equal(['LEDGER_NOTHING']);
      expect(scriptsIn('`npm run --silent sim -- --seeds 1`, npm run nothing, npm start')).to.deep.equal([
        'sim',
        'nothing',
        'start',
      ]);
      expect(FOREIGN.test('cd /home/me/x')).to.equal(true);
      expect(FOREIGN.test('npm install --registry https://registry.example')).to.equal(true);
      expect(FOREIGN.test('the packages of mirror.site.example')).to.equal(true);
      expect(
        FOREIGN.test('http://127.0.0.1:8001/api, /absolute/file.sqlite, `src/domain/registry.ts`'),
      ).to.equal(false);
    });

    it('find commands that do not exist, in spans and in code blocks', () => {
      const text =
        'Run `npx ledgerctl orders mend <id>`, `orders retry <id>`.\n```sh\nnpx ledgerctl demo # live\n```\n';
      expect(commandLinesIn(text)).to.deep.equal(['orders mend <id>', 'demo']);
      expect(commandLinesIn(text).map(problemWithLine)).to.deep.equal([
        'there is no "mend" in orders',
        undefined,
      ]);
      expect(shortCommandsIn(text)).to.deep.equal(['orders retry <id>']);
      expect(['orders retry', 'orders mend', 'orders list --when x'].map(problemWithShort)).to.deep.equal([
        undefined,
        'there is no "mend" in orders',
        'list has no --when',
      ]);
    });
  });
});
