import { isStored, type DocumentCommand } from '../../domain/catalog/document.ts';
import { FULFILLMENT_FINALIZER } from '../../domain/hubs/hub-object.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isObject, listAt, objectAt } from '../../domain/json-tools.ts';
import { aggregateOf, kindOf, tenant, type AnyKind } from '../../domain/kinds.ts';
import { SERVICE } from '../../domain/networks/default-ids.ts';
import { defaultParts, PROVISION, type DefaultPart } from '../../domain/networks/default-networking.ts';
import type { Position } from '../log/event-store.ts';
import { systemContext } from '../log/metadata.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { CommandContext } from '../commands/command.ts';
import type { TenantBelonging, TenantBelongingsServices } from './belonging.ts';

const refersTo = ({ document }: DefaultPart, { id }: DefaultPart): boolean =>
  Object.values(objectAt(document, 'spec')).some((value) => isObject(value) && value['id'] === id);

/**
 * A tenant's default networking: all of it is made once the tenant is stored, and again whatever a crash left out. A tenant
 * whose deletion was requested waits, held by our finalizer, until nothing of it is left on any hub.
 */
export const defaultNetworking = ({
  runner,
  commands,
  clock,
}: Pick<TenantBelongingsServices, 'runner' | 'commands' | 'clock'>): TenantBelonging => {
  const contextOf = (tenantId: string, ...step: readonly (string | number)[]): CommandContext =>
    systemContext(derivedCommandId(tenantId, 'default-networking', ...step), 'tenancy', { tenant: tenantId });

  const partOf = async (part: DefaultPart) => {
    const kind: AnyKind | undefined = kindOf(part.kind);
    if (kind === undefined) throw new TypeError(`kind ${part.kind} is not declared`);
    const { state, revision } = await runner.load(aggregateOf(kind), part.id);
    return { kind, view: kind.view(state), revision: String(revision) };
  };

  const make = async (tenantId: string, part: DefaultPart): Promise<Position | undefined> => {
    const { kind, view, revision } = await partOf(part);
    if (view.exists) return undefined;
    const create = (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at: clock.now(),
      id: part.id,
      tenant: tenantId,
      project: '',
      name: part.name,
      creator: SERVICE,
      document: part.document,
      abandonedBefore,
    });
    const outcome = await commands.execute(
      kind,
      part.id,
      create,
      contextOf(tenantId, 'make', part.id, revision),
    );
    return outcome.outcome === 'accepted' ? outcome.loaded.position : undefined;
  };

  /** One that is not as it should be is given up first where it cannot be deleted otherwise. */
  const remove = async (tenantId: string, part: DefaultPart): Promise<Position | undefined> => {
    const { kind, view, revision } = await partOf(part);
    if (!view.exists || view.archived || view.deletionTimestamp !== undefined) return undefined;
    const tell = (command: { readonly type: string; readonly at: string; readonly reason?: string }) =>
      commands.execute(kind, part.id, command, contextOf(tenantId, command.type, part.id, revision));
    const at = clock.now();
    const deleted = await tell({ type: 'DeleteDocument', at });
    if (deleted.outcome === 'accepted') return deleted.loaded.position;
    const aborted = await tell({ type: 'AbortOrder', at, reason: 'its tenant is being deleted' });
    if (aborted.outcome === 'rejected') return undefined;
    const after = await tell({ type: 'DeleteDocument', at });
    return after.outcome === 'accepted' ? after.loaded.position : aborted.loaded.position;
  };

  const isLeft = async (part: DefaultPart): Promise<boolean> => {
    const { view } = await partOf(part);
    return view.exists && !view.archived;
  };

  /** Each once everything is gone that refers to it. Asked before, it would refuse, and refusals stay in the log. */
  const removeAll = async (tenantId: string, parts: readonly DefaultPart[]) => {
    let position: Position | undefined;
    const left: DefaultPart[] = [];
    for (const part of parts.toReversed()) {
      if (!(await isLeft(part))) continue;
      if (!left.some((one) => refersTo(one, part))) position = (await remove(tenantId, part)) ?? position;
      if (await isLeft(part)) left.push(part);
    }
    return { position, left: left.length };
  };

  const settle = async (tenantId: string) => {
    const { state, revision } = await runner.load(aggregateOf(tenant), tenantId);
    const provision = isStored(state) ? state.document[PROVISION] : undefined;
    if (!isStored(state) || !isObject(provision) || provision['over'] === true)
      return { position: undefined };
    const parts = defaultParts(tenantId, state.createdAt, provision);
    if (state.status === 'present') {
      let position: Position | undefined;
      for (const part of parts) position = (await make(tenantId, part)) ?? position;
      return { position };
    }
    const { position, left } = await removeAll(tenantId, parts);
    if (left > 0 || state.status !== 'deleting') return { position, more: left > 0 };
    const finalizers = listAt(objectAt(state.document, 'metadata'), 'finalizers').filter(
      (one) => one !== FULFILLMENT_FINALIZER,
    );
    const document: JsonObject = { metadata: { finalizers }, [PROVISION]: { over: true } };
    const paths = ['metadata.finalizers', PROVISION];
    const command = { type: 'ReviseDocument', at: clock.now(), document, paths } as const;
    const context = contextOf(tenantId, 'over', String(revision));
    const outcome = await commands.execute(tenant, tenantId, command, context);
    return { position: outcome.outcome === 'accepted' ? outcome.loaded.position : position };
  };
  return { give: settle, take: settle };
};
