import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { rbacFile, rbacText, SETUPS } from '../../../ops/rbac/generate.ts';
import { neededRights, sayRight } from '../../../src/adapters/management-cluster/kubernetes/rights.ts';
import { HUB_OBJECTS } from '../../../src/domain/hub-objects.ts';
import type { RightsSetup } from '../../../src/domain/hubs/hub-object.ts';

type Rule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
};

const textOf = (setup: RightsSetup): string => readFileSync(rbacFile(setup), 'utf8');
const rulesIn = (setup: RightsSetup): readonly Rule[] =>
  parseAllDocuments(textOf(setup)).flatMap((document) => (document.toJS() as { rules?: Rule[] }).rules ?? []);

describe('files of rights on a management cluster', () => {
  for (const setup of SETUPS)
    it(`${setup}.yaml is what the declared kinds come to`, () => {
      expect(textOf(setup), 'run npm run rbac').to.equal(rbacText(setup, textOf(setup)));
    });

  it('grant everything that a check asks for, in each setup', () => {
    for (const setup of SETUPS) {
      const setups = [...new Set<RightsSetup>(['hub-access', setup])];
      const rules = setups.flatMap(rulesIn);
      const needed = neededRights(HUB_OBJECTS, {
        hubNamespace: 'osac-hub',
        places: ['osac-hub'],
        anywhere: false,
        setups,
      });
      const missing = needed.filter(({ right: { kind, verb, part, name } }) => {
        const resource = part === undefined ? kind.plural : `${kind.plural}/${part}`;
        return !rules.some(
          (rule) =>
            rule.apiGroups.includes(kind.group) &&
            rule.resources.includes(resource) &&
            rule.verbs.includes(verb) &&
            (rule.resourceNames === undefined || rule.resourceNames.includes(name ?? '')),
        );
      });
      expect(missing.map(({ right }) => sayRight(right))).to.deep.equal([]);
      expect(needed.length).to.be.greaterThan(8);
    }
  });
});
