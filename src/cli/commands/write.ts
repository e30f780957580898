import { InvalidArgumentError, type Command } from 'commander';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import { ApiError, Unreachable } from '../api-client.ts';
import { CliFailure, exitStatusOf } from '../exit.ts';
import { applyDocument, type Outcome } from '../resources/apply.ts';
import type { JsonObject } from '../../domain/json.ts';
import { identityOf, parseDocuments, readSource, type FileDocument } from '../resources/documents.ts';
import { inOrder, parentsIn } from '../resources/parents.ts';
import { parseDuration } from '../output.ts';
import type { NamedKind } from '../resources/kind-names.ts';
import { nameOf, type ResourceApi } from '../resources/resource-api.ts';
import {
  outputOption,
  printObjects,
  withScope,
  type Output,
  type ResourceContext,
  type Scope,
} from './resource-context.ts';

type WriteOptions = Scope & {
  readonly filename: string;
  readonly kind?: string;
  readonly output?: Output;
  readonly dryRun: boolean;
  readonly idempotencyKey?: string;
};

const FILES = `
A file holds one or more objects in YAML or JSON (documents, or a list). Each says what it is with "kind: cluster" or
with "@type", as \`get -o yaml\` prints it; --kind does so for all that do not.
`;

/** `ledgerctl create` and `ledgerctl apply`: objects from a file. */
export const addWriteCommands = (program: Command, context: ResourceContext): void => {
  withFile(
    program
      .command('create')
      .description('create the objects of a file; one that exists already is an error'),
    `${FILES}
Examples:
  ledgerctl create -f cluster.yaml
  ledgerctl create -f cluster.yaml --dry-run -o yaml
  ledgerctl create -f cluster.yaml --idempotency-key order-4711
  ledgerctl create -f - --kind host_type < host-types.json
`,
  )
    .option('--idempotency-key <key>', 'a repetition with the same key and file creates nothing twice')
    .action((options: WriteOptions) =>
      eachDocument(context, options, async (api, { kind, document, where }, key) => {
        const { dryRun } = options;
        try {
          return { done: 'created', object: await api.create(kind, document, { dryRun, key }) };
        } catch (error) {
          throw isUnknown(error) && !dryRun ? unknownOutcome(error, where, key) : error;
        }
      }),
    );
  withFile(
    program
      .command('apply')
      .description(
        'make the objects of a file be as the file says: create those that are absent, change the others',
      ),
    `${FILES}
Fields that the file does not name stay as they are; maps (labels, node sets) are replaced. A file that holds
metadata.version is applied to that version only. Applying the same file again changes nothing.

Objects go after those of the file that they refer to, and wait until these are ready: a subnet for its network.

Examples:
  ledgerctl apply -f catalogue.yaml
  ledgerctl get cluster web -o yaml > web.yaml; ledgerctl apply -f web.yaml
`,
  )
    .option('--wait <time>', 'how long an object waits for what it refers to in the file', parseDuration, 120)
    .action((options: WriteOptions & { readonly wait: number }) =>
      eachDocument(
        context,
        options,
        (api, document, _key, all) =>
          onceReady(context, document, parentsIn(all, document), options, () =>
            applyDocument(api, document, { dryRun: options.dryRun, newKey: context.newKey }),
          ),
        inOrder,
      ),
    );
};

const LOOK_MS = 1_000;
/** gRPC's FAILED_PRECONDITION: what it refers to is not ready yet, most often. */
const NOT_YET = 9;

const onceReady = async (
  { io, pause, now }: ResourceContext,
  { kind, document }: FileDocument,
  parents: readonly FileDocument[],
  { wait, dryRun }: { readonly wait: number; readonly dryRun: boolean },
  apply: () => Promise<Outcome>,
): Promise<Outcome> => {
  const deadline = now() + wait * 1_000;
  for (let isFirst = true; ; isFirst = false)
    try {
      return await apply();
    } catch (error) {
      const mayPass =
        parents.length > 0 &&
        !dryRun &&
        error instanceof ApiError &&
        (error.body as { readonly code?: unknown } | null)?.code === NOT_YET;
      if (!mayPass || now() >= deadline) throw error;
      const names = parents.map((one) => shownAs(one)).join(', ');
      if (isFirst) io.err(`${shownAs({ kind, document })} waits for ${names}\n`);
      await pause(LOOK_MS);
    }
};

const withFile = (command: Command, help: string): Command =>
  withScope(
    command
      .requiredOption('-f, --filename <file>', 'the file, or - for stdin')
      .option('--kind <kind>', 'kind of the objects that do not name it')
      .addOption(outputOption())
      .option('--dry-run', 'check everything and show the result, but change nothing', false)
      .addHelpText('after', help),
  );

/** Without an answer, or with one that says so, nobody knows whether the object is there. */
const isUnknown = (error: unknown): error is Error =>
  (error instanceof Unreachable && error.sent) || (error instanceof ApiError && error.status === 504);

const unknownOutcome = (error: Error, where: string, key: string): CliFailure =>
  new CliFailure(
    exitStatusOf(error),
    `${where}: ${error.message}\n  it may have been created; to settle it without a second one, create this object again with --idempotency-key ${key}`,
    { cause: error },
  );

/** One after the other, so that later objects may refer to earlier ones; it stops at the first that fails. */
const eachDocument = async (
  context: ResourceContext,
  options: WriteOptions,
  write: (
    api: ResourceApi,
    document: FileDocument,
    key: string,
    all: readonly FileDocument[],
  ) => Promise<Outcome>,
  sorted: (all: readonly FileDocument[]) => readonly FileDocument[] = (all) => all,
): Promise<void> => {
  const fallback = options.kind === undefined ? undefined : context.names.find(options.kind);
  const source = await readSource(options.filename, context.io.stdin ?? (async () => ''));
  const documents = sorted(await parseDocuments(source, context.names, fallback));
  const api = await context.open(options);
  /** What a dry run would create, and what it cannot check as it refers to that. */
  const unmade = new Set<FileDocument>();
  for (const [i, found] of documents.entries()) {
    const document = ownedBy(found, options.tenant);
    const parent = parentsIn(documents, found).find((one) => unmade.has(one));
    if (parent !== undefined) {
      unmade.add(found);
      const say = options.output === undefined ? context.io.out : context.io.err;
      say(`${shownAs(found)} not checked: its ${shownAs(parent)} is only in this file\n`);
      continue;
    }
    const given = options.idempotencyKey;
    if (given === '') throw new InvalidArgumentError('--idempotency-key needs a text');
    const key = given === undefined ? context.newKey() : documents.length === 1 ? given : `${given}-${i + 1}`;
    const outcome = await write(api, document, key, documents).catch((error: unknown) => {
      throw documents.length > 1 || error instanceof ApiError
        ? located(error, document, i, documents.length)
        : error;
    });
    if (options.dryRun && outcome.done === 'created') unmade.add(found);
    await report(context, api, document, outcome, options);
  }
};

/** `--tenant` is for whom an object is created that does not say it itself. */
const ownedBy = (found: FileDocument, tenant: string | undefined): FileDocument => {
  const metadata = objectAt(found.document, 'metadata');
  if (tenant === undefined || stringAt(metadata, 'tenant') !== '') return found;
  return { ...found, document: { ...found.document, metadata: { ...metadata, tenant } } };
};

const located = (
  error: unknown,
  { where, kind, document }: FileDocument,
  index: number,
  count: number,
): CliFailure => {
  const rest = count - index - 1;
  const after = rest === 0 ? '' : `\n  ${rest} more of the file ${rest === 1 ? 'was' : 'were'} not tried`;
  const message = error instanceof Error ? error.message : String(error);
  const what = shownAs({ kind, document });
  const text = message.startsWith(where) ? message : `${where} (${what}): ${message}`;
  return new CliFailure(exitStatusOf(error), `${text}${after}`, { cause: error });
};

const shownAs = ({ kind, document }: Pick<FileDocument, 'kind' | 'document'>): string => {
  const { id, name = id } = identityOf(kind, document);
  return name === undefined ? kind.singular : `${kind.singular}/${name}`;
};

const report = async (
  context: ResourceContext,
  api: ResourceApi,
  { kind }: FileDocument,
  { done, object }: Outcome,
  { output, dryRun }: WriteOptions,
): Promise<void> => {
  if (!dryRun && done === 'created' && output !== 'json' && output !== 'yaml')
    sayBreakGlass(context, kind, object, output === 'name');
  if (output === undefined) return said(context, nameOf(kind, object), done, dryRun);
  const surface = api.surfaceOf(kind, 'Create');
  if (output === 'yaml') context.io.out('---\n');
  await printObjects(context, kind, [object], {
    output,
    surface,
    single: true,
    header: true,
    tenants: false,
  });
};

/** The service shows it in this one answer only, also to whoever wants nothing else of the object. */
const sayBreakGlass = (
  { io }: ResourceContext,
  { kind }: NamedKind,
  object: JsonObject,
  apart: boolean,
): void => {
  if (kind.kind !== 'tenant') return;
  const credentials = objectAt(objectAt(object, 'status'), 'break_glass_credentials');
  const password = stringAt(credentials, 'password');
  // Repeated by the client after a lost answer, or by the caller with an old key.
  if (password === '')
    return io.err('the break-glass password was shown by an earlier answer: set one if it is lost\n');
  const write = apart ? io.err : io.out;
  write(`break-glass user:     ${stringAt(credentials, 'username')}\nbreak-glass password: ${password}\n`);
  io.err('keep the break-glass password now: it is not shown again\n');
};

const said = ({ io }: ResourceContext, name: string, done: string, dryRun: boolean): void =>
  io.out(`${name} ${done}${dryRun ? ' (dry run)' : ''}\n`);
