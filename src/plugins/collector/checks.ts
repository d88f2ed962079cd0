import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isObject } from '../../core/kernel/json.ts';
import { readConfigFile } from './effective-config.ts';
import type { CollectorOptions } from './options.ts';

/** Only the status of an answer counts. */
const http = new HttpClient({ timeoutMs: 5_000, answerLimit: 65_536, excess: 'cut', keepAlive: false });

/** What `holdfast doctor stack` checks of the collector and around it (O8, O26, O27, O29). */
export function collectorChecks(options: CollectorOptions): CheckDefinition[] {
  const { ui } = options;
  return [
    { name: 'stack.collector_config', run: (context) => configCheck(options, context) },
    { name: 'stack.collector_probe', run: probeCheck },
    ...(ui
      ? [{ name: 'stack.collector_ui', run: (context: CheckContext) => uiCheck(ui.url, context.signal) }]
      : []),
  ];
}

export function configCheck(
  { effectiveConfig, collectorPods }: Pick<CollectorOptions, 'effectiveConfig' | 'collectorPods'>,
  context: CheckContext,
): CheckResult {
  if (effectiveConfig === undefined && collectorPods) return podsCheck(context);
  if (effectiveConfig === undefined) {
    const found = 'none is configured: Holdfast is its own collector, with an ingest key of its own';
    return { state: 'ok', lookedAt: 'the effective collector config', found };
  }
  const lookedAt = resolve(effectiveConfig);
  const { findings, tokens } = readConfigFile(lookedAt);
  if (findings.length > 0) {
    const isWorst = findings.some(({ code }) => code !== 'plaintext_off_host');
    const found = findings.map(({ text }) => text).join(' ');
    return {
      state: isWorst ? 'fail' : 'warn',
      lookedAt,
      found,
      remedy: findings.map(({ remedy }) => remedy).join(' '),
    };
  }
  if (existsSync(lookedAt) && (statSync(lookedAt).mode & 0o004) !== 0) {
    const remedy = `Take the right to read from others: chmod o-r ${lookedAt}`;
    return {
      state: 'warn',
      lookedAt,
      found: 'it is effective, and everybody on this host may read its key',
      remedy,
    };
  }
  const found = `it is effective, authentication is enforced, ${tokens.length} ${tokens.length === 1 ? 'key' : 'keys'} accepted`;
  return { state: 'ok', lookedAt, found };
}

/** Only the running instance reads the config in pods. */
function podsCheck({ running }: CheckContext): CheckResult {
  const lookedAt = "the effective config in the collector's pods";
  const fact = running?.facts.collector;
  if (!isObject(fact) || fact.source !== 'pods') {
    const remedy = 'Start Holdfast: the running instance reads the config in the pods.';
    return { state: 'unknown', lookedAt, found: 'not looked at: no instance here reads it', remedy };
  }
  const keys = Array.isArray(fact.keys) ? fact.keys.length : 0;
  if (fact.ok === false || keys === 0) {
    const found = typeof fact.reason === 'string' ? fact.reason : 'it holds no ingest key';
    return { state: 'fail', lookedAt, found, remedy: 'See `holdfast stack key-parity`, pod by pod.' };
  }
  const found = `it is effective in ${fact.place}, ${keys} ${keys === 1 ? 'key' : 'keys'} accepted`;
  return { state: 'ok', lookedAt, found };
}

export function probeCheck({ running }: CheckContext): CheckResult {
  const lookedAt = 'the newest probe of trace ingest';
  const fact = running?.facts.probe;
  const remedy = 'Run `holdfast stack probe`: it sends a span and shows where it ends.';
  if (!running) return { state: 'warn', lookedAt, found: 'no instance runs, so none is known', remedy };
  if (!isObject(fact)) return { state: 'warn', lookedAt, found: 'none was made', remedy };
  if (fact.end === 'arrived') {
    if (fact.isOld !== false) {
      const found = `not looked at since ${fact.at}, when the newest one arrived`;
      return { state: 'unknown', lookedAt, found, remedy };
    }
    return { state: 'ok', lookedAt, found: `it arrived in ${fact.arrivedMs} ms, at ${fact.at}` };
  }
  return { state: 'fail', lookedAt, found: `it stopped (${fact.end}), at ${fact.at}`, remedy };
}

export async function uiCheck(url: string, signal: AbortSignal): Promise<CheckResult> {
  const lookedAt = new URL(url).host;
  let status: number;
  try {
    status = await http.stream({ url, signal }, async (answer) => answer.status);
  } catch (error) {
    const why = error instanceof HttpCallError ? error.reason : 'the check was given up';
    const remedy = 'Check whether the UI runs, and whether the ingress proxy has its address.';
    return { state: 'fail', lookedAt, found: `the UI can't be reached: ${why}`, remedy };
  }
  if (status < 500) return { state: 'ok', lookedAt, found: `the UI answers (${status})` };
  const remedy =
    'Check the document database, which holds users, sessions and alerts: of its three members two must be up; one may be lost.';
  return {
    state: 'fail',
    lookedAt,
    found: `the UI answers ${status}, as it does while its document database is down`,
    remedy,
  };
}
