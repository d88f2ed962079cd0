import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';

test('[G1] the object that Node makes for a process.nextTick is kept from the start, so that V8 keeps its shape', async (t) => {
  const ticks: { kept?: object } = await import(new URL('../../bin/ticks.js', import.meta.url).href);
  await turn();
  const { kept = {} } = ticks;
  t.true('callback' in kept && 'args' in kept, 'what is kept is such an object');
  t.deepEqual(Object.getOwnPropertySymbols(kept).map(String).slice(0, 1), ['Symbol(async_id_symbol)']);
});
