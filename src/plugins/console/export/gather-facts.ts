import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { textOf } from '../../../core/host/history/answer-text.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import type { LogPart } from '../../../core/host/plugin/command.ts';
import type { ActorDefinition } from '../../../core/kernel/actors/definition.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { isObject, type Json } from '../../../core/kernel/json.ts';
import { builtDrawing, graphDigest } from '../statechart/built-drawings.ts';
import { machineGraph } from '../statechart/graph.ts';
import type { PageFacts } from './facts.ts';
import { freeText, type SeenLines } from './redacted-lines.ts';

/** Where the build leaves the viewer and says which machines it has, from source and from the package. */
export const VIEWER_FOLDER = fileURLToPath(new URL('../../../../dist/console/export/', import.meta.url));

/**
 * What a page says of itself.
 *
 * @param seen what its lines hold
 * @param definitions of the actors that the log is of
 */
export async function factsOf(
  { header, of, head }: LogPart,
  { records, redacted, actors }: SeenLines,
  definitions: readonly ActorDefinition[],
): Promise<Omit<PageFacts, 'version' | 'madeAt'>> {
  const { range, time } = header;
  const known = new Map(definitions.map((one) => [one.type, one]));
  const types = [...new Set(Array.from(actors, (ref) => parseActorRef(ref).type))].sort();
  const foreign = await foreignOf(types, known);
  const drawings = await Promise.all(
    types.map(async (type): Promise<[string, unknown]> => {
      const definition = known.get(type);
      return [type, definition && (await builtDrawing(type, machineGraph(definition.machine)))];
    }),
  );
  return {
    ...{ records, range, time, of, redacted, foreign },
    without: leftOut(header, of, redacted, foreign),
    head: `${range.to}:${head}`,
    inputs: inputsOf(actors, known),
    drawings: Object.fromEntries(drawings.filter(([, drawing]) => drawing !== undefined)),
  };
}

/** Names that are listed. */
const LISTED = 4;

function namesOf(actors: readonly string[]): string {
  const listed = actors.slice(0, LISTED).map((actor) => textOf(actor));
  return [...listed, ...(actors.length > LISTED ? [`${actors.length - LISTED} more`] : [])].join(', ');
}

function leftOut(
  { range, actors: only }: LogPart['header'],
  of: LogPart['of'],
  redacted: readonly number[],
  foreign: readonly string[],
): PageFacts['without'] {
  return [
    { what: 'sealed configs', which: 'the whole configs, of which records have the fingerprints' },
    {
      what: 'live facts',
      which:
        'what only a running instance knows: its health, logs, metrics and traces, and the pages that ask it',
    },
    { what: 'actions', which: 'nothing can be done from here' },
    ...(range.from > of.first
      ? [
          {
            what: 'what was before',
            which: `records ${of.first} to ${range.from - 1}, except the states that they left`,
          },
        ]
      : []),
    ...(range.to < of.last
      ? [{ what: 'what came after', which: `records ${range.to + 1} to ${of.last}` }]
      : []),
    ...(only ? [{ what: 'other actors', which: `all but ${namesOf(only)}` }] : []),
    ...(redacted.length > 0
      ? [
          {
            what: 'secrets',
            which: `redacted in ${redacted.length === 1 ? 'one record' : `${redacted.length} records`}, whose decisions may differ where they are replayed`,
          },
        ]
      : []),
    ...(foreign.length > 0
      ? [
          {
            what: 'foreign machines',
            which: `those of ${foreign.map((type) => textOf(type)).join(', ')} are no part of Holdfast: they have no statechart, and nothing can be tried out on them`,
          },
        ]
      : []),
  ];
}

/** The types whose machines are not those of the viewer. */
async function foreignOf(
  types: readonly string[],
  known: ReadonlyMap<string, ActorDefinition>,
): Promise<string[]> {
  const built: unknown = JSON.parse(await readFile(`${VIEWER_FOLDER}machines.json`, 'utf8'));
  return types.filter((type) => {
    const definition = known.get(type);
    return !definition || !isObject(built) || built[type] !== machineDigest(definition);
  });
}

/** Tells machines apart, as far as they are seen from outside. */
export function machineDigest({ machine, version }: ActorDefinition): string {
  return `${version}:${graphDigest(machineGraph(machine))}`;
}

/** What the actors start from, redacted; a key that a configuration does not know has none. */
function inputsOf(
  actors: ReadonlySet<string>,
  known: ReadonlyMap<string, ActorDefinition>,
): Record<string, Json> {
  return Object.fromEntries(
    [...actors].sort().flatMap((ref) => {
      const { type, key } = parseActorRef(ref);
      try {
        const input: unknown = known.get(type)?.input?.(key);
        return input === undefined ? [] : [[freeText(ref), redact(input, PAGE)] as const];
      } catch {
        return [];
      }
    }),
  );
}
