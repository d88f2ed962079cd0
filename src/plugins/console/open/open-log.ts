import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type LogSource, OpenedFile, openFolder } from '../../../core/host/history/log-source.ts';
import { createSurface } from '../../../core/host/http/surface.ts';
import { createLogger } from '../../../core/host/logging/logger.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { Access } from '../access/access.ts';
import { loginRoutes } from '../access/routes.ts';
import { apiRoutes } from '../api/serve.ts';
import { ConsoleError, errorBody } from '../errors.ts';
import { pageRoutes } from '../static-files.ts';

/** A login lasts as long as anybody looks at an incident, milliseconds. */
const SESSION_MS = 86_400_000;
const CLOSE_MS = 1_000;

/**
 * `holdfast open`: the console over a log that nothing writes, until it is interrupted. Nothing is written.
 *
 * @throws HF_LOG_*, HF_PORTABLE_* the log cannot be read; HF_HTTP_LISTEN
 */
export async function openLog(
  [given]: readonly string[],
  { port }: Readonly<Record<string, unknown>>,
  context: CommandContext,
): Promise<void> {
  const { dataDir, json, print, note, signal } = context;
  const place = given === undefined ? dataDir : resolve(given);
  const number = Number(port);
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new ConsoleError('HF_CONSOLE_PORT', { text: String(port).slice(0, 40) });
  const source = sourceAt(place, context);
  const first = await source.open(); // a log that cannot be read is an error of the command
  first.close();
  const logger = createLogger({ level: 'warn', destination: { write: (line) => note(line.trimEnd()) } });
  const access = new Access({
    ...{ clock: systemClock, logger, sessionMs: SESSION_MS },
    record: async () => {},
    token: () => undefined,
  });
  const surface = createSurface(
    { name: 'console', port: number, portVariable: '--port', readOnly: true, errorBody },
    { logger },
  );
  loginRoutes(surface.http, access);
  apiRoutes(surface.http, { access, source });
  pageRoutes(surface.http, access);
  const { url } = await surface.listen();
  try {
    const link = `${url}/login#${access.makeCode('operator').code}`;
    print(json ? JSON.stringify({ link }) : link);
    note('It works once. The console stays open until Ctrl-C.');
    await ended(signal);
  } finally {
    await surface.close(CLOSE_MS);
    await source.close();
  }
}

/** The log of a file or folder, described in the words of the plugins that are known here. */
function sourceAt(
  place: string,
  { wordsOf, actors, stoppedReports, declared }: CommandContext,
): LogSource & { close(): Promise<void> } {
  const isFile = statSync(place, { throwIfNoEntry: false })?.isFile() === true;
  const file = isFile ? new OpenedFile(place) : undefined;
  return {
    mode: isFile ? 'file' : 'folder',
    place,
    open: () => file?.open() ?? openFolder(place),
    wordsOf,
    actors,
    stoppedReports,
    declared,
    close: async () => file?.close(),
  };
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
