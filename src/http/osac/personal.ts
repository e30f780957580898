import { aggregateOf } from '../../domain/kinds.ts';
import type { CommandContext, CommandOutcome, CommandRunner } from '../../app/commands/command.ts';
import type { KeyStore } from '../../app/ports.ts';
import type { RequestHash } from '../../app/commands/request-hash.ts';
import type { ResourceCommands, ResourceOptions } from '../../app/commands/resource-commands.ts';
import type { DocumentCommand } from '../../domain/catalog/document.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isEncrypted, revealed, type OpenPersonal } from '../../domain/personal.ts';
import { placesOf, valueAtPlace, withValueAtPlace } from '../../domain/document-places.ts';
import type { ResourceKind } from '../../domain/resource.ts';

export type PersonalDocuments = Pick<KeyStore, 'encrypt'> & { readonly open: OpenPersonal };

/** Characters of a name's hash: 160 bits, so that no two names share one. */
const TOKEN_DIGITS = 40;

/**
 * What stands for a name that is personal data, in events and as what is reserved: a hash under the deployment's key,
 * which nobody can guess names from. It is a valid name itself.
 */
export const createNameToken =
  (requestHash: RequestHash) =>
  (kind: string, tenant: string, name: string): string =>
    `p${requestHash({ method: 'name', route: kind, body: [tenant, name] }).slice(0, TOKEN_DIGITS)}`;

export type NameToken = ReturnType<typeof createNameToken>;

/**
 * Commands whose documents are concealed before they reach an aggregate: every personal text
 * becomes ciphertext under the key of the person it is about, and what is stored already stays the ciphertext it is, so
 * that a change of nothing writes nothing. Handlers and rehearsed commands deal in clear text only.
 */
export const concealing = (
  commands: ResourceCommands,
  services: {
    readonly people: PersonalDocuments;
    readonly runner: CommandRunner;
    readonly nameToken: NameToken;
  },
): ResourceCommands => ({
  inTurn: commands.inTurn,
  execute: async <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    id: string,
    command: C | ((abandonedBefore: number) => C),
    context: CommandContext,
    options?: ResourceOptions,
  ): Promise<CommandOutcome<S>> => {
    const { personal } = kind;
    if (personal === undefined) return commands.execute(kind, id, command, context, options);
    const make = (abandonedBefore: number): C =>
      typeof command === 'function' ? command(abandonedBefore) : command;
    // A kind with personal data has the shared decider, whose commands these are.
    const sample = make(0) as unknown as DocumentCommand;
    if (!('document' in sample)) return commands.execute(kind, id, command, context, options);
    const loaded =
      options?.likelyNew === true ? undefined : await services.runner.load(aggregateOf(kind), id);
    const document = await concealed(id, sample, personal, loaded?.state, services.people);
    const conceal = (clear: WithDocument): WithDocument =>
      clear.type === 'CreateDocument' && personal.includes('metadata.name')
        ? { ...clear, document, name: services.nameToken(kind.kind, clear.tenant, clear.name) }
        : { ...clear, document };
    return commands.execute(
      kind,
      id,
      (abandonedBefore) => conceal(make(abandonedBefore) as unknown as WithDocument) as unknown as C,
      context,
      options,
    );
  },
});

type WithDocument = Extract<DocumentCommand, { readonly document: JsonObject }>;

const concealed = async (
  id: string,
  command: WithDocument,
  paths: readonly string[],
  state: unknown,
  { encrypt, open }: PersonalDocuments,
): Promise<JsonObject> => {
  const stored = (state as { readonly document?: JsonObject } | undefined)?.document ?? {};
  const shown = revealed(stored, open);
  let document = withName(command, paths);
  for (const path of paths) {
    for (const place of placesOf(document, path)) {
      const text = valueAtPlace(document, place);
      if (typeof text !== 'string') continue;
      const before = valueAtPlace(stored, place);
      const same = isEncrypted(before) && valueAtPlace(shown, place) === text;
      const value = same ? before : { ...(await encrypt(id, text)) };
      document = withValueAtPlace(document, place, value) as JsonObject;
    }
  }
  return document;
};

/** The name of a new object lies in its document, since what stands in its place elsewhere is a hash. */
const withName = (command: WithDocument, paths: readonly string[]): JsonObject =>
  command.type === 'CreateDocument' && paths.includes('metadata.name')
    ? (withValueAtPlace(command.document, ['metadata', 'name'], command.name) as JsonObject)
    : command.document;
