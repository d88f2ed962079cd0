import { basename } from 'node:path';
import { PluginWords } from '../../core/host/history/words.ts';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import type { Terminal } from '../../core/host/terminal.ts';
import type { ActorDefinition } from '../../core/kernel/actors/definition.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { CliError } from '../errors.ts';
import { withChosenLog } from '../log/chosen.ts';
import { sourceOf } from '../log/source.ts';
import { frame, maxScroll, rowsFor, type Scene } from './frame.ts';
import { StepLog } from './log.ts';
import { pageOf } from './page.ts';
import { Screen } from './screen.ts';
import { type LogRequest, pressKey, type Viewer, viewerAt, withNote } from './viewer.ts';

/** `holdfast replay step`: shows a log on a terminal, record by record (C7). */
export const step: CommandRun = async ([source], flags, context) => {
  const { stdin, stdout } = process;
  if (context.json || !context.terminal.interactive || !stdin.isTTY || !stdout.isTTY)
    throw new CliError('HF_CLI_TERMINAL');
  const definitions = await context.actors().catch(() => []); // without machines no guard is shown
  const path = sourceOf(source, context);
  const given = source === undefined ? [] : [source];
  await withChosenLog(flags, { command: 'replay step', given, here: () => path }, context, (log) =>
    stepThrough(log, new Screen(stdin, stdout, process.env.TERM), {
      definitions: new Map(definitions.map((one) => [one.type, one])),
      words: new PluginWords(context),
      paint: context.terminal.paint,
      source: typeof flags.host === 'string' ? flags.host : basename(path),
      place: flags.at as string | undefined,
      signal: context.signal,
    }),
  );
};

export interface StepOptions {
  readonly definitions: ReadonlyMap<string, ActorDefinition>;
  readonly words: PluginWords;
  readonly paint: Terminal['paint'];
  /** Shown in the title. */
  readonly source: string;
  /** Where to begin; the first record unless given. */
  readonly place?: string | undefined;
  /** Aborted when the command must end. */
  readonly signal: AbortSignal;
}

/**
 * Draws the log, waits for keys and carries them out, until somebody quits.
 *
 * @throws HF_LOG_RANGE, HF_LOG_CORRUPT, HF_CLI_USAGE
 */
async function stepThrough(reader: SqliteReader, screen: Screen, options: StepOptions): Promise<void> {
  const { definitions, words, paint, source, signal } = options;
  const log = new StepLog(reader, definitions);
  let viewer = viewerAt(await log.begin(options.place));
  let isResized = false;
  const end = () => screen.endInput();
  signal.addEventListener('abort', end, { once: true });
  screen.open(() => {
    isResized = true;
  });
  try {
    let scene = await readScene(log, viewer, source, words, screen);
    for (;;) {
      viewer = { ...viewer, scroll: Math.min(viewer.scroll, maxScroll(scene.page, screen.size)) };
      screen.draw(frame(viewer, scene, screen.size, paint, words.describe));
      isResized = false;
      const keys = await screen.keys();
      if (!keys || signal.aborted) return;
      const before = viewer;
      for (const key of keys) {
        const pressed = pressKey(viewer, key, rowsFor(screen.size).list);
        viewer = pressed.viewer;
        if (pressed.request?.kind === 'quit') return;
        if (pressed.request?.kind === 'suspend') screen.suspend();
        else if (pressed.request)
          viewer = await carryOutRequest(log, screen, viewer, pressed.request, signal);
      }
      if (isResized || viewer.here.seq !== before.here.seq || viewer.filter !== before.filter)
        scene = await readScene(log, viewer, source, words, screen);
    }
  } finally {
    signal.removeEventListener('abort', end);
    screen.close();
  }
}

/** Ctrl-C and Escape end a long search, and the viewer keeps its record; the end of the command ends everything. */
async function carryOutRequest(
  log: StepLog,
  screen: Screen,
  viewer: Viewer,
  request: LogRequest,
  signal: AbortSignal,
): Promise<Viewer> {
  return screen.interruptible(async (interrupted) => {
    try {
      return await log.carryOut(viewer, request, AbortSignal.any([interrupted, signal]));
    } catch (error) {
      if (!interrupted.aborted || signal.aborted) throw error;
      return withNote(viewer, 'stopped');
    }
  });
}

/** Reads from the log what the frame shows; the viewer's record is in the middle of the list where the log allows it. */
async function readScene(
  log: StepLog,
  { here, filter }: Viewer,
  source: string,
  words: PluginWords,
  screen: Screen,
): Promise<Scene> {
  const { list } = rowsFor(screen.size);
  const [near, detail] = [await log.around(here.seq, filter, list - 1, list - 1), await log.detail(here.seq)];
  const at = near.findIndex(({ seq }) => seq === here.seq);
  const start = Math.max(0, Math.min(at - Math.floor(list / 2), near.length - list));
  const around = near.slice(start, start + list);
  await words.prepare([...around, detail.family.record]);
  return { source, first: log.first, last: log.last, around, page: pageOf(detail, words.describe) };
}
