import { askInstance } from '../../core/host/operations/control-client.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { PATH } from './operate.ts';
import type { AlertsOptions } from './options.ts';
import { type Reach, reach, variablesOf } from './receivers.ts';
import type { AlertsView } from './view.ts';

const NAMED = 5;

/** The checks of `holdfast doctor alerts`: whether every receiver can be reached, without an alert being sent, and every rule evaluated. */
export function alertsChecks({ receivers, rules }: AlertsOptions): CheckDefinition[] {
  const each = Object.entries(receivers).map(([name, receiver]): CheckDefinition => {
    const run = async (context: CheckContext) => {
      // A running instance has its own environment and secrets store; without one, those of this command are used.
      const found = context.running
        ? await ask<Reach>(context, 'reach', { receiver: name })
        : await reach(name, receiver, process.env, undefined, context.signal);
      return resultOf(name, found);
    };
    return { name: `alerts.receiver.${name}`, run };
  });
  return [...each, { name: 'alerts.rules', run: (context) => rulesCheck(context, rules.length) }];
}

function resultOf(name: string, { state, place, reason = 'unknown' }: Reach): CheckResult {
  const { url, file } = variablesOf(name);
  const lookedAt = place ?? `the address of the receiver ${name}`;
  switch (state) {
    case 'reached':
      return { state: 'ok', lookedAt, found: 'it can be connected to; nothing was sent' };
    case 'unconfigured': {
      const remedy = `Give the address by ${url}, or by ${file} (a file of mode 0600).`;
      return { state: 'warn', lookedAt, found: 'no address is configured, so it receives nothing', remedy };
    }
    case 'unusable': {
      const remedy = `Correct the address that ${url}, ${file} or plugins.config.ts names. Only a running instance reads an address from the secrets store.`;
      return { state: 'fail', lookedAt, found: reason, remedy };
    }
    case 'unreached': {
      const remedy = `Check that it runs and can be reached from here, then try \`holdfast alerts test ${name}\`.`;
      return { state: 'fail', lookedAt, found: `it cannot be connected to: ${reason}`, remedy };
    }
  }
}

async function rulesCheck(context: CheckContext, listed: number): Promise<CheckResult> {
  const lookedAt = `${listed} alert rules`;
  if (!context.running) {
    const remedy = 'Start it with `holdfast start`.';
    return { state: 'warn', lookedAt, found: 'no instance runs that would evaluate them', remedy };
  }
  const { rules } = await ask<AlertsView>(context, 'list', {});
  const failing = rules.filter(({ unseen }) => unseen !== undefined);
  const [first] = failing;
  if (!first) return dataCheck(lookedAt, rules);
  return {
    state: 'fail',
    lookedAt,
    found: `${named(failing)} cannot be evaluated: ${first.unseen}`,
    remedy:
      'See `holdfast doctor stack` for the columnar database; a rule that cannot be evaluated keeps its last verdict.',
  };
}

/** Rules wait for their first data before they fire on missing data; this check lists those that still wait. */
export function dataCheck(lookedAt: string, rules: AlertsView['rules']): CheckResult {
  const open = rules.filter(({ lookedAt: evaluatedAt }) => evaluatedAt === undefined);
  if (rules.length === 0) {
    const remedy =
      'List rules in the options of the alerts plugin; `documentedRules` has those of the stack.';
    return { state: 'unknown', lookedAt, found: 'there is no rule, so nothing is evaluated', remedy };
  }
  const old = rules.filter(({ isOld }) => isOld);
  if (old.length > 0) {
    const found = `not evaluated for an hour: ${named(old)}`;
    return {
      state: 'unknown',
      lookedAt,
      found,
      remedy: '`holdfast status` shows whether the instance works.',
    };
  }
  if (open.length > 0) return { state: 'unknown', lookedAt, found: `${named(open)} not evaluated yet` };
  const waiting = rules.filter(({ neverSeen }) => neverSeen);
  if (waiting.length === 0) return { state: 'ok', lookedAt, found: 'each was evaluated' };
  return {
    state: 'warn',
    lookedAt,
    found: `no data has ever come for ${named(waiting)}: after a day that is an alert, and its absence is a fault only once it has come for a day`,
    remedy:
      "See that the sender runs and sends here (the process's own gauges: OTEL_EXPORTER_OTLP_ENDPOINT=own), or say by `signals` of alerts() that the signal is optional.",
  };
}

function named(rules: AlertsView['rules']): string {
  const names = rules.slice(0, NAMED).map(({ rule }) => rule);
  return `${names.join(', ')}${rules.length > NAMED ? ` and ${rules.length - NAMED} more` : ''}`;
}

const ask = <T extends object>({ dataDir, signal }: CheckContext, verb: string, body: object): Promise<T> =>
  askInstance<T>({ dataDir, signal }, `${PATH}/${verb}`, body, 'it runs no alerts');
