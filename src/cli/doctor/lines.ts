import type { Terminal } from '../../core/host/plugin/command.ts';
import type { CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { plainText, wrapped } from '../../core/host/terminal.ts';
import type { Finding } from './examine.ts';

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

const LABEL = 11;

/** Findings for a person: what is well in one line, the rest with what was looked at and what to do. */
export function findingLines(findings: readonly Finding[], { paint, columns }: Terminal): string[] {
  const width = Math.max(0, ...findings.map(({ name }) => name.length));
  const lines = findings.flatMap(({ name, state, lookedAt, found, remedy }) => {
    const below = (indent: number, head: string, text: string) => {
      const [first = '', ...rest] = wrapped(plainText(text), columns - indent);
      return [head + first, ...rest.map((line) => ' '.repeat(indent) + line)];
    };
    const row = (label: string, text: string) =>
      below(6 + LABEL, `      ${paint('dim', label.padEnd(LABEL))}`, text);
    const head = `${paint(['bold', COLOURS[state]], state.padEnd(4))}  ${name.padEnd(width)}  `;
    const lines = below(8 + width, head, found);
    if (state === 'ok') return lines;
    return [...lines, ...row('looked at', lookedAt), ...(remedy === undefined ? [] : row('do', remedy))];
  });
  return [...lines, '', ...wrapped(summary(findings), columns)];
}

function summary(findings: readonly Finding[]): string {
  const count = (state: CheckResult['state']) => findings.filter((finding) => finding.state === state).length;
  const counts = `${findings.length} checks: ${count('ok')} ok, ${count('warn')} to know, ${count('fail')} to fix`;
  const toFix = findings.filter(({ state }) => state === 'fail').map(({ name }) => name);
  // A long list has scrolled away when its end is read.
  return toFix.length === 0 ? counts : `${counts}: ${toFix.join(', ')}`;
}
