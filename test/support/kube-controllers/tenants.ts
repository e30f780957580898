import { stringAt, objectAt } from '../../../src/domain/json-tools.ts';
import { finalizersOf, isDeleting, nameOf, PREFIX, type KubeApi } from './api.ts';

const FINALIZER = `${PREFIX}tenant`;

/**
 * Plays osac-operator's Tenant controller: one is ready as soon as a namespace of its name is there, and let go at once.
 */
export const playTenants = (api: KubeApi, namespace: string) => async (): Promise<void> => {
  for (const tenant of await api.list('tenants', namespace)) {
    const finalizers = finalizersOf(tenant);
    const isOurs = finalizers.includes(FINALIZER);
    if (isDeleting(tenant)) {
      const others = finalizers.filter((one) => one !== FINALIZER);
      if (isOurs) await api.finalizers('tenants', tenant, others);
      continue;
    }
    const stored = isOurs ? tenant : await api.finalizers('tenants', tenant, [...finalizers, FINALIZER]);
    const isThere = (await api.get('namespaces', '', nameOf(tenant))) !== undefined;
    const phase = isThere ? 'Ready' : 'Progressing';
    if (stringAt(objectAt(stored, 'status'), 'phase') !== phase)
      await api.status('tenants', stored, { phase, ...(isThere ? { namespace: nameOf(tenant) } : {}) });
  }
};
