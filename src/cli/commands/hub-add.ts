import { InvalidArgumentError, Option, type Command } from 'commander';
import { nameFromId } from '../../domain/catalog/derived-names.ts';
import { isSimulatedHub } from '../../domain/hubs/hub-facts.ts';
import { nameRejection } from '../../domain/metadata-rules.ts';
import { isPlainToSee } from '../../domain/visible-text.ts';
import type { HubCheckAnswer, HubDetails } from '../../http/ledger/hub-operations.ts';
import { ApiError, type ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { parseDuration } from '../output.ts';
import { readStdin } from './hub-files.ts';
import { checkOfDocument, hubDocument, withHubOptions, type HubOptions } from './hub-options.ts';
import { DOCUMENTS, HUBS, pathOf, repeatable } from './hub-paths.ts';
import { checkText, hubText, refuse } from './hub-text.ts';
import type { ResourceContext } from './resource-context.ts';

const NAME_RULE =
  "at most 63 lower-case letters, digits and '-', of which the first and the last is a letter or digit";

/**
 * What a hub is to be called, looked at before anything is read or asked: a connection that fails, or a field of a document
 * that nobody wrote, is not what is to be mended then. Throws InvalidArgumentError.
 */
const checkHubId = ({ id, name }: { readonly id: string; readonly name?: string }): void => {
  if (id === '' || id === '.' || id === '..' || /[/\\]/.test(id) || !isPlainToSee(id) || id !== id.trim())
    throw new InvalidArgumentError(
      `--id ${quoted(id)} must not hold slashes or characters that cannot be seen, nor begin or end with a space, nor be empty, '.' or '..'`,
    );
  if (isSimulatedHub(id))
    throw new InvalidArgumentError(
      `--id ${quoted(id)} begins with sim-, which makes it a simulated hub: the kubeconfig would not be used; choose another id, or make a simulated hub of a file (\`ledgerctl create -f\`)`,
    );
  if (name !== undefined && nameRejection(name) !== undefined)
    throw new InvalidArgumentError(`--name ${quoted(name)} is not a name: it takes ${NAME_RULE}`);
  // The name is made of what follows the last dot.
  if (name === undefined && nameRejection(nameFromId(id) ?? '') !== undefined)
    throw new InvalidArgumentError(
      `--id ${quoted(id)} cannot name the hub, too: it takes ${NAME_RULE} ('_' counts as '-'); choose another id, or give --name`,
    );
};

const quoted = (text: string): string => JSON.stringify(text);

type AddOptions = HubOptions & {
  readonly force: boolean;
  readonly wait: boolean;
  readonly waitTimeout: number;
};
type Time = Pick<ResourceContext, 'now' | 'pause'>;

/** Where a look takes at most 30 s, and begins with the registration. */
const WAIT_SECONDS = 60;
const POLL_MS = 250;

/** `ledgerctl hubs add`: checks a hub, registers it, and says what the service's own first look at it finds. */
export const addAddCommand = (hubs: Command, { client, io }: Connection, time: Time): void => {
  withHubOptions(
    hubs
      .command('add')
      .description(
        'check a hub and register it; nothing is registered when something is wrong with it. Ends when the service has looked at it, with 1 unless it is ready',
      ),
  )
    .addOption(forceOption())
    .option('--no-wait', 'do not wait for the first look of the service')
    .option('--wait-timeout <time>', 'how long it is waited for', parseDuration, WAIT_SECONDS)
    .addHelpText(
      'after',
      examples(
        'hubs add --id hub-north-1 --kubeconfig north.yaml --namespace osac-hub --zone north',
        'hubs add --id hub-west-1 --kubeconfig west.yaml --namespace osac-hub --mode aap --endpoint https://aap.example/api/controller --token-file aap.token',
      ),
    )
    .action(async (options: AddOptions) => {
      checkHubId(options);
      const document = await hubDocument(options, readStdin(io));
      const api = await client();
      const check = await api.send<HubCheckAnswer>('POST', `${HUBS}/check`, checkOfDocument(document));
      io.err(checkText(check));
      refuse(check.problems, options.force, `hub ${options.id} was not registered`);
      await api.send('POST', DOCUMENTS, document, repeatable());
      io.out(`hub ${options.id}: registered; ledgerctl hubs show ${options.id}\n`);
      if (options.wait) io.out(await firstLook(api, options, time));
    });
};

export const forceOption = (): Option =>
  new Option('--force', 'also when the check finds something wrong').default(false);

/** What to say of a hub that is ready. Throws CliFailure for one that is not, with everything that is wrong. */
const firstLook = async (
  api: ApiClient,
  { id, waitTimeout }: AddOptions,
  { now, pause }: Time,
): Promise<string> => {
  const deadline = now() + waitTimeout * 1000;
  for (;;) {
    const hub = await lookedAt(api, id);
    if (hub?.health === 'ok')
      return `hub ${id}: ready for orders${hub.scheduling === 'open' ? '' : `, but ${hub.scheduling}`}\n`;
    if (hub !== undefined)
      throw new CliFailure(
        EXIT.failed,
        `hub ${id} is registered and not ready: no orders are placed on it until it is\n${hubText(hub)}`,
      );
    if (now() >= deadline)
      throw new CliFailure(
        EXIT.failed,
        `hub ${id} is registered, but was not looked at within ${waitTimeout} s: is there an instance with the role processes? ` +
          `\`ledgerctl hubs show ${id}\` tells when it was`,
      );
    await pause(POLL_MS);
  }
};

/** Undefined: nobody looked yet, or this instance has not heard of it yet. */
const lookedAt = async (api: ApiClient, id: string): Promise<HubDetails | undefined> => {
  try {
    const hub = await api.get<HubDetails>(pathOf(HUBS, id));
    return hub.health === 'NotChecked' ? undefined : hub;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
};
