import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { commandLinesIn, isBalanced, knownMetrics, metricsIn, problemWith } from './operator-texts.ts';

type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
};
type Rules = { readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] };
type Dashboard = {
  readonly panels: readonly { readonly id: number; readonly targets: readonly { readonly expr: string }[] }[];
};

const ops = (path: string): URL => new URL(`../../../ops/${path}`, import.meta.url);
const read = (path: string): string => readFileSync(ops(path), 'utf8');

/** `Background` may come after them. */
const SECTIONS = ['Symptom', 'Impact', 'Check', 'Fix'];
/** Paths that a runbook may ask with curl; the last one is EventStoreDB's own. */
const ENDPOINTS = ['/healthz', '/readyz', '/metrics', '/api/private/v1/hubs', '/health/live'];

describe('alert rules, runbooks and dashboards', () => {
  const { groups } = parse(read('alerts/fulfillment-ledger.rules.yml'), { strict: true }) as Rules;
  const rules = groups.flatMap((group) => group.rules);
  const runbooks = readdirSync(ops('runbooks')).filter((name) => name.endsWith('.md'));
  let known: Set<string>;
  before(async () => {
    known = await knownMetrics();
  });

  it('every alert has its runbook, and every runbook its alert', () => {
    const names = rules.map(({ alert }) => `${alert}.md`);
    expect(new Set(names).size).to.equal(names.length);
    expect(runbooks.toSorted()).to.deep.equal(names.toSorted());
  });

  it('every gauge of trouble that the service exposes wakes somebody', () => {
    const used = new Set(rules.flatMap(({ expr }) => metricsIn(expr)));
    const expected = [
      'ledger_store_up',
      'ledger_projection_lag_seconds',
      'ledger_projection_parked_streams',
      'ledger_process_lane_open',
      'ledger_process_lane_parked',
      'ledger_process_lane_failing_orders',
      'ledger_timer_lateness_seconds',
      'ledger_orders_waiting',
      'ledger_orders_needing_operator',
      'ledger_hub_not_accepting',
      'ledger_job_status_unknown',
      'ledger_deletions_overdue',
      'ledger_tenant_space_wait_seconds',
      'ledger_pools_with_address_shown_twice',
      'ledger_pool_free',
      'ledger_pool_size',
      'ledger_hub_problem',
      'ledger_hub_leaving_orders',
      'ledger_hub_watch_up',
      'ledger_hub_orphans_total',
      'ledger_hub_ghosts',
      'ledger_hub_unknown_orders',
      'ledger_clock_divergence_seconds',
      'ledger_name_reservations_pending',
      'ledger_name_repair_skipped',
      'ledger_dangling_references',
      'ledger_audit_tree_mismatch',
      'ledger_audit_unsigned_leaves',
      'ledger_audit_sign_failures_total',
      'ledger_event_loop_delay_seconds',
      'ledger_kafka_publishing',
      'ledger_kafka_topic_stalled',
      'ledger_kafka_topic_lag_seconds',
      'ledger_kafka_parked_streams',
      'ledger_kafka_topic_problems',
    ];
    expect([...used]).to.include.members(expected);
  });

  for (const rule of rules) {
    describe(rule.alert, () => {
      it('is complete', () => {
        expect(rule.for).to.match(/^\d+[smh]$/);
        expect(rule.labels.severity).to.be.oneOf(['critical', 'warning']);
        expect(rule.annotations.summary.length).to.be.within(10, 100);
        expect(rule.annotations.description).to.match(/[.]$/);
        expect(rule.annotations.runbook_url).to.equal(`ops/runbooks/${rule.alert}.md`);
      });

      it('asks for metrics that exist', () => {
        expect(isBalanced(rule.expr)).to.equal(true);
        expect(metricsIn(rule.expr)).not.to.have.length(0);
        for (const name of metricsIn(rule.expr)) expect(known).to.include(name);
      });
    });
  }

  for (const file of runbooks) {
    describe(`runbook ${file}`, () => {
      const text = read(`runbooks/${file}`);

      it('has its sections, each with text', () => {
        const parts = text.split(/^## /m).slice(1);
        const headings = parts.map((part) => part.split('\n')[0]);
        expect(headings.slice(0, SECTIONS.length)).to.deep.equal(SECTIONS);
        expect(headings.slice(SECTIONS.length)).to.deep.be.oneOf([[], ['Background']]);
        for (const part of parts)
          expect(part.split('\n').slice(1).join('').trim().length).to.be.greaterThan(10);
      });

      it('tells only commands, endpoints, metrics and pages that exist', () => {
        for (const line of commandLinesIn(text).filter((one) => one !== '')) {
          expect(problemWith(line), line).to.equal(undefined);
        }
        for (const [, path] of text.matchAll(/https?:\/\/[\w.]+:\d+(\/[\w./-]*)/g)) {
          expect(path).to.be.oneOf(ENDPOINTS);
        }
        for (const [, pattern] of text.matchAll(/metrics \| grep (\w+)/g)) {
          expect([...known].some((name) => name.startsWith(pattern ?? ' '))).to.equal(true, pattern);
        }
        for (const [, page] of text.matchAll(/\]\((\w+\.md)\)/g)) expect(runbooks).to.include(page);
      });
    });
  }

  for (const file of readdirSync(ops('dashboards'))) {
    it(`dashboard ${file} draws metrics that exist`, () => {
      const { panels } = JSON.parse(read(`dashboards/${file}`)) as Dashboard;
      expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
      for (const { expr } of panels.flatMap(({ targets }) => targets)) {
        expect(isBalanced(expr)).to.equal(true);
        for (const name of metricsIn(expr)) expect(known).to.include(name);
      }
    });
  }

  describe('the checks themselves', () => {
    it('find metrics in expressions', () => {
      const expr = 'sum by (view) (rate(ledger_a_total{x="ledger_b"}[5m])) > 0 and on (view) ledger_c == 0';
      expect(metricsIn(expr)).to.deep.equal(['ledger_a_total', 'ledger_c']);
      expect(known).not.to.include('ledger_a_total');
      expect([isBalanced('sum(a[5m])'), isBalanced('sum(a[5m)]')]).to.deep.equal([true, false]);
    });

    it('find commands that do not exist', () => {
      expect(problemWith('orders retry <id>')).to.equal(undefined);
      expect(problemWith('orders list --state failed')).to.equal(undefined);
      expect(problemWith('orders mend <id>')).to.include('no "mend"');
      expect(problemWith('orders retry')).to.include('takes 1 words');
      expect(problemWith('get user a b --private -o yaml')).to.equal(undefined);
      expect(problemWith('get user -x')).to.include('has no -x');
      expect(problemWith('events --since yesterday')).to.include('has no --since');
      expect(
        commandLinesIn('do `npx ledgerctl store check` or "$(npx ledgerctl token --user a)"'),
      ).to.deep.equal(['store check', 'token --user a']);
    });
  });
});
