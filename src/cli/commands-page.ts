import { type CommandDefinition, commandWords } from '../core/host/plugin/command.ts';
import type { ListedCommand } from './program.ts';

/** `docs/commands.md`: every command with its usage, flags and an example. A test proves that it is fresh. */
export function commandsPage(listed: readonly ListedCommand[]): string {
  const headings = new Map<string, CommandDefinition[]>();
  for (const { heading, command } of listed) {
    const name = heading.replace(/:$/, '').replace(/^Commands$/, 'Runtime and log');
    headings.set(name, [...(headings.get(name) ?? []), command]);
  }
  const sections = [...headings].map(([heading, commands]) => [
    `## ${heading}`,
    ...commands.flatMap((command) => ['', ...described(command)]),
  ]);
  return [
    '# Commands',
    '',
    'Written by `npm run docs` from what is declared. Each command also takes `--json`, `--data-dir DIR`, `--config FILE` and `--help`.',
    'Exit codes: 0 well; 1 the check failed or the work did; 2 wrong usage or configuration.',
    ...sections.flatMap((lines) => ['', ...lines]),
    '',
  ].join('\n');
}

function described({ name, summary, example, flags = [] }: CommandDefinition): string[] {
  const first = summary.charAt(0).toUpperCase() + summary.slice(1);
  return [
    `### ${commandWords(name).join(' ')}`,
    '',
    `\`holdfast ${name}${flags.length > 0 ? ' [options]' : ''}\``,
    '',
    /[.?!]$/.test(first) ? first : `${first}.`,
    '',
    `    ${example}`,
    ...(flags.length > 0 ? ['', '| option | |', '| --- | --- |', ...flags.map(flagRow)] : []),
  ];
}

function flagRow({
  flags,
  summary,
  default: value,
  repeatable,
}: NonNullable<CommandDefinition['flags']>[number]) {
  const more = [
    ...(value === undefined ? [] : [`default: ${value}`]),
    ...(repeatable ? ['may be given several times'] : []),
  ];
  const text = more.length > 0 ? `${summary} (${more.join('; ')})` : summary;
  return `| \`${flags}\` | ${text.replaceAll('|', '\\|')} |`;
}
