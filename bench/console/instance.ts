/**
 * An instance with the console and some doors, in a process of its own. Obeys the messages of its parent, and answers each: how
 * long its event loop was held up, how much memory it has, and what of the console's API it has loaded.
 */
import { registerHooks } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import type { ConfiguredPlugin } from '../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../src/core/host/runtime/runtime.ts';
import { door } from '../../test/support/door.ts';
import { schedulerWaitMs } from '../measure.ts';

/** What the parent may ask. */
export type Question =
  /** Begins to measure the turns of the event loop. */
  | { readonly ask: 'watch' }
  /** @returns the longest turn since then, milliseconds */
  | { readonly ask: 'longest' }
  | { readonly ask: 'memory' }
  /** @returns the processor time so far, milliseconds */
  | { readonly ask: 'cpu' }
  /** @returns the modules of the console's API that were loaded, and how many timers are armed */
  | { readonly ask: 'loaded' }
  /** Decides so many times a second, for so long. */
  | { readonly ask: 'live'; readonly perSecond: number; readonly seconds: number };

const API = /\/src\/plugins\/console\/api\/(?!serve\.ts|paths\.ts)|\/src\/core\/host\/history\//;
const modules = new Set<string>();
registerHooks({
  load(url, context, next) {
    if (API.test(url)) modules.add(url);
    return next(url, context);
  },
});

const [dataDir = '', withConsole] = process.argv.slice(2);
const { definePlugin } = await import('../../src/core/host/plugin/definition.ts');
const { consolePlugin } = await import('../../src/plugins/console/index.ts');
const { z } = await import('zod');
const doors = definePlugin({
  name: 'test',
  options: z.strictObject({}),
  register(context) {
    context.actor(door);
    for (const type of ['bell.ring', 'lamp.on'])
      context.effect(type, () => undefined, { onRecovery: 'fail' });
  },
});
const entries = [doors(), ...(withConsole === 'no' ? [] : [consolePlugin({ port: 0 })])];
const { plugins } = resolveConfig({ plugins: entries as ConfiguredPlugin[] }, { env: {} });
const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
await runtime.start();

let longest = 0;
let stopWatching = () => {};
function watch(): void {
  stopWatching();
  longest = 0;
  let before = now();
  const timer = setInterval(() => {
    const next = now();
    // What this thread waited for a processor that another process had says nothing of the instance.
    longest = Math.max(longest, next.at - before.at - 1 - (next.waited - before.waited));
    before = next;
  }, 1);
  stopWatching = () => clearInterval(timer);
}

function now(): { at: number; waited: number } {
  return { at: performance.now(), waited: schedulerWaitMs() };
}

async function live(perSecond: number, seconds: number): Promise<void> {
  const { actors, log } = runtime.services;
  const began = performance.now();
  const first = log.lastSeq();
  for (let visit = 0; performance.now() - began < seconds * 1_000; ) {
    const due = ((performance.now() - began) / 1_000) * perSecond;
    while (log.lastSeq() - first < due) {
      const key = `live-${visit % 50}`;
      actors.send(door, key, { type: visit % 2 ? 'CLOSE' : 'OPEN', by: `guest-${visit}` });
      visit += 1;
    }
    await sleep(10);
  }
  await log.whenDurable(log.lastSeq());
}

async function answer(question: Question): Promise<unknown> {
  switch (question.ask) {
    case 'watch':
      return watch();
    case 'longest':
      return longest;
    case 'memory':
      global.gc?.();
      return process.memoryUsage().rss;
    case 'cpu': {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    }
    case 'loaded':
      return {
        modules: [...modules],
        timers: process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
      };
    case 'live':
      return live(question.perSecond, question.seconds);
  }
}

process.on('message', (question: Question) => {
  void answer(question).then((value) => process.send?.({ value }));
});
process.on('disconnect', () => void runtime.stop('the benchmark is over').then(() => process.exit(0)));
process.send?.({ value: { url: runtime.surfaces.console?.url, lastSeq: runtime.services.log.lastSeq() } });
