import { LRUCache } from 'lru-cache';
import type { Automation, AutomationConnection, Automations } from '../../app/automation/automation.ts';
import type { SecretStore } from '../../app/ports.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { createAapAutomation } from './aap/aap-automation.ts';
import { createEdaAutomation } from './eda/eda-automation.ts';
import { createListenerSlots } from './listener-slots.ts';

/** Requests in flight per listener: of 50 at once the slowest waits 26 s. */
const PER_LISTENER = 8;
/** No version of a stored value: what is only tried has this one. */
const CANDIDATE = 'candidate';
/** Hubs whose adapter is kept, by hub and mode. */
const KEPT = 1_000;

/**
 * The automation of every hub. One adapter per hub, mode and way of reaching it; a change of either makes a new one,
 * while requests of the old one end by themselves.
 */
export const createAutomations = (options: {
  readonly secrets: Pick<SecretStore, 'reveal'>;
}): Automations => {
  const slots = createListenerSlots(PER_LISTENER);
  const known = new LRUCache<string, { readonly wording: string; readonly automation: Automation }>({
    max: KEPT,
  });

  const made = (connection: AutomationConnection, secrets = options.secrets): Automation =>
    connection.mode === 'eda'
      ? createEdaAutomation({ connection, secrets, slots })
      : createAapAutomation({ connection, secrets });

  return {
    of: (connection) => {
      const key = `${connection.mode} ${connection.hub}`;
      const wording = JSON.stringify(connection);
      const kept = known.get(key);
      if (kept?.wording === wording) return kept.automation;
      const automation = made(connection);
      known.set(key, { wording, automation });
      return automation;
    },
    candidate: ({ token, hmacSecret, ...connection }) => {
      const values = new Map<string, Uint8Array>();
      const held = (id: string, kind: SecretRef['kind'], value: string | SecretRef): SecretRef => {
        if (typeof value !== 'string') return value;
        values.set(id, new TextEncoder().encode(value));
        return { id, version: CANDIDATE, kind, fingerprint: '' };
      };
      const asked: AutomationConnection = {
        ...connection,
        ...(token === undefined ? {} : { token: held('token', 'automation-token', token) }),
        ...(hmacSecret === undefined ? {} : { hmacSecret: held('hmac', 'automation-key', hmacSecret) }),
      };
      return made(asked, {
        reveal: async (ref, tenant) =>
          ref.version === CANDIDATE ? values.get(ref.id) : options.secrets.reveal(ref, tenant),
      });
    },
    close: () => {
      known.clear();
      return Promise.resolve();
    },
  };
};
