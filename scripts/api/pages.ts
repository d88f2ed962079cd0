/** The pages of `docs/reference/api/`: what each entry point of the package exports, from the doc comments. */
import type { EntryPoint, PublicExport, PublicInterface } from './declarations.ts';

const PLUGINS = /^holdfast\/plugins\//;

/** @returns the text of every page, by its path from the root of the project */
export function apiPages({ entries }: PublicInterface): Record<string, string> {
  const alone = entries.filter(({ specifier }) => !PLUGINS.test(specifier));
  const plugins = entries.filter(({ specifier }) => PLUGINS.test(specifier));
  return Object.fromEntries([
    ...alone.map((entry) => [
      pathOf(entry),
      page(`Exports of \`${entry.specifier}\``, sections(entry, '##')),
    ]),
    [
      'docs/reference/api/plugins.md',
      page(
        'Exports of `holdfast/plugins/*`',
        plugins.flatMap((entry) => ['', `## ${entry.specifier}`, ...sections(entry, '###')]),
      ),
    ],
  ]);
}

function pathOf({ specifier }: EntryPoint): string {
  return `docs/reference/api/${specifier.replace('holdfast/', '')}.md`;
}

function page(title: string, lines: readonly string[]): string {
  const intro = [
    'Written by `npm run docs` from the doc comments. What is `@public` keeps its meaning within a minor version; what is',
    '`@experimental` may change in any. [All of it without comments](../public-interface.md) is compared with every change.',
  ];
  return [`# ${title}`, '', ...intro, ...lines, ''].join('\n');
}

function sections({ exports }: EntryPoint, level: string): string[] {
  return exports.flatMap((one) => ['', `${level} ${one.name}`, '', ...section(one)]);
}

function section({ kind, stability, comment, text }: PublicExport): string[] {
  const { summary, notes, example } = partsOf(comment);
  return [
    `\`@${stability}\` ${kind}`,
    ...(summary ? ['', summary] : []),
    ...(notes.length > 0 ? ['', ...notes] : []),
    ...(example ? ['', '```ts', example, '```'] : []),
    ...(text ? ['', '```ts', text, '```'] : []),
  ];
}

const NOTES: Readonly<Record<string, (words: string) => string>> = {
  param: (words) => words.replace(/^(\S+)/, '`$1`:'),
  typeParam: (words) => words.replace(/^(\S+)/, '`$1`:'),
  returns: (words) => `Returns: ${words}`,
  throws: (words) => `Throws ${words}`,
};

function partsOf(comment: string) {
  const [summary = '', ...blocks] = comment
    .replace(/\s*@(?:public|experimental)\b/g, '')
    .split(/(?:^|\n)\s*@(?=[a-z])/i);
  const notes: string[] = [];
  let example = '';
  for (const block of blocks) {
    const [, tag = '', words = ''] = /^(\w+)\s*([\s\S]*)$/.exec(block) ?? [];
    if (tag === 'example') example = words.trim();
    else notes.push(`- ${NOTES[tag]?.(words.trim().replace(/\s+/g, ' ')) ?? block.trim()}`);
  }
  return { summary: summary.trim(), notes, example };
}
