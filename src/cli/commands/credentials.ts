import { InvalidArgumentError, type Command } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import { targetOf, withTenant, type ResourceContext } from './resource-context.ts';

/** `ledgerctl kubeconfig` and `ledgerctl password`: how to get into a cluster, and nothing else on stdout. */
export const addCredentialCommands = (program: Command, context: ResourceContext): void => {
  for (const [verb, description, example] of [
    ['kubeconfig', 'print the kubeconfig of a cluster', 'ledgerctl kubeconfig web > web.kubeconfig'],
    ['password', 'print the administrator password of a cluster', 'ledgerctl password web'],
  ] as const)
    withTenant(
      program
        .command(verb)
        .description(description)
        .argument('<cluster>', 'id or name')
        .addHelpText('after', `\nExamples:\n  ${example}\n`),
    ).action(async (text: string, { tenant }: { tenant?: string }) => {
      const { kind, name } = targetOf(context.names, text.includes('/') ? [text] : ['cluster', text]);
      if (kind.kind.kind !== 'cluster')
        throw new InvalidArgumentError(`a ${kind.kind.words} has no ${verb}; give a cluster`);
      const api = await context.open({ private: false, ...(tenant === undefined ? {} : { tenant }) });
      const secret = await api.credential(kind, stringAt(await api.one(kind, name), 'id'), verb);
      context.io.out(secret.endsWith('\n') ? secret : `${secret}\n`);
    });
};
