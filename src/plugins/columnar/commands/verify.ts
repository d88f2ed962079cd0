import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import type { ColumnarOptions } from '../options.ts';
import { askDatabase } from '../questions/questions.ts';
import type { VerifyReport } from '../questions/verify.ts';
import { codeOf, findingLines, tableLines } from './output.ts';

const SECONDS = 30;

/** `holdfast stack verify`: what arrived in the last hour, by which way, and what is wrong (O20, O27). */
export function verifyCommand(options: ColumnarOptions): CommandDefinition {
  return {
    name: 'stack verify',
    first: true,
    summary:
      'Counts what arrived in the last hour, by signal, service, namespace and MCP server; exit 1 when a finding is `fail`',
    example: 'holdfast stack verify --json',
    async run(_args, _flags, context) {
      const report = await askDatabase<VerifyReport>('verify', { seconds: SECONDS }, context, options);
      if (context.json) context.print(JSON.stringify(report, null, 2));
      else for (const line of lines(report, context.terminal)) context.print(line);
      return codeOf(report.findings);
    },
  };
}

/** The age of the newest row that others sent: Holdfast's own say nothing of the producers. */
function newestText(age: number | undefined, own: number): string {
  if (age !== undefined) return `${age} s ago`;
  return own > 0 ? "only Holdfast's own" : '-';
}

function lines(report: VerifyReport, terminal: CommandContext['terminal']): string[] {
  const { place, signals, spans, logs, mcp, findings } = report;
  const counts = signals.flatMap(({ tables }) =>
    tables.map(({ table, missing, lastHour, total, own, age }) => [
      table,
      String(lastHour),
      String(total),
      missing ? 'no such table' : newestText(age, own),
    ]),
  );
  const section = (title: string, names: string[], rows: string[][]) =>
    rows.length === 0 ? ['', `${title}: none`] : ['', `${title}:`, ...tableLines(names, rows, terminal)];
  return [
    `Rows in ${place}`,
    ...tableLines(['table', 'last hour', 'all', 'newest'], counts, terminal),
    '',
    ...signals.map(({ signal, path }) => `${signal.padEnd(9)}${path}`),
    ...section(
      'spans by service',
      ['service', 'spans'],
      spans.map(({ service, spans }) => [service || '(none)', String(spans)]),
    ),
    ...section(
      'logs by namespace',
      ['namespace', 'logs'],
      logs.map(({ namespace, logs }) => [namespace || '(none)', String(logs)]),
    ),
    ...section(
      'MCP calls by server',
      ['server', 'calls'],
      mcp.map(({ server, calls }) => [server, String(calls)]),
    ),
    '',
    ...findingLines(findings, terminal),
  ];
}
