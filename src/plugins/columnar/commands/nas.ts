import { execFile } from 'node:child_process';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { HttpClient } from '../../../core/host/http/client.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import type { ColumnarOptions } from '../options.ts';
import type { Finding } from '../questions/findings.ts';
import type { NasReport } from '../questions/nas.ts';
import { askDatabase } from '../questions/questions.ts';
import { codeOf, findingLines } from './output.ts';

const SECONDS = 30;
const HEALTH_URL = 'http://127.0.0.1:13133/';
const PATIENCE_MS = 3_000;
const UNIT = 'otelcol-contrib.service';
const NAME = 'stack nas';

/** `holdfast stack nas --host <name>`: whether a NAS sends what it should, and its collector is well (O21). */
export function nasCommand(options: ColumnarOptions): CommandDefinition {
  return {
    name: NAME,
    summary:
      'Verifies what a NAS sends: logs, host metrics, backup freshness, failed sources; on the NAS its collector too; exit 1 when a finding is `fail`',
    example: 'holdfast stack nas --host nas-1',
    flags: [
      { flags: '--host <name>', summary: 'its host.name, as its collector sends it' },
      { flags: '--unit <name>', summary: "the collector's systemd unit on the NAS", default: UNIT },
      { flags: '--health <url>', summary: "the collector's health check on the NAS", default: HEALTH_URL },
    ],
    async run(_args, flags, context) {
      const host = flags.host;
      if (typeof host !== 'string' || host === '')
        throw new HostError('HF_CLI_USAGE', { reason: '--host is missing.', command: NAME });
      const unit = String(flags.unit);
      if (!/^[\w@.:-]{1,128}$/.test(unit) || unit.startsWith('-'))
        throw new HostError('HF_CLI_USAGE', {
          reason: '--unit takes the name of a unit.',
          command: NAME,
        });
      const report = await askDatabase<NasReport>('nas', { host, seconds: SECONDS }, context, options);
      const collector = await collectorFindings(host, unit, String(flags.health), context.signal);
      const findings = [...report.findings, ...collector];
      if (context.json) context.print(JSON.stringify({ ...report, findings }, null, 2));
      else for (const line of findingLines(findings, context.terminal)) context.print(line);
      return codeOf(findings);
    },
  };
}

async function collectorFindings(
  host: string,
  unit: string,
  health: string,
  signal: AbortSignal,
): Promise<Finding[]> {
  const here = hostname();
  const isHere = here === host || here.split('.')[0] === host.split('.')[0];
  if (!isHere) {
    const text = `the collector itself was not checked: this host is ${here}`;
    return [
      {
        state: 'warn',
        text,
        remedy: `Run \`holdfast stack nas --host ${host}\` on ${host} for unit and health check.`,
      },
    ];
  }
  return [await unitFinding(unit, signal), await healthFinding(health, unit, signal)];
}

async function unitFinding(unit: string, signal: AbortSignal): Promise<Finding> {
  const state = await promisify(execFile)('systemctl', ['is-active', unit], {
    timeout: PATIENCE_MS,
    signal,
  }).then(
    ({ stdout }) => stdout.trim(),
    (error: { stdout?: string; code?: unknown }) =>
      error.stdout?.trim() || (error.code === 'ENOENT' ? 'unknown: systemctl is not here' : 'unknown'),
  );
  signal.throwIfAborted();
  if (state === 'active') return { state: 'ok', text: `${unit} is active` };
  return {
    state: 'fail',
    text: `${unit} is ${state}`,
    remedy: `systemctl status ${unit}; journalctl -u ${unit} -n 50`,
  };
}

/** Only the status of its answer counts. */
const http = new HttpClient({
  timeoutMs: PATIENCE_MS,
  answerLimit: 65_536,
  excess: 'cut',
});

async function healthFinding(url: string, unit: string, signal: AbortSignal): Promise<Finding> {
  const remedy = `The health_check extension of the collector listens on port 13133: systemctl restart ${unit}, and check its config.`;
  try {
    const { status } = await http.call({ url, signal });
    if (status === 200) return { state: 'ok', text: `the health check (${url}) answers 200` };
    return { state: 'fail', text: `the health check (${url}) answers ${status}`, remedy };
  } catch {
    signal.throwIfAborted();
    return { state: 'fail', text: `the health check (${url}) does not answer`, remedy };
  }
}
