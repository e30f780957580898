import { aggregateOf } from '../../../app/names.ts';
import { isStored, type DocumentCommand, type DocumentState } from '../../../domain/catalog/document.ts';
import type { DomainEvent } from '../../../domain/decider.ts';
import type { ResourceKind } from '../../../domain/resource.ts';
import type { AfterWrite } from '../after-write.ts';
import type { WriteServices } from '../write-context.ts';

/**
 * The values of an object that is gone go with it: its events refer to them for ever, so no sweep would find them. A
 * store that cannot remove one is said: the object is gone then, the value is not.
 */
export const forgetSecrets =
  <E extends DomainEvent>(
    kind: ResourceKind<DocumentState, DocumentCommand, E>,
    { runner, secrets }: Pick<WriteServices, 'runner' | 'secrets'>,
  ): AfterWrite =>
  async (id) => {
    const { state } = await runner.load(aggregateOf(kind), id);
    if (!isStored(state) || state.status !== 'retired') return undefined;
    for (const ref of Object.values(state.secrets)) await secrets.remove(ref);
    return undefined;
  };
