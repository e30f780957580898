import { listAt, objectAt, stringAt } from '../json-tools.ts';
import { OVERDUE } from '../placed-document.ts';
import { USER_DATA_RULES } from './user-data.ts';
import type { JsonObject } from '../json.ts';

const METHODS = ['List', 'Get', 'Create', 'Update', 'Delete'] as const;

/** What the declarations of machines, virtual and bare metal, have in common. */
export const MACHINE = {
  rights: 'owned',
  defaultTenant: '',
  methods: { public: METHODS, private: METHODS },
  secrets: [USER_DATA_RULES],
  // What is attached to it goes before it.
  protectedWhileReferenced: false,
  marks: (document: JsonObject): readonly string[] =>
    listAt(objectAt(document, 'status'), 'conditions').some((one) =>
      stringAt(one, 'message').startsWith(OVERDUE),
    )
      ? ['deletion-overdue']
      : [],
} as const;
