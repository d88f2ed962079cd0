import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { CommandContext, LogPart, WriteLogPart } from '../../../core/host/plugin/command.ts';
import { sizeText } from '../../../core/host/size.ts';
import { timestamp } from '../../../core/host/terminal.ts';
import type { ActorDefinition } from '../../../core/kernel/actors/definition.ts';
import { writePortable } from '../../../core/kernel/log/portable/file.ts';
import { version } from '../../../core/kernel/version.ts';
import { ConsoleError } from '../errors.ts';
import { DATA_ELEMENT } from './facts.ts';
import { factsOf, VIEWER_FOLDER } from './gather-facts.ts';
import { redactedLines, type SeenLines } from './redacted-lines.ts';

/** A larger page is slow to open, and a still larger one cannot be used; bytes. */
const LARGE = 5_000_000;
const LARGEST = 10_000_000;

/**
 * Writes a part of a log as one page that holds the log and the console (C15, `docs/console.md`).
 *
 * @throws HF_CONSOLE_PAGE_SIZE it would be larger than 10 MB; HF_CONSOLE_NOT_BUILT; HF_PORTABLE_WRITE
 */
export const writePage: WriteLogPart = async (part, file, context) => {
  const viewer = await viewerOf();
  const { from, to } = part.header.range;
  const room = LARGEST - viewer.script.length - viewer.style.length;
  const tooLarge = () => new ConsoleError('HF_CONSOLE_PAGE_SIZE', { from, to, most: sizeText(LARGEST) });
  const most = Math.floor((room * 3) / 4); // of gzip, which becomes longer as base64
  const data = await compressed(contentsOf(part, context), { most, tooLarge }, context.signal);
  const { time } = part.header;
  const title = `Incident of ${timestamp(time.from)} to ${timestamp(time.to)}`;
  const bytes = await writePortable(file, [pageOf(title, viewer, data)], context.signal);
  if (bytes > LARGE)
    context.note(
      `${basename(file)} has ${sizeText(bytes)}, which a browser opens slowly: export a shorter range with --from and --to.`,
    );
  return bytes;
};

/** The lines that the page holds; the facts stand last, because they count the others. */
async function* contentsOf(part: LogPart, context: CommandContext): AsyncGenerator<string> {
  const seen: SeenLines = { records: 0, redacted: [], actors: new Set() };
  yield* redactedLines(part.lines, seen);
  const facts = await factsOf(part, seen, await definitionsOf(context));
  yield `${JSON.stringify({ ...facts, version, madeAt: part.header.exportedAt })}\n`;
}

/** The machines by which the log was written; none where their configuration cannot be loaded. */
async function definitionsOf({ actors, note }: CommandContext): Promise<readonly ActorDefinition[]> {
  try {
    return await actors();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    note(`The page has no machines, so it draws no statecharts and tries nothing out. ${reason}`);
    return [];
  }
}

/** @returns gzip of at most so many bytes */
async function compressed(
  lines: AsyncIterable<string>,
  { most, tooLarge }: { readonly most: number; readonly tooLarge: () => Error },
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  await pipeline(
    Readable.from(lines),
    createGzip({ level: 9 }),
    async (source: AsyncIterable<Buffer>) => {
      for await (const chunk of source) {
        size += chunk.length;
        if (size > most) throw tooLarge();
        chunks.push(chunk);
      }
    },
    { signal },
  );
  return Buffer.concat(chunks);
}

interface Viewer {
  readonly script: string;
  readonly style: string;
  /** The icon as an address. */
  readonly icon: string;
}

/** @throws HF_CONSOLE_NOT_BUILT */
async function viewerOf(): Promise<Viewer> {
  try {
    const [script, style, icon] = await Promise.all(
      ['viewer.js', 'viewer.css', 'icon.svg'].map((name) => readFile(`${VIEWER_FOLDER}${name}`, 'utf8')),
    );
    return {
      script: inert(script ?? ''),
      style: style ?? '',
      icon: `data:image/svg+xml;base64,${Buffer.from(icon ?? '').toString('base64')}`,
    };
  } catch (error) {
    throw new ConsoleError('HF_CONSOLE_NOT_BUILT', {}, { cause: error });
  }
}

/** A script in which nothing ends the element that it stands in; in texts and patterns, `\x3c` is `<`. */
function inert(script: string): string {
  return script.replaceAll(/<(?=\/script|!--)/gi, '\\x3c');
}

function pageOf(title: string, { script, style, icon }: Viewer, data: Buffer): string {
  const policy = [
    "default-src 'none'",
    `script-src '${digestOf(script)}'`,
    `style-src '${digestOf(style)}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
<div id="app"><p class="wait">Reading the log …</p></div>
<noscript><p>This page needs JavaScript; it asks nothing of any network. The log that it was made from is shown by <code>holdfast log list</code>.</p></noscript>
<template id="${DATA_ELEMENT}">${data.toString('base64')}</template>
<script type="module">${script}</script>
</body>
</html>
`;
}

/** As a policy names it. */
function digestOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
