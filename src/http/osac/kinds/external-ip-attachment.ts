import type { CommandRunner } from '../../../app/commands/command.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { reject } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, stringAt } from '../../../domain/json-tools.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import { targetIn } from '../../../domain/networks/external-ip-attachment.resource.ts';
import { externalIp } from '../../../domain/networks/external-ip.resource.ts';
import { refused, type Creation, type CreateServices } from '../creates.ts';
import { poolsInReach } from './external-ip.ts';
import { documentCreation } from '../documents.ts';

const hubOf = (document: JsonObject): string => stringAt(objectAt(document, 'status'), 'hub');

/** The external IP that something is to use: it must have its address (OSAC). Throws ApiError 400. */
export const allocatedAddress = async (
  runner: Pick<CommandRunner, 'load'>,
  id: string,
): Promise<JsonObject> => {
  const view = externalIp.view((await runner.load(aggregateOf(externalIp), id)).state);
  if (view.exists && view.state === 'EXTERNAL_IP_STATE_ALLOCATED') return view.document;
  const name = view.exists ? view.name : id;
  const message = `external IP '${name}' is not allocated yet: wait until its state is ALLOCATED`;
  throw refused(
    reject('failed-precondition', 'ADDRESS_NOT_ALLOCATED', message, { field: 'spec.external_ip' }),
  );
};

/** The address must be allocated, and on the hub of what it is attached to once that is on one. */
export const attachmentCreation = (
  services: Pick<CreateServices, 'runner' | 'resources'>,
): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const ip = object.found.get('spec.external_ip');
    const target = targetIn(object.document);
    const row = target === undefined ? undefined : object.found.get(`spec.${target.field}`);
    if (ip === undefined || row === undefined) return documentCreation.resolve(object);
    const address = hubOf(await allocatedAddress(services.runner, ip.id));
    const hub = hubOf(JSON.parse(row.privateJson) as JsonObject);
    if (hub !== '' && address !== '' && hub !== address)
      throw refused(
        reject(
          'failed-precondition',
          'OTHER_HUB',
          `external IP '${ip.name}' and ${row.kind} '${row.name}' are on different hubs: ${poolsInReach(services, object, hub)}`,
          { field: 'spec.external_ip' },
        ),
      );
    return documentCreation.resolve(object);
  },
});
