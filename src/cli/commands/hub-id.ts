import { InvalidArgumentError } from 'commander';
import { nameFromId } from '../../domain/catalog/derived-names.ts';
import { isSimulatedHub } from '../../domain/hubs/hub-facts.ts';
import { isPlainToSee } from '../../domain/visible-text.ts';
import { nameRejection } from '../../domain/metadata-rules.ts';

const NAME_RULE =
  "at most 63 lower-case letters, digits and '-', of which the first and the last is a letter or digit";

/**
 * What a hub is to be called, looked at before anything is read or asked: a connection that fails, or a field of a document
 * that nobody wrote, is not what is to be mended then. Throws InvalidArgumentError.
 */
export const checkHubId = ({ id, name }: { readonly id: string; readonly name?: string }): void => {
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
