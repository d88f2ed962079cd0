/** Adds a plugin to the text of a `plugins.config.ts`, as a person would: one import, one call in the list. */

/** What a new configuration holds where there was none. @param calls of the plugins */
export function newConfig(imports: readonly string[], calls: readonly string[]): string {
  return [
    "import { defineConfig } from 'holdfast';",
    ...imports,
    '',
    'export default defineConfig({',
    '  plugins: [',
    ...calls.map((call) => `    ${call},`),
    '  ],',
    '});',
    '',
  ].join('\n');
}

/** @returns the text with both lines; undefined where its imports or its list are not found */
export function withPlugin(text: string, importLine: string, call: string): string | undefined {
  const code = withoutTexts(text);
  const imports = [...code.matchAll(/^import\b[^;]*?\bfrom\s*(['"])[^'"]+\1;?/gm)];
  const last = imports.at(-1);
  const list = /\bplugins\s*:\s*\[/.exec(code);
  if (!last || !list) return undefined;
  const importAt = last.index + last[0].length;
  const listAt = list.index + list[0].length;
  if (listAt < importAt) return undefined;
  return `${text.slice(0, importAt)}\n${importLine}${text.slice(importAt, listAt)}\n    ${call},${text.slice(listAt)}`;
}

/** The same text with blanks in place of comments and of what stands in quotes, so that places in one are places in the other. */
function withoutTexts(text: string): string {
  return text.replaceAll(
    /(['"`])(?:\\.|(?!\1)[^\\])*\1|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (found, quote = ' ') =>
      found.length < 2 ? found : `${quote}${found.slice(1, -1).replaceAll(/[^\n]/g, ' ')}${quote}`,
  );
}
