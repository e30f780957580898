import { isObject, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { Access } from '../access/rbac.ts';
import { badRequest } from '../errors.ts';
import type { JsonObject, User } from '../types.ts';

/** Reviews are asked with a POST and answered at once; nothing is stored. Undefined: not one of them. */
export const review = (
  access: Access,
  user: User,
  resource: string,
  body: string,
): JsonObject | undefined => {
  const question = parsed(body);
  switch (resource) {
    case 'selfsubjectaccessreviews':
      return accessReview(access, user, question);
    case 'selfsubjectrulesreviews':
      return rulesReview(access, user, question);
    case 'selfsubjectreviews':
      return {
        ...question,
        status: { userInfo: { username: user.name, groups: [...user.groups] } },
      };
    default:
      return undefined;
  }
};

const accessReview = (access: Access, user: User, question: JsonObject): JsonObject => {
  const spec = objectAt(question, 'spec');
  const wanted = objectAt(spec, 'resourceAttributes');
  const [namespace, name, subresource] = [
    stringAt(wanted, 'namespace'),
    stringAt(wanted, 'name'),
    stringAt(wanted, 'subresource'),
  ];
  const resource = stringAt(wanted, 'resource');
  const allowed = access.may(user, {
    verb: stringAt(wanted, 'verb'),
    group: stringAt(wanted, 'group'),
    resource: subresource === '' ? resource : `${resource}/${subresource}`,
    ...(namespace === '' ? {} : { namespace }),
    ...(name === '' ? {} : { name }),
  });
  return {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec,
    status: { allowed, ...(allowed ? { reason: 'RBAC: allowed' } : {}) },
  };
};

const rulesReview = (access: Access, user: User, question: JsonObject): JsonObject => {
  const spec = objectAt(question, 'spec');
  const rules = access.rules(user, stringAt(spec, 'namespace'));
  const resourceRules = rules.map(({ verbs, apiGroups, resources, resourceNames }) => ({
    verbs: [...verbs],
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames.length === 0 ? {} : { resourceNames: [...resourceNames] }),
  }));
  return {
    kind: 'SelfSubjectRulesReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec,
    status: { resourceRules, nonResourceRules: [], incomplete: false },
  };
};

const parsed = (body: string): JsonObject => {
  try {
    const value: unknown = JSON.parse(body);
    if (isObject(value as JsonObject)) return value as JsonObject;
  } catch {
    // said below
  }
  throw badRequest('the body of the request is not an object');
};
