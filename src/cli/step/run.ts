import { basename } from 'node:path';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import type { Terminal } from '../../core/host/terminal.ts';
import type { ActorDefinition } from '../../core/kernel/actors/definition.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { CliError } from '../errors.ts';
import { sourceOf, withLog } from '../log/source.ts';
import { PluginWords } from '../log/words.ts';
import { frame, furthest, roomOf, type Scene } from './frame.ts';
import { StepLog } from './log.ts';
import { pageOf } from './page.ts';
import { Screen } from './screen.ts';
import { type LogRequest, press, stayed, type Viewer, viewerAt } from './viewer.ts';

/** `holdfast replay step`: a log record by record, on a terminal (C7). */
export const step: CommandRun = async ([source], flags, context) => {
  const { stdin, stdout } = process;
  if (context.json || !context.terminal.interactive || !stdin.isTTY || !stdout.isTTY)
    throw new CliError('HF_CLI_TERMINAL');
  const definitions = await context.actors().catch(() => []); // without machines no guard is shown
  const path = sourceOf(source, context);
  await withLog(
    path,
    (log) =>
      stepThrough(log, new Screen(stdin, stdout, process.env.TERM), {
        definitions: new Map(definitions.map((one) => [one.type, one])),
        words: new PluginWords(context),
        paint: context.terminal.paint,
        source: basename(path),
        place: flags.at as string | undefined,
        signal: context.signal,
      }),
    context.signal,
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
  /** Aborted when the command is asked to end. */
  readonly signal: AbortSignal;
}

/** Walks over a log on a screen until somebody quits. @throws HF_LOG_RANGE, HF_LOG_CORRUPT, HF_CLI_USAGE */
async function stepThrough(reader: SqliteReader, screen: Screen, options: StepOptions): Promise<void> {
  const { definitions, words, paint, source, signal } = options;
  const log = new StepLog(reader, definitions);
  let viewer = viewerAt(await log.begin(options.place));
  let isNew = true;
  const end = () => screen.over();
  signal.addEventListener('abort', end, { once: true });
  screen.take(() => {
    isNew = true;
  });
  try {
    let scene = await sceneOf(log, viewer, source, words, screen);
    for (;;) {
      viewer = { ...viewer, scroll: Math.min(viewer.scroll, furthest(scene.page, screen.size)) };
      screen.draw(frame(viewer, scene, screen.size, paint, words.describe));
      isNew = false;
      const keys = await screen.keys();
      if (!keys || signal.aborted) return;
      const before = viewer;
      for (const key of keys) {
        const pressed = press(viewer, key, roomOf(screen.size).list);
        viewer = pressed.viewer;
        if (pressed.request?.kind === 'quit') return;
        if (pressed.request?.kind === 'suspend') screen.suspend();
        else if (pressed.request) viewer = await fulfilled(log, screen, viewer, pressed.request, signal);
      }
      if (isNew || viewer.here.seq !== before.here.seq || viewer.filter !== before.filter)
        scene = await sceneOf(log, viewer, source, words, screen);
    }
  } finally {
    signal.removeEventListener('abort', end);
    screen.close();
  }
}

/** A search that somebody stops leaves the viewer where it was. */
async function fulfilled(
  log: StepLog,
  screen: Screen,
  viewer: Viewer,
  request: LogRequest,
  signal: AbortSignal,
): Promise<Viewer> {
  return screen.interruptible(async (asked) => {
    try {
      return await log.fulfil(viewer, request, AbortSignal.any([asked, signal]));
    } catch (error) {
      if (!asked.aborted || signal.aborted) throw error;
      return stayed(viewer, 'stopped');
    }
  });
}

/** What is drawn of the log: half of the list lies before the record where it can. */
async function sceneOf(
  log: StepLog,
  { here, filter }: Viewer,
  source: string,
  words: PluginWords,
  screen: Screen,
): Promise<Scene> {
  const { list } = roomOf(screen.size);
  const [near, detail] = [await log.around(here.seq, filter, list - 1, list - 1), await log.detail(here.seq)];
  const at = near.findIndex(({ seq }) => seq === here.seq);
  const start = Math.max(0, Math.min(at - Math.floor(list / 2), near.length - list));
  const around = near.slice(start, start + list);
  await words.prepare([...around, detail.family.record]);
  return { source, first: log.first, last: log.last, around, page: pageOf(detail, words.describe) };
}
