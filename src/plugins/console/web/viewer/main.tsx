import type { AnyStateMachine } from 'xstate';
import { type ConsolePage, consolePages } from '../../../../core/contracts/console.ts';
import type { LogSource } from '../../../../core/host/history/log-source.ts';
import { declareSecretFields, type SecretFields } from '../../../../core/host/logging/secret-fields.ts';
import type { PluginContext, StoppedReports } from '../../../../core/host/plugin/definition.ts';
import type { Registrations } from '../../../../core/host/plugin/registrations.ts';
import type { ActorDefinition, RecordWords } from '../../../../core/kernel/actors/definition.ts';
import { actorRef } from '../../../../core/kernel/ids.ts';
import { MemoryReader } from '../../../../core/kernel/log/portable/memory-reader.ts';
import { DATA_ELEMENT, type PageFacts } from '../../export/facts.ts';
import { answerWith } from '../api.ts';
import { exported } from '../live.ts';
import { routeInFile } from '../location.ts';
import { showPages } from '../show.tsx';
import { answerFrom } from './local-api.ts';

/** What the product's plugins bring to an exported page; the build finds it. */
export interface Features {
  readonly actors: readonly {
    readonly type: string;
    readonly version: number;
    readonly machine: AnyStateMachine;
  }[];
  readonly words: readonly RecordWords[];
  readonly stoppedReports: readonly StoppedReports[];
  readonly secretFields: readonly SecretFields[];
  readonly pages: readonly {
    readonly owner: string;
    /** A page, or what contributes pages. */
    readonly page?: ConsolePage;
    readonly contribute?: (context: Pick<PluginContext<unknown>, 'contribute'>) => void;
  }[];
  readonly plugins: Registrations['plugins'];
  /** Facts of health pages, with the plugins that report them. */
  readonly health: readonly { readonly name: string; readonly owner: string }[];
}

/** Shows the log that the page holds. */
export async function startViewer(features: Features): Promise<void> {
  try {
    const lines = (await contentOf(document)).trimEnd().split('\n');
    const facts = JSON.parse(lines.pop() ?? '') as PageFacts;
    for (const fields of features.secretFields) declareSecretFields(fields);
    const log = new MemoryReader(lines, document.title);
    exported.value = { ...facts, chain: 'The records are being checked …' };
    const source = sourceOf(log, facts, features);
    answerWith(answerFrom(source, async (type) => facts.drawings[type]));
    routeInFile();
    showPages();
    exported.value = { ...facts, chain: await chainOf(log, facts) };
  } catch (error) {
    const shown = document.getElementById('app');
    if (shown)
      shown.textContent = `This page cannot show its log: ${error instanceof Error ? error.message : error}`;
  }
}

/** The lines that the page holds. */
async function contentOf(page: Document): Promise<string> {
  const element = page.getElementById(DATA_ELEMENT);
  const text = element instanceof HTMLTemplateElement ? (element.content.textContent ?? '') : '';
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(plain).text();
}

/** Checks the records, and says what came of it. */
async function chainOf(log: MemoryReader, { redacted, records }: PageFacts): Promise<string> {
  const { subtle } = crypto;
  if (subtle === undefined) return 'This browser checks no hashes of a page that was opened in this way.';
  const encoder = new TextEncoder();
  const digest = async (text: string): Promise<string> => {
    const hash = new Uint8Array(await subtle.digest('SHA-256', encoder.encode(text)));
    return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
  };
  const broken = await log.verify(digest, new Set(redacted));
  if (broken !== undefined) return `Record ${broken} is not what was written: do not rely on this page.`;
  if (redacted.length === 0) return 'Each record was checked against the hash of the record before.';
  return `Of ${records.toLocaleString()} records all were checked but ${redacted.length.toLocaleString()}, in which a text was redacted.`;
}

function sourceOf(log: MemoryReader, facts: PageFacts, features: Features): LogSource {
  const words: RecordWords = Object.assign({}, ...features.words);
  const reports: StoppedReports = Object.assign({}, ...features.stoppedReports);
  const foreign = new Set(facts.foreign);
  const actors: ActorDefinition[] = features.actors
    .filter(({ type }) => !foreign.has(type))
    .map((actor) => ({ ...actor, input: (key) => facts.inputs[actorRef(actor.type, key)] }));
  const declared = {
    plugins: features.plugins,
    contributions: contributionsOf(features),
    health: features.health.map((fact) => ({ ...fact, report: () => undefined })),
  };
  return {
    mode: 'file',
    place: document.title,
    open: async () => ({ log, close: () => {} }),
    wordsOf: async () => words,
    actors: async () => actors,
    stoppedReports: async () => reports,
    declared: async () => declared,
  };
}

/** What plugins contribute without being started. */
function contributionsOf({ pages }: Features): Registrations['contributions'] {
  return pages.flatMap(({ owner, page, contribute }) => {
    const found: Registrations['contributions'][number][] = [];
    if (page) found.push({ owner, point: consolePages.name, make: () => page, value: page });
    contribute?.({
      contribute: (point, value) => {
        if (typeof value !== 'function') found.push({ owner, point: point.name, make: () => value, value });
      },
    });
    return found;
  });
}
