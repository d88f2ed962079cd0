import { builtinPlugins, logFeatures, standaloneCommands } from '../../../src/main.ts';
import { call } from '../../support/cli.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';
import { ConsoleClient, type ConsoleRig } from './console-rig.ts';

/** Runs `holdfast open` until the test is over. */
export async function open(t: Scope, source: string): Promise<ConsoleClient> {
  let out = '';
  const stop = new AbortController();
  const running = call(['open', source], {
    ...{ cwd: tempDir(t), builtinPlugins, logFeatures: logFeatures(), standaloneCommands },
    interrupted: stop.signal,
    onOut: (text) => {
      out += text;
    },
  });
  t.teardown(async () => {
    stop.abort('SIGINT');
    await running;
  });
  const link = await Promise.race([
    read('the link', () => /^(http\S+)\/login#(\S+)\n/m.exec(out), Boolean),
    running.then(({ err }) => {
      throw new Error(`it ended: ${err}`);
    }),
  ]);
  const client = new ConsoleClient(link?.[1] ?? '');
  t.teardown(() => client.dispatcher.destroy());
  await client.loginWith(link?.[2] ?? '');
  return client;
}

/** Asks for the same pages of the running instance, stops it, and asks for them of its folder. */
export async function shownLiveAndOpened(
  t: Scope,
  rig: ConsoleRig,
  paths: readonly string[],
): Promise<{ live: any[]; opened: any[]; texts: string }> {
  const live = await Promise.all(paths.map((path) => rig.ask(path)));
  await rig.runtime.stop('SIGTERM');
  const client = await open(t, rig.dataDir);
  const opened = await Promise.all(paths.map((path) => client.ask(path)));
  return { live, opened, texts: JSON.stringify([live, opened]) };
}

/** The sections of a page by their titles. */
export function sectionsOf(page: any): Readonly<Record<string, any>> {
  return Object.fromEntries(page.sections.map((section: any) => [section.title ?? section.kind, section]));
}

/** The cells of a table. */
export const cellsOf = (section: any): any[] => section.rows.map(({ cells }: any) => cells);
