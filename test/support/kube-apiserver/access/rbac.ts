import { isObject, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { forbidden, notFound } from '../errors.ts';
import type { Store } from '../store.ts';
import type { JsonObject, JsonValue, Kind, KubeObject, User } from '../types.ts';

/** One thing somebody wants to do. `resource` holds the subresource: `clusterorders/status`. */
export type Attempt = {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
};

export type PolicyRule = {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
};

export type Access = ReturnType<typeof createAccess>;

const EVERYTHING: PolicyRule = {
  verbs: ['*'],
  apiGroups: ['*'],
  resources: ['*'],
  resourceNames: [],
  nonResourceURLs: [],
};

const RBAC = 'rbac.authorization.k8s.io';
const MASTERS = 'system:masters';

/** Rights as the Roles, ClusterRoles and bindings in the store say them at this moment. */
export const createAccess = (store: Store) => {
  const kind = (plural: string): Kind => {
    const found = store.find(RBAC, plural);
    if (found === undefined) throw new Error(`${plural} is not served`);
    return found;
  };

  const rulesOf = (reference: JsonObject, namespace: string): PolicyRule[] | undefined => {
    const cluster = stringAt(reference, 'kind') === 'ClusterRole';
    const name = stringAt(reference, 'name');
    const role = cluster
      ? store.get(kind('clusterroles'), '', name)
      : store.get(kind('roles'), namespace, name);
    return role === undefined ? undefined : policyRules(role['rules'] as JsonValue | undefined);
  };

  const grants = (user: User, bindings: readonly KubeObject[], namespace: string): PolicyRule[] =>
    bindings
      .filter((binding) => subjectsOf(binding).some((subject) => names(subject, user, namespace)))
      .flatMap((binding) => rulesOf(objectAt(binding as unknown as JsonObject, 'roleRef'), namespace) ?? []);

  const rules = (user: User, namespace: string | undefined): PolicyRule[] => [
    ...grants(user, store.list(kind('clusterrolebindings')), ''),
    ...(namespace === undefined || namespace === ''
      ? []
      : grants(user, store.list(kind('rolebindings'), namespace), namespace)),
  ];

  const may = (user: User, attempt: Attempt): boolean =>
    user.groups.includes(MASTERS) || rules(user, attempt.namespace).some((rule) => allows(rule, attempt));

  /** Nobody hands out more than he has: creating a binding needs the role's rights, or `bind` on it. */
  const checkGrant = (user: User, bindings: Kind, object: KubeObject): void => {
    const { name, namespace } = object.metadata;
    const reference = objectAt(object as unknown as JsonObject, 'roleRef');
    const plural = stringAt(reference, 'kind') === 'ClusterRole' ? 'clusterroles' : 'roles';
    const roleName = stringAt(reference, 'name');
    const where = namespace === undefined ? {} : { namespace };
    if (may(user, { verb: 'bind', group: RBAC, resource: plural, name: roleName, ...where })) return;
    const wanted = rulesOf(reference, namespace ?? '');
    if (wanted === undefined) throw notFound({ plural, group: RBAC }, roleName);
    const held = rules(user, namespace);
    if (wanted.every((rule) => covered(rule, held))) return;
    const who = `user "${user.name}" (groups=${JSON.stringify(user.groups)})`;
    throw forbidden(bindings, name, `${who} is attempting to grant RBAC permissions not currently held`);
  };

  return {
    may,
    checkGrant,
    /** Every rule that counts for a user in a namespace. */
    rules: (user: User, namespace: string): readonly PolicyRule[] =>
      user.groups.includes(MASTERS) ? [EVERYTHING] : rules(user, namespace),
    /** Nothing, or the 403 with which the server refuses. */
    require: (user: User, attempt: Attempt): void => {
      if (may(user, attempt)) return;
      const { verb, group, resource, namespace, name = '' } = attempt;
      const place =
        namespace === undefined || namespace === ''
          ? 'at the cluster scope'
          : `in the namespace "${namespace}"`;
      const why = `User "${user.name}" cannot ${verb} resource "${resource}" in API group "${group}" ${place}`;
      throw forbidden({ plural: resource.split('/')[0] ?? resource, group }, name, why);
    },
  };
};

const subjectsOf = (binding: KubeObject): readonly JsonObject[] => {
  const { subjects } = binding as unknown as JsonObject;
  return Array.isArray(subjects) ? subjects.filter(isObject) : [];
};

const names = (subject: JsonObject, user: User, namespace: string): boolean => {
  const [type, name] = [stringAt(subject, 'kind'), stringAt(subject, 'name')];
  if (type === 'User') return user.name === name;
  if (type === 'Group') return user.groups.includes(name);
  const home = stringAt(subject, 'namespace') || namespace;
  return type === 'ServiceAccount' && user.name === `system:serviceaccount:${home}:${name}`;
};

const policyRules = (rules: JsonValue | undefined): PolicyRule[] =>
  (Array.isArray(rules) ? rules.filter(isObject) : []).map((rule) => ({
    verbs: texts(rule['verbs']),
    apiGroups: texts(rule['apiGroups']),
    resources: texts(rule['resources']),
    resourceNames: texts(rule['resourceNames']),
    nonResourceURLs: texts(rule['nonResourceURLs']),
  }));

const texts = (value: JsonValue | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);

const allows = (rule: PolicyRule, { verb, group, resource, name }: Attempt): boolean =>
  holds(rule.verbs, verb) &&
  holds(rule.apiGroups, group) &&
  (holds(rule.resources, resource) || rule.resources.includes(`*/${resource.split('/')[1] ?? ''}`)) &&
  (rule.resourceNames.length === 0 || (name !== undefined && rule.resourceNames.includes(name)));

const holds = (list: readonly string[], wanted: string): boolean =>
  list.includes('*') || list.includes(wanted);

const covered = (rule: PolicyRule, held: readonly PolicyRule[]): boolean =>
  rule.verbs.every((verb) =>
    rule.apiGroups.every((group) =>
      rule.resources.every((resource) => {
        const targets = rule.resourceNames.length === 0 ? [undefined] : rule.resourceNames;
        return targets.every((name) =>
          held.some((one) => allows(one, { verb, group, resource, ...(name === undefined ? {} : { name }) })),
        );
      }),
    ),
  );
