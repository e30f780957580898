import { expect } from 'chai';
import { globSync, readFileSync } from 'node:fs';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import { HUB_OBJECTS } from '../../../src/domain/hub-objects.ts';

/** What serves every kind that acts takes it from the list (`domain/acting-kinds.ts`): a next one changes none of these. */
const SERVING = [
  'src/app/{capacity-repair,order-log,own-categories,process-port,restore,stored-secrets}.ts',
  'src/app/streams/*.ts',
  'src/composition/{effect-ports,repairs,run-state,system}.ts',
  'src/domain/{acting-kind,holder,sentences}.ts',
  'src/domain/hubs/capacity*.ts',
  'src/domain/metering/*.ts',
  'src/http/ledger/{orders,order-decisions,order-operations,usage,usage-operations,usage-query,osac-call}.ts',
  'src/http/osac/{surfaces,secrets}.ts',
  'src/projections/views.ts',
  'src/projections/audit/mentions.ts',
  'src/projections/{timeline,usage}/*.ts',
  'src/cli/commands/{orders,order-text}.ts',
];

const named = (text: string): readonly string[] =>
  actingKinds.flatMap(({ kind, workflow, collection }) =>
    [kind, workflow.name, collection].filter((name) => new RegExp(`['"\x60]${name}[-'"\x60]`).test(text)),
  );

/** Folders of their contexts, as the list of them imports. */
const FOLDERS = [
  ...new Set(
    [
      ...readFileSync('src/domain/acting-kinds.ts', 'utf8').matchAll(
        /import \{ acting.* from '\.\/([\w-]+)\//g,
      ),
    ].flatMap(([, folder]) => folder ?? []),
  ),
];
const imported = (text: string): readonly string[] =>
  FOLDERS.filter((folder) => new RegExp(`from '[^']*/${folder}/[^']*'`).test(text));

describe('kinds that act', () => {
  it('are named by none of the parts that serve them all', () => {
    const files = SERVING.flatMap((pattern) => globSync(pattern));
    expect(files.length).to.be.greaterThan(30);
    const found = files.flatMap((file) => {
      const text = readFileSync(file, 'utf8').replaceAll(/\/\*\*.*?\*\/|\/\/[^\n]*/gs, '');
      return [...named(text), ...imported(text)].map((name) => `${file}: ${name}`);
    });
    expect(found).to.deep.equal([]);
  });

  it('have their objects on hubs in the list that adapters, checks and rights walk', () => {
    for (const { hubObjects } of actingKinds) expect(HUB_OBJECTS).to.include.members([...hubObjects]);
  });

  it('would be found', () => {
    expect(named("if (kind === 'cluster') return;")).to.deep.equal(['cluster']);
    expect(named('prefix: `cluster-${id}`')).to.deep.equal(['cluster']);
    expect(named('the management cluster of this order')).to.deep.equal([]);
    expect(imported("import { x } from '../domain/clusters/state.ts';")).to.deep.equal(['clusters']);
    expect(imported("import { x } from './networks/address-book.ts';")).to.deep.equal(['networks']);
    expect(imported("import { x } from '../app/management-cluster.ts';")).to.deep.equal([]);
  });
});
