/** A program that embeds Holdfast: `node main.ts`. It begins, does its work, and ends. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRuntime, defineConfig, isCoded, resolveConfig, SqliteReader, verifyLog } from 'holdfast';
import { gateway } from 'holdfast/plugins/gateway';
import { bell, bellActor, rung } from './bell.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'embedded-'));
const chimes = Promise.withResolvers<number>();
const { plugins } = resolveConfig(
  defineConfig({ plugins: [bell(chimes.resolve)(), gateway({ port: 0, probeEveryMs: 0 })] }),
  { env: {} },
);
const runtime = createRuntime({ plugins, dataDir });

// Ready when `start` resolves; a failure is an error with a code, a sentence and what to do.
await runtime.start();
console.log(`ready: ${Object.keys(runtime.surfaces).sort().join(', ')}`);
console.log(`commands: ${runtime.registrations.commands.filter(({ owner }) => owner === 'bell').length}`);
const second = createRuntime({ plugins, dataDir });
await second.start().catch((error: unknown) => {
  if (!isCoded(error)) throw error;
  console.log(`a second one: ${error.code}`);
});

// The bus: whoever listens gets what is published, checked against the topic's schema.
const { actors, bus, log } = runtime.services;
bus.subscribe(rung, 'main', ({ payload }) => console.log(`heard: ${payload.door}`));
bus.publish(rung, { door: 'front' });
console.log(`chimed: ${await chimes.promise}`);

// An event to an actor, typed by its machine; the promise is kept when its record is durable.
await actors.send(bellActor, 'back', { type: 'RUNG' }).durable();
const back = actors.get(bellActor, 'back');
console.log(`back: ${String(back?.value)}, ${back?.context.rings} ring`);
const page = await fetch(`${runtime.surfaces.bell?.url}/`);
console.log(`page: ${await page.text()}`);
console.log(`routes: ${JSON.stringify((runtime.health().gateway as { text: string }).text)}`);

await log.whenDurable(log.lastSeq());
const errors = await runtime.stop('its work is done');
console.log(`stopped: ${errors.length} errors`);

// The log of a runtime that is stopped, or runs: every decision, and a replay that decides the same.
const reader = new SqliteReader(dataDir);
const rings = [];
for await (const record of reader.read()) if (record.event.type === 'RUNG') rings.push(record.actor);
console.log(`log: ${rings.join(', ')}`);
const { divergence } = verifyLog(
  reader,
  new Map(runtime.registrations.actors.map((actor) => [actor.type, actor])),
);
console.log(
  `replayed: ${divergence === undefined ? 'the same' : `another decision at ${divergence.record.seq}`}`,
);
reader.close();
